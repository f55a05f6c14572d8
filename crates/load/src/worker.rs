//! One thread's connections on one epoll instance.
//!
//! Descriptors are registered once, edge-triggered, for reading; for writing only while the kernel's buffer is full.

use crate::clock::{monotonic_ns, timespec};
use crate::engine::{Config, Ended, EngineError};
use crate::recorder::Lane;
use crate::tally::{Counts, Errors, Tally};
use plimsoll_record::{Outcome, Transaction};
use plimsoll_workload::{Ending, Progress, Ready, Session};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A worker looks up from waiting at least this often, to see whether it is told to stop.
const LOOK_UP_NS: i64 = 50_000_000;
/// Rows wait in memory no longer than this.
const FLUSH_NS: i64 = 250_000_000;
const EVENTS_A_WAIT: usize = 256;

/// What the workers of a segment share.
pub(crate) struct Shared<'a> {
    pub(crate) config: &'a Config,
    pub(crate) next_index: AtomicU64,
    pub(crate) told_to_stop: &'a AtomicBool,
    pub(crate) record_failed: &'a AtomicBool,
    pub(crate) errors: Errors,
    pub(crate) started_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    index: u64,
    planned_ns: i64,
    start_ns: i64,
    kind: u8,
}

struct Slot<S> {
    session: Option<S>,
    number: u32,
    backend_pid: u32,
    under_way: Option<UnderWay>,
    for_writing: bool,
}

pub(crate) struct Worker<'a, S> {
    shared: &'a Shared<'a>,
    counts: &'a Counts,
    lane: Lane,
    tally: Tally,
    slots: Vec<Slot<S>>,
    /// (when it is due, slot), the earliest first.
    due: BinaryHeap<Reverse<(i64, usize)>>,
    epoll: OwnedFd,
    ended: Option<Ended>,
    alive: usize,
    busy: usize,
}

impl<'a, S: Session> Worker<'a, S> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        counts: &'a Counts,
        lane: Lane,
        sessions: Vec<(u32, S)>,
    ) -> Result<Self, EngineError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let alive = sessions.len();
        let mut due = BinaryHeap::with_capacity(alive);
        let mut slots = Vec::with_capacity(alive);
        for (place, (number, session)) in sessions.into_iter().enumerate() {
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&epoll, &session, data, interest(false)).map_err(std::io::Error::from)?;
            due.push(Reverse((shared.config.schedule.planned_ns(shared.started_ns), place)));
            let backend_pid = session.backend_pid();
            slots.push(Slot { session: Some(session), number, backend_pid, under_way: None, for_writing: false });
        }
        let tally = Tally::new(shared.config.kinds);
        Ok(Self { shared, counts, lane, tally, slots, due, epoll, ended: None, alive, busy: 0 })
    }

    pub(crate) fn run(mut self) -> Result<(Tally, Ended), EngineError> {
        let mut events = Vec::with_capacity(EVENTS_A_WAIT);
        let mut flushed_ns = self.shared.started_ns;
        let mut patience_ends_ns = None;
        while self.alive > 0 {
            let now_ns = monotonic_ns();
            self.notice_the_end(now_ns);
            if self.ended.is_none() {
                self.start_due(now_ns)?;
            }
            if self.ended.is_some() {
                let end = *patience_ends_ns.get_or_insert(now_ns + self.shared.config.patience_ns);
                if self.busy == 0 {
                    break;
                }
                if now_ns >= end {
                    self.abandon_all();
                    break;
                }
            }
            if now_ns - flushed_ns >= FLUSH_NS {
                self.lane.flush();
                flushed_ns = now_ns;
            }
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.drive(event.data.u64() as usize, readiness(event.flags))?;
            }
        }
        let ended = self.ended.unwrap_or(Ended::ConnectionsLost);
        for slot in &mut self.slots {
            self.tally.reports.extend(slot.session.take().map(Session::close));
        }
        self.tally.records_dropped = self.lane.finish();
        Ok((self.tally, ended))
    }

    fn deadline_ns(&self) -> i64 {
        self.shared.config.duration_ns.map_or(i64::MAX, |duration| self.shared.started_ns.saturating_add(duration))
    }

    fn notice_the_end(&mut self, now_ns: i64) {
        if self.ended.is_some() {
        } else if self.shared.record_failed.load(Ordering::Relaxed) {
            self.ended = Some(Ended::RecordFailed);
        } else if self.shared.told_to_stop.load(Ordering::Relaxed) {
            self.ended = Some(Ended::Told);
        } else if now_ns >= self.deadline_ns() {
            self.ended = Some(Ended::Seconds);
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), EngineError> {
        let now_ns = monotonic_ns();
        let due_ns = match (self.ended, self.due.peek()) {
            (None, Some(&Reverse((due_ns, _)))) => due_ns.min(self.deadline_ns()),
            (None, None) => self.deadline_ns(),
            (Some(_), _) => i64::MAX,
        };
        let timeout = timespec((due_ns.saturating_sub(now_ns)).min(LOOK_UP_NS));
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    fn start_due(&mut self, now_ns: i64) -> Result<(), EngineError> {
        while let Some(&Reverse((due_ns, place))) = self.due.peek() {
            if due_ns > now_ns || self.ended.is_some() {
                break;
            }
            self.due.pop();
            if self.slots[place].session.is_some() && self.start(place, due_ns) {
                self.drive(place, Ready::Nothing)?;
            }
        }
        Ok(())
    }

    /// Takes the next index for a free connection and prepares it. False if the segment is over.
    fn start(&mut self, place: usize, planned_ns: i64) -> bool {
        let mut planned_ns = planned_ns;
        loop {
            let now_ns = monotonic_ns();
            self.notice_the_end(now_ns);
            if self.ended.is_some() {
                return false;
            }
            let index = self.shared.next_index.fetch_add(1, Ordering::Relaxed);
            if index >= self.shared.config.limit() {
                self.ended = Some(Ended::Transactions);
                return false;
            }
            self.counts.took_one();
            let slot = &mut self.slots[place];
            let Some(session) = slot.session.as_mut() else { return false };
            let begun = session.begin(index);
            let start_ns = monotonic_ns();
            let under_way = UnderWay { index, planned_ns, start_ns, kind: begun.kind };
            if !begun.skipped {
                slot.under_way = Some(under_way);
                self.busy += 1;
                return true;
            }
            let ending = Ending { outcome: Outcome::Skipped, statements: 0, failure: None, alive: true };
            self.record(place, under_way, &ending, start_ns);
            planned_ns = self.shared.config.schedule.planned_ns(start_ns);
            if planned_ns > start_ns {
                self.due.push(Reverse((planned_ns, place)));
                return false;
            }
        }
    }

    /// Lets a connection go on until it waits, starting its next transactions as they become due.
    fn drive(&mut self, place: usize, ready: Ready) -> Result<(), EngineError> {
        let mut ready = ready;
        loop {
            let slot = &mut self.slots[place];
            let Some(session) = slot.session.as_mut() else { return Ok(()) };
            match session.advance(ready) {
                Progress::Waiting { to_write } => {
                    if to_write != slot.for_writing {
                        slot.for_writing = to_write;
                        let data = epoll::EventData::new_u64(place as u64);
                        epoll::modify(&self.epoll, session, data, interest(to_write)).map_err(std::io::Error::from)?;
                    }
                    return Ok(());
                }
                Progress::Closed => {
                    self.lose(place);
                    return Ok(());
                }
                Progress::Ended(ending) => {
                    let end_ns = monotonic_ns();
                    self.end(place, &ending, end_ns);
                    if !ending.alive {
                        self.lose(place);
                        return Ok(());
                    }
                    let planned_ns = self.shared.config.schedule.planned_ns(end_ns);
                    if planned_ns > end_ns {
                        self.due.push(Reverse((planned_ns, place)));
                        return Ok(());
                    }
                    if !self.start(place, planned_ns) {
                        return Ok(());
                    }
                    ready = Ready::Nothing;
                }
            }
        }
    }

    fn end(&mut self, place: usize, ending: &Ending, end_ns: i64) {
        if let Some(under_way) = self.slots[place].under_way.take() {
            self.busy -= 1;
            self.record(place, under_way, ending, end_ns);
        }
    }

    fn record(&mut self, place: usize, under_way: UnderWay, ending: &Ending, end_ns: i64) {
        let slot = &self.slots[place];
        let row = Transaction {
            index: under_way.index,
            planned_ns: under_way.planned_ns,
            start_ns: under_way.start_ns,
            end_ns,
            connection: slot.number,
            backend_pid: slot.backend_pid,
            kind: under_way.kind,
            outcome: ending.outcome,
            statements: ending.statements,
            error: ending.failure.as_ref().map_or(0, |failure| self.shared.errors.place(failure)),
        };
        self.counts.ended_one(ending.outcome);
        self.tally.add(&row);
        self.lane.push(row);
    }

    fn lose(&mut self, place: usize) {
        if let Some(session) = self.slots[place].session.take() {
            // Closing the descriptor takes it out of the epoll set.
            self.tally.reports.push(session.close());
            self.tally.connections_lost += 1;
            self.alive -= 1;
        }
    }

    fn abandon_all(&mut self) {
        for place in 0..self.slots.len() {
            let slot = &mut self.slots[place];
            let Some(session) = slot.session.as_mut().filter(|_| slot.under_way.is_some()) else { continue };
            let ending = session.abandon();
            self.end(place, &ending, monotonic_ns());
            self.lose(place);
        }
    }
}

/// The end of a stream is told once, possibly together with its last bytes.
fn readiness(flags: epoll::EventFlags) -> Ready {
    let closing = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    if flags.intersects(closing) {
        Ready::Closing
    } else if flags.contains(epoll::EventFlags::IN) {
        Ready::Readable
    } else {
        Ready::Nothing
    }
}

fn interest(to_write: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if to_write { reading | epoll::EventFlags::OUT } else { reading }
}
