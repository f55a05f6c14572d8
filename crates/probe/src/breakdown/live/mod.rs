//! What each process of the server did since the line before: transactions that ended, and those under way up to now.
//!
//! The fact that constrains it: what is under way is a guess about its last interval (a wait may turn out to have been a wait for
//! a CPU), and of rows and storage one is read before the other. So sums are kept from the begin, and a line tells by how much they are more
//! than any line has told: never less than nothing, and over all lines together what the record has.

pub(crate) mod presence;
pub(crate) mod present;
pub(crate) mod teller;

use super::buckets::BUCKETS;
use super::processes::{ANOTHER, Sums};
use super::records::{HEADLESS, OPEN, PROCESS_ENDED, QUEUED, Record};
use plimsoll_record::{LiveLine, LiveNow, LiveProcess, LiveWait};
use presence::Found;
use present::{Present, State};
use std::collections::{BTreeMap, BTreeSet};

/// One process.
#[derive(Debug, Default)]
struct One {
    /// What it is; None: the backend of a client.
    what: Option<&'static str>,
    /// It was there when its last line was made.
    alive: bool,
    /// Of what has ended.
    ended: Sums,
    /// In lines.
    told: Sums,
    /// Rows since the line before.
    transactions: u64,
    /// When the newest one that has ended had arrived.
    newest_ns: i64,
    /// What was under way when its last line was made, and since when.
    counted: Option<(i64, Sums)>,
    /// What it does since the begin, until somebody sees it.
    unseen: Option<Present>,
    /// The begin of its first transaction was not seen.
    headless: bool,
    /// What is known of that from before it was seen.
    before: Option<Record>,
}

impl One {
    /// It was seen for the first time at `now_ns`.
    fn is_seen(&mut self, now_ns: i64) {
        if let Some(present) = self.unseen.take() {
            self.before = present.under_way(now_ns);
        }
    }

    /// The transaction under way, where the rows have not told of its end.
    fn under_way(&self, found: &Found, now_ns: i64) -> Option<Record> {
        let Some(present) = &found.present else { return self.unseen.as_ref()?.under_way(now_ns) };
        let mut record = present.under_way(now_ns).filter(|record| record.row.arrived_ns > self.newest_ns)?;
        self.before.iter().for_each(|before| record.follow(before));
        Some(record)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    processes: BTreeMap<u32, One>,
    /// Events whose names were told.
    named: BTreeSet<u32>,
    told_ns: i64,
    watched_ns: i64,
    /// Not all of the time may be watched.
    in_slices: bool,
}

/// What is told with a line.
pub(crate) struct Moment<'a> {
    pub(crate) now_ns: i64,
    /// Since the begin.
    pub(crate) watched_ns: i64,
    pub(crate) server_ended: bool,
    pub(crate) name: &'a dyn Fn(u32) -> String,
}

impl Lives {
    /// From `now_ns` on; what was before is in no line. `unseen` are processes that are known by what they tell of themselves.
    pub(crate) fn begin(
        found: &[Found],
        unseen: BTreeMap<u32, Present>,
        in_slices: bool,
        now_ns: i64,
        watched_ns: i64,
    ) -> Self {
        let mut lives = Self { told_ns: now_ns, watched_ns, in_slices, ..Self::default() };
        for (pid, present) in unseen {
            let one = lives.one(pid);
            one.headless = present.under_way(now_ns).is_some();
            one.unseen = Some(present);
        }
        for process in found {
            let one = lives.one(process.pid);
            if let Some(record) = one.under_way(process, now_ns) {
                one.headless = record.row.flags & (OPEN | QUEUED) == 0;
                one.told = Sums::of(&record);
                one.counted = Some((record.row.arrived_ns, one.told.clone()));
            }
        }
        lives
    }

    fn one(&mut self, pid: u32) -> &mut One {
        let new = || One { what: Some(ANOTHER), newest_ns: i64::MIN, ..One::default() };
        self.processes.entry(pid).or_insert_with(new)
    }

    /// Those that were there at the last line.
    pub(crate) fn known(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.iter().filter(|(_, one)| one.alive).map(|(pid, _)| *pid)
    }

    /// Processes are there; what they are is asked for where it is not known.
    pub(crate) fn meet(&mut self, pids: Vec<u32>, what: &dyn Fn(u32) -> Option<&'static str>) -> Vec<u32> {
        for pid in &pids {
            let one = self.one(*pid);
            one.alive = true;
            if one.what == Some(ANOTHER) {
                one.what = what(*pid);
            }
        }
        pids
    }

    /// A transaction has ended, or a process without a client. It is marked if it may have begun before it was seen.
    pub(crate) fn ended(&mut self, record: &mut Record) {
        let one = self.one(record.row.backend_pid);
        if std::mem::take(&mut one.headless) {
            record.row.flags |= HEADLESS;
        }
        one.newest_ns = record.row.arrived_ns;
        one.is_seen(record.row.arrived_ns);
        one.before.take().iter().for_each(|before| record.follow(before));
        one.ended.add(&Sums::of(record));
        if record.row.flags & PROCESS_ENDED == 0 {
            one.transactions += 1;
            one.what = None;
        }
    }

    /// The line of this moment, from what was `found`, after every row was told of that had ended before that.
    pub(crate) fn line(&mut self, found: &[Found], moment: &Moment<'_>) -> LiveLine {
        let gone = Found { pid: 0, present: None, stored: None };
        let of_pid: BTreeMap<u32, &Found> = found.iter().map(|process| (process.pid, process)).collect();
        for pid in of_pid.keys() {
            self.one(*pid);
        }
        let in_slices = self.in_slices;
        let grown = self.processes.iter_mut().filter_map(|(pid, one)| {
            one.alive = of_pid.contains_key(pid);
            grown(*pid, one, of_pid.get(pid).copied().unwrap_or(&gone), in_slices, moment)
        });
        let processes: Vec<LiveProcess> = grown.collect();
        self.processes.retain(|_, one| one.alive);
        let names = self.new_names(&processes, moment.name);
        let line = LiveLine {
            t_ns: moment.now_ns,
            lasted_ns: moment.now_ns - self.told_ns,
            watched_ns: moment.watched_ns - self.watched_ns,
            server_ended: moment.server_ended,
            names,
            processes,
        };
        (self.told_ns, self.watched_ns) = (moment.now_ns, moment.watched_ns);
        line
    }

    fn new_names(&mut self, processes: &[LiveProcess], name: &dyn Fn(u32) -> String) -> BTreeMap<u32, String> {
        let waits = processes.iter().flat_map(|process| process.waits.iter().map(|wait| wait.event));
        let now = processes.iter().filter_map(|process| process.now.as_ref()?.event);
        let new = waits.chain(now).filter(|event| self.named.insert(*event));
        new.map(|event| (event, name(event))).collect()
    }

    /// Transactions of clients that are under way where the record ends.
    pub(crate) fn open(&mut self, found: &[Found], now_ns: i64) -> Vec<Record> {
        let open = found.iter().filter_map(|process| {
            let one = self.processes.get_mut(&process.pid).filter(|one| one.what.is_none())?;
            let mut record = one.under_way(process, now_ns)?;
            let row = &mut record.row;
            (row.backend_pid, row.ended_ns) = (process.pid, now_ns);
            // What is kept of these three is the transaction's before.
            (row.user_ns, row.system_ns, row.after_ns) = (0, 0, 0);
            row.flags |= OPEN | if one.headless { HEADLESS } else { 0 };
            Some(record)
        });
        open.collect()
    }
}

/// What a process did since its last line; None if there is nothing to tell.
fn grown(pid: u32, one: &mut One, found: &Found, in_slices: bool, moment: &Moment<'_>) -> Option<LiveProcess> {
    if let Some(present) = &found.present {
        one.is_seen(present.record.row.arrived_ns);
        one.what = if present.has_client { None } else { one.what };
    }
    let record = one.under_way(found, moment.now_ns);
    let mut counted = record.as_ref().map(|record| (record.row.arrived_ns, Sums::of(record)));
    let last = one.counted.take().filter(|(arrived_ns, _)| in_slices && one.newest_ns < *arrived_ns);
    match last.filter(|(last_ns, _)| counted.as_ref().is_none_or(|(arrived_ns, _)| arrived_ns != last_ns)) {
        // It goes on in another slice.
        Some(last) if one.what.is_some() => counted = Some(last),
        // Cut where a slice was closed: its row will not come.
        Some((_, sums)) => one.ended.add(&sums),
        // Without slices, what has no row was the rest of what was answered before, and is taken back.
        None => {}
    }
    let mut sums = one.ended.clone();
    if let Some((_, under_way)) = &counted {
        sums.add(under_way);
    }
    one.counted = counted;
    let grown = sums.since(&one.told);
    one.told.raise(&sums);
    let (transactions, what) = (std::mem::take(&mut one.transactions), one.what);
    let now = now(one, found, record.as_ref(), moment.now_ns);
    if grown == Sums::default() && transactions == 0 && now.is_none() {
        return None;
    }
    let wait = |((event, bucket), waited): (&(u32, u8), &plimsoll_record::Waited)| LiveWait {
        event: *event,
        bucket: bucket_name(*bucket),
        count: waited.count,
        ns: waited.ns,
    };
    Some(LiveProcess {
        pid,
        what,
        transactions,
        requests: grown.requests,
        cpu_ns: grown.cpu_ns,
        run_queue_ns: grown.run_queue_ns,
        waits: grown.waits.iter().map(wait).collect(),
        now,
    })
}

fn bucket_name(bucket: u8) -> &'static str {
    BUCKETS.get(usize::from(bucket)).copied().unwrap_or("unattributed")
}

fn now(one: &One, found: &Found, under_way: Option<&Record>, now_ns: i64) -> Option<LiveNow> {
    let present = found.present.as_ref().or(one.unseen.as_ref())?;
    if under_way.is_none() && !present.is_at_work(now_ns) {
        return None;
    }
    let on = present.blocked_on();
    // One that begins has no record yet.
    let transaction_ns = under_way.map_or(0, |record| (now_ns - record.row.arrived_ns).max(0));
    Some(LiveNow {
        state: match present.state {
            State::Running => "cpu",
            State::Runnable | State::Woken => "runnable",
            State::Blocked => "blocked",
        },
        event: on.map(|(event, _)| event),
        bucket: on.map(|(_, bucket)| bucket_name(bucket)),
        since_ns: present.age_ns(now_ns),
        transaction_ns: one.what.is_none().then_some(transaction_ns),
    })
}

#[cfg(test)]
mod tests;
