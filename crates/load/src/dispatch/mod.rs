//! What a thread does that carries many sessions, whatever wakes it: it begins what is due on a connection that is free, records
//! how it ended, opens again what broke, and knows when the segment is over.
//!
//! The fact that constrains it: it waits for nothing. A driver asks it what to drive next, drives that, and waits by its own means
//! until [`Dispatcher::due_ns`] or until a session can go on.

mod end;
mod start;
mod windows;

use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::conversation::Conversation;
use crate::open_plan::OpenPlan;
use crate::opening::Reopening;
use crate::outcomes::{CpuNs, Ended};
use crate::recording::recorder::{FLUSH_NS, RowSink};
use crate::recording::tally::Tally;
use crate::shared::Shared;
use crate::slots::{Slots, Wake};
use crate::window::Window;
use std::sync::Arc;

/// A thread's part of a segment.
pub(crate) struct Dispatcher<S: ?Sized> {
    shared: Arc<Shared>,
    /// The thread's number.
    number: usize,
    sink: RowSink,
    tally: Tally,
    pub(crate) slots: Slots<S>,
    /// The plan of an open loop; `None` in a closed one.
    open_plan: Option<OpenPlan>,
    reopening: Option<Reopening<S>>,
    window: Window,
    late_limit_ns: i64,
    ended: Option<Ended>,
    busy: usize,
    /// More is to be done before waiting.
    hurried: bool,
    /// The newest reading of the clock.
    pub(crate) now_ns: i64,
    flushed_ns: i64,
    cpu_before: CpuNs,
}

impl<S: Conversation + ?Sized> Dispatcher<S> {
    /// To be made by the thread itself, whose CPU time is counted from here.
    pub(crate) fn new(
        shared: Arc<Shared>,
        number: usize,
        sink: RowSink,
        sessions: Vec<(u32, Box<S>)>,
        reopening: Option<Reopening<S>>,
    ) -> Self {
        let schedule = &shared.config.schedule;
        let (plan, late_limit_ns) = (schedule.open(shared.config.first_index), schedule.late_limit_ns());
        let (kinds, window, now_ns) = (shared.config.kinds, shared.first_window(), monotonic_ns());
        let mut dispatcher = Self {
            shared,
            number,
            sink,
            tally: Tally::new(kinds),
            slots: Slots::new(sessions),
            open_plan: plan.map(OpenPlan::new),
            reopening,
            window,
            late_limit_ns: late_limit_ns.unwrap_or(i64::MAX),
            ended: None,
            busy: 0,
            hurried: false,
            now_ns,
            flushed_ns: now_ns,
            cpu_before: thread_cpu_ns(),
        };
        for place in 0..dispatcher.slots.len() {
            if dispatcher.open_plan.is_some() {
                dispatcher.slots.free.push_back(place);
            } else {
                dispatcher.await_the_first(place);
            }
        }
        dispatcher
    }

    /// What wakes it when a connection has been opened again.
    pub(crate) fn reopening(&self) -> Option<&Reopening<S>> {
        self.reopening.as_ref()
    }

    /// Between two waits: reads the clock.
    pub(crate) fn begin_turn(&mut self) {
        (self.now_ns, self.hurried) = (monotonic_ns(), false);
    }

    /// After all that was due has been driven: whether the segment is over for this thread. When patience is, it gives up what is
    /// under way.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.ended.is_some() && self.busy == 0 && !self.has_claim() {
            return true;
        }
        let ending_since_ns = self.shared.ending_since_ns(&self.window);
        if self.now_ns >= ending_since_ns.saturating_add(self.shared.config.patience_ns) {
            self.ended.get_or_insert(Ended::Seconds);
            self.abandon_all();
            return true;
        }
        if self.does_not_drain() {
            self.shared.control.give_up();
            self.ended.get_or_insert(Ended::Undrained);
            self.abandon_all();
            return true;
        }
        self.slots.alive == 0 && self.reopening.is_none()
    }

    #[inline]
    pub(crate) fn notice_the_end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.ended = match &self.open_plan {
            _ if self.shared.stopped().is_some() => self.shared.stopped(),
            // In an open loop the plan has to be over, too: what was due before is still to be started.
            Some(plan) => plan.over.filter(|&reason| reason != Ended::Seconds || self.time_is_over()),
            None => self.time_is_over().then_some(Ended::Seconds),
        };
    }

    #[inline]
    fn time_is_over(&self) -> bool {
        self.window.plan_ns(self.now_ns) >= self.shared.end_ns
    }

    /// Whether there is a claimed operation that may still be begun.
    fn has_claim(&self) -> bool {
        self.open_plan.as_ref().and_then(OpenPlan::due_ns).is_some() && self.shared.stopped().is_none()
    }

    /// When it is due, if that is in this window.
    fn claim_ns(&self) -> Option<i64> {
        let claim_ns = self.open_plan.as_ref().and_then(OpenPlan::due_ns)?;
        let claim_ns = self.window.clock_ns(claim_ns);
        (!self.window.is_closed(claim_ns) && self.shared.stopped().is_none()).then_some(claim_ns)
    }

    /// Until when there is nothing to do but for what the sessions wait for; the largest time if that is all.
    pub(crate) fn due_ns(&self) -> i64 {
        if self.hurried {
            return self.now_ns;
        }
        let end_ns = self.window.clock_ns(self.shared.end_ns).min(self.window.closes_ns());
        let end_ns = Some(end_ns).filter(|&end_ns| self.ended.is_none() && end_ns > self.now_ns);
        end_ns.into_iter().chain(self.slots.next_wake_ns()).chain(self.claim_ns()).min().unwrap_or(i64::MAX)
    }

    /// A connection whose rest is over or whose next transaction was begun: it is to be driven.
    pub(crate) fn woken(&mut self) -> Option<usize> {
        while let Some((place, wake)) = self.slots.woken(self.now_ns) {
            let goes_on = match wake {
                Wake::Start(at_ns) => self.ended.is_none() && self.start_next(place, at_ns),
                Wake::Rest(_) | Wake::Never => true,
            };
            if goes_on {
                return Some(place);
            }
        }
        None
    }

    /// Sends the rows to the writer now and then.
    pub(crate) fn flush(&mut self) {
        if self.now_ns - self.flushed_ns >= FLUSH_NS {
            self.sink.flush(self.now_ns);
            self.flushed_ns = self.now_ns;
        }
    }

    /// Hands the claim to whoever has a free connection.
    fn return_claim(&mut self) {
        if let Some(claim) = self.open_plan.as_mut().and_then(OpenPlan::give_up) {
            self.shared.returned.give(claim);
        }
    }

    /// Takes a connection that was opened again, and gives its place.
    pub(crate) fn reopened(&mut self) -> Option<usize> {
        let (place, session) = self.reopening.as_ref().and_then(Reopening::take)?;
        self.tally.reconnects += 1;
        self.tally.backend_pids.push(session.server_process());
        self.slots.admit(place, session);
        match self.open_plan {
            Some(_) => self.slots.free.push_back(place),
            None => {
                let start_ns = self.first_start_ns(place, self.window.standing_ns(self.now_ns));
                self.slots.wake_at(place, Wake::Start(start_ns));
            }
        }
        Some(place)
    }

    /// Closes the sessions and hands over what was recorded and counted.
    pub(crate) fn finish(mut self) -> (Tally, Ended) {
        self.tally.load_cpu_ns = thread_cpu_ns() - self.cpu_before;
        self.return_claim();
        for place in 0..self.slots.len() {
            self.tally.reports.extend(self.slots.remove(place).map(|session| session.close()));
        }
        self.tally.records_dropped = self.sink.finish();
        (self.tally, self.ended.unwrap_or(Ended::ConnectionsLost))
    }
}
