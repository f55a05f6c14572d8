//! One session's thread: takes what is due, performs it, records it, and waits.

use super::seat::Seat;
use crate::clock::{TICK_NS, monotonic_ns, thread_cpu_ns};
use crate::open_plan::OpenPlan;
use crate::opening::TRY_AGAIN_AFTER;
use crate::outcomes::Ended;
use crate::recording::recorder::FLUSH_NS;
use crate::recording::tally::Counts;
use crate::shared::{Claim, Shared};
use crate::window::Window;
use plimsoll_record::Outcome;
use plimsoll_session::{BlockingOpener, BlockingSession, Ending};
use std::time::Duration;

/// A session's way through a segment.
pub(super) struct Carrier<'a> {
    shared: &'a Shared,
    seat: &'a Seat,
    counts: &'a Counts,
    opener: Option<&'a dyn BlockingOpener>,
    number: u32,
    /// The plan of an open loop; `None` in a closed one.
    open_plan: Option<OpenPlan>,
    window: Window,
    late_limit_ns: i64,
    flushed_ns: i64,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        seat: &'a Seat,
        counts: &'a Counts,
        opener: Option<&'a dyn BlockingOpener>,
        number: u32,
    ) -> Self {
        let schedule = &shared.config.schedule;
        let open_plan = schedule.open(shared.config.first_index).map(OpenPlan::new);
        let late_limit_ns = schedule.late_limit_ns().unwrap_or(i64::MAX);
        let (window, flushed_ns) = (shared.first_window(), shared.started_ns);
        Self { shared, seat, counts, opener, number, open_plan, window, late_limit_ns, flushed_ns }
    }

    /// Performs transactions until the segment ends, or the seat was taken.
    pub(super) fn run(mut self, session: Box<dyn BlockingSession>) -> Ended {
        let cpu_before = thread_cpu_ns();
        let (mut session, mut ended) = (Some(session), Ended::ConnectionsLost);
        while let Some(open) = session.take() {
            let (left, alive, why) = self.carry(open);
            ended = why;
            // Closing may block, too: not with the seat held.
            let report = left.close();
            self.seat.with(|held| held.tally.reports.push(report));
            if alive {
                break;
            }
            self.seat.with(|held| (held.tally.connections_lost += 1, held.interrupt = None));
            if let Some(claim) = self.open_plan.as_mut().and_then(OpenPlan::give_up) {
                self.shared.returned.give(claim);
            }
            session = self.reopened();
            let is_over = self.time_is_over(monotonic_ns()).then_some(Ended::Seconds);
            ended = self.shared.stopped().or(is_over).unwrap_or(ended);
        }
        if let Some(claim) = self.open_plan.as_mut().and_then(OpenPlan::give_up) {
            self.shared.returned.give(claim);
        }
        self.seat.with(|held| {
            held.skip_rest(self.counts, monotonic_ns());
            held.tally.load_cpu_ns += thread_cpu_ns() - cpu_before;
        });
        ended
    }

    /// Until the segment ends or the connection does: whether it is alive, and why it ended.
    fn carry(&mut self, mut session: Box<dyn BlockingSession>) -> (Box<dyn BlockingSession>, bool, Ended) {
        let mut due_ns = self.first_due_ns(session.as_mut());
        let mut now_ns = monotonic_ns();
        loop {
            let (claim, taken_ns) = match self.next(due_ns, now_ns) {
                Ok(taken) => taken,
                Err(why) => return (session, true, why),
            };
            let begun = session.begin(claim.index);
            let start_ns = if session.has_only_drawn() { taken_ns } else { monotonic_ns() };
            self.seat.began(begun.kind, start_ns);
            let ending = if begun.skipped { Ending::of_nothing(Outcome::Skipped, true) } else { session.perform() };
            let end_ns = monotonic_ns();
            let began = Some((begun.kind, start_ns));
            let recorded = self.seat.with(|held| held.ended(self.shared, self.counts, began, (&ending, end_ns)));
            let Some(planned_ns) = recorded else { return (session, true, Ended::Seconds) };
            self.seat.is_over();
            if !ending.alive {
                return (session, false, Ended::ConnectionsLost);
            }
            self.flush(end_ns);
            if self.open_plan.is_none() && self.shared.stopped().is_none() {
                let wait_ns = self.shared.config.schedule.wait_ns(claim.index);
                let pause = if begun.skipped { Default::default() } else { session.pause(claim.index) };
                // What the session does before it answers belongs to no transaction. Nobody looks at the clock again before the next.
                now_ns = monotonic_ns();
                let standing_ns = self.window.standing_ns(now_ns);
                let since_ns = if pause.since_planned { planned_ns } else { standing_ns };
                due_ns = since_ns.saturating_add(wait_ns).saturating_add(pause.ns);
            } else {
                now_ns = monotonic_ns();
            }
        }
    }

    /// When the first transaction of a closed loop is due.
    fn first_due_ns(&self, session: &mut dyn BlockingSession) -> i64 {
        if self.open_plan.is_some() {
            return 0;
        }
        let (number, config) = (u64::from(self.number), &self.shared.config);
        let wait_ns = config.schedule.wait_ns(u64::MAX - number);
        let pause = session.pause(config.first_index.wrapping_add(number));
        let from_ns = self.window.standing_ns(self.shared.started_ns.max(monotonic_ns()));
        from_ns.saturating_add(wait_ns).saturating_add(pause.ns)
    }

    /// Waits until something is due and takes it; or the reason why nothing more is. `now_ns`: the newest reading of the clock. Gives
    /// when it was taken, too.
    fn next(&mut self, due_ns: i64, now_ns: i64) -> Result<(Claim, i64), Ended> {
        let (mut due_ns, mut now_ns) = (due_ns, now_ns);
        loop {
            if let Some(why) = self.shared.stopped() {
                return Err(why);
            }
            let wait_until_ns = match &self.open_plan {
                None if self.time_is_over(now_ns) => return Err(Ended::Seconds),
                None if self.window.is_closed(now_ns) && self.shared.is_exhausted() => return Err(Ended::Transactions),
                None if self.window.is_closed(now_ns) => {
                    due_ns = due_ns.saturating_add(self.await_window(now_ns));
                    now_ns = monotonic_ns();
                    continue;
                }
                None if now_ns >= due_ns => {
                    // The index and what accounts for it are taken in one stroke.
                    let taken = self.seat.with(|held| {
                        let index = held.next_index(self.shared, self.window.plan_ns(now_ns))?;
                        let claim = Claim { index, due_ns };
                        held.took(self.counts, claim, now_ns);
                        Ok((claim, now_ns))
                    });
                    return taken.unwrap_or(Err(Ended::Seconds));
                }
                None => due_ns,
                Some(_) if now_ns >= self.patience_over_ns() => return Err(Ended::Seconds),
                Some(_) => match self.due_claim(now_ns) {
                    Some(claim) if now_ns - claim.due_ns > self.late_limit_ns => {
                        self.seat.with(|held| held.skip(self.counts, claim, now_ns)).ok_or(Ended::Seconds)?;
                        now_ns = monotonic_ns();
                        continue;
                    }
                    Some(claim) => {
                        self.seat.with(|held| held.took(self.counts, claim, now_ns)).ok_or(Ended::Seconds)?;
                        return Ok((claim, now_ns));
                    }
                    None => match self.next_claim_ns(now_ns)? {
                        _ if self.window.is_closed(now_ns) => {
                            self.await_window(now_ns);
                            now_ns = monotonic_ns();
                            continue;
                        }
                        claim_ns => claim_ns,
                    },
                },
            };
            self.flush(now_ns);
            let end_ns = self.window.clock_ns(self.shared.end_ns).min(self.window.closes_ns());
            let ns = wait_until_ns.min(end_ns.max(now_ns)).min(now_ns + TICK_NS) - now_ns;
            std::thread::sleep(Duration::from_nanos(ns.max(0) as u64));
            now_ns = monotonic_ns();
        }
    }

    /// What is due by now in this window.
    fn due_claim(&mut self, now_ns: i64) -> Option<Claim> {
        let due_by_ns = self.window.due_by_ns(now_ns);
        let Claim { index, due_ns } = self.open_plan.as_mut()?.due(self.shared, due_by_ns)?;
        Some(Claim { index, due_ns: self.window.clock_ns(due_ns) })
    }

    /// When to look for something due again, where nothing is by now; or why nothing more will be.
    fn next_claim_ns(&self, now_ns: i64) -> Result<i64, Ended> {
        let Some(plan) = &self.open_plan else { return Ok(now_ns) };
        match (plan.due_ns(), plan.over) {
            (Some(claim_ns), _) => Ok(self.window.clock_ns(claim_ns)),
            // What another thread gives back may still come before the end.
            (None, Some(Ended::Seconds)) if !self.time_is_over(now_ns) => Ok(self.window.clock_ns(self.shared.end_ns)),
            (None, Some(why)) => Err(why),
            (None, None) => Ok(now_ns),
        }
    }

    fn time_is_over(&self, now_ns: i64) -> bool {
        self.window.plan_ns(now_ns) >= self.shared.end_ns
    }

    /// Waits at the gate, without taking any time of a CPU; gives by how much later everything is due.
    fn await_window(&mut self, now_ns: i64) -> i64 {
        self.seat.with(|held| held.flush(now_ns));
        self.flushed_ns = now_ns;
        let Some(gate) = &self.shared.control.gate else { return 0 };
        let before = self.window;
        self.window = gate.await_next(&before);
        self.window.later_than_ns(&before)
    }

    fn patience_over_ns(&self) -> i64 {
        self.shared.ending_since_ns(&self.window).saturating_add(self.shared.config.patience_ns)
    }

    fn flush(&mut self, now_ns: i64) {
        if now_ns - self.flushed_ns >= FLUSH_NS {
            self.seat.with(|held| held.flush(now_ns));
            self.flushed_ns = now_ns;
        }
    }

    /// Opens the connection again, if that is asked for and the segment goes on.
    fn reopened(&mut self) -> Option<Box<dyn BlockingSession>> {
        let opener = self.opener.filter(|_| self.shared.config.reconnect)?;
        while self.shared.stopped().is_none() && !self.time_is_over(monotonic_ns()) {
            if self.window.is_closed(monotonic_ns()) {
                self.await_window(monotonic_ns());
                continue;
            }
            match opener.open(self.number) {
                Ok(session) => {
                    self.seat.with(|held| {
                        (held.server_process, held.interrupt) = (session.server_process(), session.interrupt());
                        held.tally.reconnects += 1;
                        held.tally.backend_pids.push(session.server_process());
                    })?;
                    return Some(session);
                }
                Err(_) => std::thread::sleep(TRY_AGAIN_AFTER),
            }
        }
        None
    }
}
