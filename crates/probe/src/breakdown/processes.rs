//! The server's processes without clients: who they are, and what each did so far.

use super::records::{OPEN, PROCESS_ENDED, Record, split};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::{ProcessTime, Waited};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;

/// Whoever writes faster than it can be copied has its last copy believed.
const COPIES_MAX: u32 = 8;

/// What the titles of PostgreSQL's own processes begin with, 13 to 18.
const OWN: [&str; 16] = [
    "checkpointer",
    "background writer",
    "walwriter",
    "walreceiver",
    "walsender",
    "autovacuum launcher",
    "autovacuum worker",
    "logical replication launcher",
    "logical replication worker",
    "archiver",
    "startup",
    "stats collector",
    "io worker",
    "slotsync worker",
    "parallel worker",
    "logger",
];
pub(crate) const ANOTHER: &str = "other";

/// What a title says a process is: "postgres: main: walwriter " is a walwriter; None for the backend of a client, whose title
/// goes on with user, database and address. A user may be called archiver.
fn role(title: &str) -> Option<&'static str> {
    let words = title.trim_end_matches(['\0', ' ']).strip_prefix("postgres: ").unwrap_or_default();
    let is_address = |word: &str| word == "[local]" || (word.ends_with(')') && word.contains('('));
    let is_sender = words.starts_with("walsender") || words.contains(": walsender");
    if !is_sender && words.split(' ').any(is_address) {
        return None;
    }
    let begins = |known: &&str| words.starts_with(*known) || words.contains(&format!(": {known}"));
    Some(OWN.into_iter().find(begins).unwrap_or(ANOTHER))
}

/// What a process is by its title; one with a client is a backend.
pub(crate) fn role_of(pid: u32) -> &'static str {
    what(pid).unwrap_or("backend")
}

/// The title of a process.
pub(crate) fn title(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// What a process is by its title; None for the backend of a client.
pub(crate) fn what(pid: u32) -> Option<&'static str> {
    role(&title(pid))
}

/// The numbers of the children of `parent`.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The same at less cost, where the kernel keeps a list; it may leave one out while others end.
pub(crate) fn children_listed(parent: u32) -> Vec<u32> {
    match fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => children(parent),
    }
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses too.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What the program keeps of a process. While that is being written by another CPU it is copied again.
pub(crate) fn stored(backends: &MapHandle, pid: u32) -> Option<Vec<u8>> {
    let process = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let copy = || backends.lookup(&process.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()?;
    let mut copied = copy()?;
    for _ in 0..COPIES_MAX {
        let again = copy()?;
        if again == copied {
            break;
        }
        copied = again;
    }
    Some(copied)
}

/// A process's transaction under way, or all that it did if it has no client.
fn under_way(backends: &MapHandle, pid: u32) -> Option<Record> {
    let mut record = Record::default();
    record.decode(split(&stored(backends, pid)?)?.1)?;
    Some(record)
}

/// Transactions that have ended and that a process has not handed over yet.
pub(crate) fn batch(backends: &MapHandle, pid: u32) -> Option<Vec<u8>> {
    Some(split(&stored(backends, pid)?)?.0.to_vec())
}

/// Transactions of the children of `parent` that are under way.
pub(crate) fn open(parent: u32, backends: &MapHandle) -> u64 {
    let stored = children(parent).into_iter().filter_map(|pid| under_way(backends, pid));
    stored.filter(|record| record.row.flags & OPEN != 0).count() as u64
}

/// What a process has done since the programs first saw it.
pub(crate) type Done = BTreeMap<(u32, u8), Waited>;

/// Requests, CPU time, time in the run queue, and waits by event and bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) requests: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) run_queue_ns: u64,
    pub(crate) waits: Done,
}

impl Sums {
    pub(crate) fn of(record: &Record) -> Self {
        let mut waits = Done::new();
        for wait in &record.waits {
            let sum = waits.entry((wait.wait, wait.bucket)).or_default();
            sum.count += u64::from(wait.count);
            sum.ns += wait.ns as u64;
        }
        let row = &record.row;
        let (cpu_ns, run_queue_ns) = (row.cpu_ns as u64, row.run_queue_ns as u64);
        Self { requests: u64::from(row.requests), cpu_ns, run_queue_ns, waits }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.merge(more, |sum, more| sum + more);
    }

    /// The greater of each.
    pub(crate) fn raise(&mut self, other: &Self) {
        self.merge(other, u64::max);
    }

    fn merge(&mut self, other: &Self, of: fn(u64, u64) -> u64) {
        self.requests = of(self.requests, other.requests);
        self.cpu_ns = of(self.cpu_ns, other.cpu_ns);
        self.run_queue_ns = of(self.run_queue_ns, other.run_queue_ns);
        for (key, other) in &other.waits {
            let wait = self.waits.entry(*key).or_default();
            *wait = Waited { count: of(wait.count, other.count), ns: of(wait.ns, other.ns) };
        }
    }

    fn read(backends: &MapHandle, pid: u32) -> Option<Self> {
        Some(Self::of(&under_way(backends, pid)?))
    }

    /// What was added since `before`; what has become less was not.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let grown = |key: &(u32, u8), now: &Waited| {
            let then = before.waits.get(key).copied().unwrap_or_default();
            Waited { count: now.count.saturating_sub(then.count), ns: now.ns.saturating_sub(then.ns) }
        };
        let waits = self.waits.iter().map(|(key, now)| (*key, grown(key, now)));
        Self {
            requests: self.requests.saturating_sub(before.requests),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(before.run_queue_ns),
            waits: waits.filter(|(_, waited)| *waited != Waited::default()).collect(),
        }
    }
}

/// All of them over a segment.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    before: BTreeMap<u32, (&'static str, Sums)>,
    ended: BTreeMap<u32, Sums>,
}

impl Processes {
    /// The segment begins.
    pub(crate) fn begin(&mut self, parent: u32, backends: &MapHandle) {
        let seen = |pid| (pid, (what(pid).unwrap_or(ANOTHER), Sums::read(backends, pid).unwrap_or_default()));
        self.before = children(parent).into_iter().map(seen).collect();
        self.ended.clear();
    }

    /// A process without a client has ended.
    pub(crate) fn ended(&mut self, record: &Record) {
        assert!(record.row.flags & PROCESS_ENDED != 0);
        self.ended.insert(record.row.backend_pid, Sums::of(record));
    }

    /// What they did in the segment so far; those in `with_client` are left out. `name` names waits.
    pub(crate) fn report(
        &self,
        parent: u32,
        backends: &MapHandle,
        with_client: impl Fn(u32) -> bool,
        name: impl Fn(u32) -> String,
    ) -> Vec<ProcessTime> {
        let running = children(parent).into_iter();
        let alive = running.filter_map(|pid| Some((pid, what(pid).unwrap_or(ANOTHER), Sums::read(backends, pid)?)));
        let gone =
            self.ended.iter().map(|(pid, sums)| (*pid, self.before.get(pid).map_or(ANOTHER, |b| b.0), sums.clone()));
        let time = |(pid, what, now): (u32, &'static str, Sums)| {
            let before = self.before.get(&pid).map(|before| before.1.clone()).unwrap_or_default();
            let grown = now.since(&before);
            let mut waits: BTreeMap<String, Waited> = BTreeMap::new();
            for ((event, _), waited) in grown.waits {
                let sum = waits.entry(name(event)).or_default();
                sum.count += waited.count;
                sum.ns += waited.ns;
            }
            ProcessTime { pid, what: what.to_owned(), cpu_ns: grown.cpu_ns, run_queue_ns: grown.run_queue_ns, waits }
        };
        alive.chain(gone).filter(|(pid, ..)| !with_client(*pid)).map(time).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_tell_what_a_process_is() {
        for (title, what) in [
            ("postgres: 15/main: walwriter \0", Some("walwriter")),
            ("postgres: checkpointer ", Some("checkpointer")),
            ("postgres: io worker 2", Some("io worker")),
            ("postgres: parallel worker for PID 77", Some("parallel worker")),
            ("postgres: main: walsender copies 10.0.0.7(41034) streaming 0/1", Some("walsender")),
            ("postgres: pg_cron launcher ", Some(ANOTHER)),
            ("postgres: somebody bench [local] SELECT", None),
            ("postgres: archiver startup 10.0.0.7(41034) idle in transaction\0\0", None),
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0", Some(ANOTHER)),
        ] {
            assert_eq!(role(title), what, "{title}");
        }
    }

    #[test]
    fn growth_leaves_out_what_was_before() {
        let waited = |count, ns| Waited { count, ns };
        let before = Sums { requests: 1, cpu_ns: 5, run_queue_ns: 2, waits: [((7, 4), waited(2, 20))].into() };
        let waits = [((7, 4), waited(2, 20)), ((8, 4), waited(1, 3))].into();
        let now = Sums { requests: 4, cpu_ns: 9, run_queue_ns: 1, waits };
        let grown = now.since(&before);
        assert_eq!((grown.requests, grown.cpu_ns, grown.run_queue_ns), (3, 4, 0));
        assert_eq!(grown.waits, [((8, 4), waited(1, 3))].into());
    }

    #[test]
    fn children_are_found_by_their_parent() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let found = children(std::process::id());
        assert!(found.contains(&child.id()), "{found:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
