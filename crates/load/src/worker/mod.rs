//! One thread's connections on one epoll instance: waits, drives what is ready, and starts what is due.

mod drive;
mod start;

use crate::ahead::Ahead;
use crate::clock::{TICK_NS, heard, monotonic_ns, thread_cpu_ns, tick, timespec};
use crate::config::EngineError;
use crate::connections::{Connections, Wake, readiness};
use crate::opening::Reopening;
use crate::outcomes::Ended;
use crate::recorder::Lane;
use crate::shared::Shared;
use crate::tally::{Counts, Tally};
use plimsoll_session::{Ready, Session};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::os::fd::OwnedFd;

/// A wake-up nearer than this is waited for by the wait's own timeout, a later one by a tick.
const NEAR_NS: i64 = 2 * TICK_NS;
/// Rows wait in memory no longer than this.
const FLUSH_NS: i64 = 250_000_000;
const EVENTS_A_WAIT: usize = 256;
/// The numbers under which the tick and the bell of reopened connections are in the epoll set; no slot has them.
const TICK: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    counts: &'a Counts,
    lane: Lane,
    tally: Tally,
    connections: Connections,
    /// The plan of an open loop; `None` in a closed one.
    ahead: Option<Ahead>,
    reopening: Option<Reopening<'a>>,
    /// Wakes this worker now and then.
    tick: OwnedFd,
    late_limit_ns: i64,
    ended: Option<Ended>,
    busy: usize,
    /// More is to be done before waiting.
    hurried: bool,
    /// The newest reading of the clock.
    now_ns: i64,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        counts: &'a Counts,
        lane: Lane,
        sessions: Vec<(u32, Box<dyn Session>)>,
        reopening: Option<Reopening<'a>>,
    ) -> Result<Self, EngineError> {
        let schedule = &shared.config.schedule;
        let connections = Connections::new(sessions)?;
        let tick = tick()?;
        connections.watch(&tick, TICK)?;
        if let Some(reopening) = &reopening {
            connections.watch(reopening.bell(), BELL)?;
        }
        let ahead = schedule.open(shared.config.first_index).map(Ahead::new);
        let mut worker = Self {
            shared,
            counts,
            lane,
            tally: Tally::new(shared.config.kinds),
            connections,
            ahead,
            reopening,
            tick,
            late_limit_ns: schedule.late_limit_ns().unwrap_or(i64::MAX),
            ended: None,
            busy: 0,
            hurried: false,
            now_ns: monotonic_ns(),
        };
        for place in 0..worker.connections.slots.len() {
            if worker.ahead.is_some() {
                worker.connections.free.push_back(place);
            } else {
                // Before its first transaction a connection waits as after the last index there is, and so on downwards.
                let wait_ns = schedule.wait_ns(u64::MAX - u64::from(worker.connections.slots[place].number));
                let start_ns = worker.first_start_ns(place, shared.started_ns.saturating_add(wait_ns));
                worker.connections.wake_at(place, Wake::Start(start_ns));
            }
        }
        Ok(worker)
    }

    pub(crate) fn run(mut self) -> Result<(Tally, Ended), EngineError> {
        let mut events = Vec::with_capacity(EVENTS_A_WAIT);
        let (mut flushed_ns, cpu_ns) = (self.now_ns, thread_cpu_ns());
        loop {
            self.now_ns = monotonic_ns();
            self.admit_reopened()?;
            self.notice_the_end();
            self.wake()?;
            self.start_due()?;
            if self.is_over() {
                break;
            }
            if self.now_ns - flushed_ns >= FLUSH_NS {
                self.lane.flush(self.now_ns);
                flushed_ns = self.now_ns;
            }
            self.wait(&mut events)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    TICK => heard(&self.tick)?,
                    BELL => {}
                    place => self.drive_ready(place as usize, readiness(event.flags))?,
                }
            }
        }
        self.tally.load_cpu_ns = thread_cpu_ns() - cpu_ns;
        self.return_claim();
        for place in 0..self.connections.slots.len() {
            self.tally.reports.extend(self.connections.remove(place).map(|session| session.close()));
        }
        self.tally.records_dropped = self.lane.finish();
        Ok((self.tally, self.ended.unwrap_or(Ended::ConnectionsLost)))
    }

    fn is_over(&mut self) -> bool {
        if self.ended.is_some() && self.busy == 0 && self.claim_ns().is_none() {
            return true;
        }
        if self.now_ns >= self.shared.ending_since_ns().saturating_add(self.shared.config.patience_ns) {
            self.ended.get_or_insert(Ended::Seconds);
            self.abandon_all();
            return true;
        }
        self.connections.alive == 0 && self.reopening.is_none()
    }

    #[inline]
    fn notice_the_end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.ended = match &self.ahead {
            _ if self.shared.stopped().is_some() => self.shared.stopped(),
            // In an open loop the plan has to be over, too: what was due before is still to be started.
            Some(ahead) => ahead.over.filter(|&reason| reason != Ended::Seconds || self.now_ns >= self.shared.end_ns),
            None => (self.now_ns >= self.shared.end_ns).then_some(Ended::Seconds),
        };
    }

    /// When a claimed operation is due that may still be begun.
    fn claim_ns(&self) -> Option<i64> {
        let claim_ns = self.ahead.as_ref().and_then(Ahead::due_ns);
        claim_ns.filter(|_| self.shared.stopped().is_none())
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), EngineError> {
        let end_ns = Some(self.shared.end_ns).filter(|&end_ns| self.ended.is_none() && end_ns > self.now_ns);
        let wake_ns = self.connections.next_wake_ns();
        let due_ns = end_ns.into_iter().chain(wake_ns).chain(self.claim_ns()).min().unwrap_or(i64::MAX);
        let timeout = if self.hurried {
            Some(timespec(0))
        } else if due_ns < self.now_ns.saturating_add(NEAR_NS) {
            Some(timespec(due_ns - monotonic_ns()))
        } else {
            // Without one the kernel has no timer to set and to take back in each wait.
            None
        };
        match epoll::wait(&self.connections.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    /// Wakes the connections whose rest or whose wait is over.
    fn wake(&mut self) -> Result<(), EngineError> {
        while let Some((place, wake)) = self.connections.woken(self.now_ns) {
            let goes_on = match wake {
                Wake::Start(at_ns) => self.ended.is_none() && self.start_next(place, at_ns),
                Wake::Rest(_) | Wake::Never => true,
            };
            if goes_on {
                self.drive(place, Ready::Nothing)?;
            }
        }
        Ok(())
    }

    /// Hands the claim to whoever has a free connection.
    fn return_claim(&mut self) {
        if let Some(claim) = self.ahead.as_mut().and_then(Ahead::give_up) {
            self.shared.returned.give(claim);
        }
    }

    fn admit_reopened(&mut self) -> Result<(), EngineError> {
        while let Some((place, session)) = self.reopening.as_ref().and_then(Reopening::take) {
            self.tally.reconnects += 1;
            self.tally.backend_pids.push(session.server_process());
            self.connections.admit(place, session)?;
            match self.ahead {
                Some(_) => self.connections.free.push_back(place),
                None => {
                    let start_ns = self.first_start_ns(place, self.now_ns);
                    self.connections.wake_at(place, Wake::Start(start_ns));
                }
            }
        }
        Ok(())
    }
}
