//! Starting: in a closed loop when a connection is free, in an open loop when the plan says so.

use super::Dispatcher;
use crate::clock::monotonic_ns;
use crate::conversation::Conversation;
use crate::shared::Claim;
use crate::slots::Wake;
use crate::under_way::UnderWay;
use plimsoll_record::{Outcome, Transaction};
use plimsoll_session::{Ending, Pause};

/// Transactions that may be skipped before replies are looked at again.
const SKIPS_A_TURN: u32 = 1_000;

impl<S: Conversation + ?Sized> Dispatcher<S> {
    /// Takes the next index of a closed loop for a connection. False if the connection is to wait, or the segment is over.
    pub(super) fn start_next(&mut self, place: usize, planned_ns: i64) -> bool {
        let mut due_ns = planned_ns;
        loop {
            self.notice_the_end();
            if self.ended.is_some() {
                return false;
            }
            if self.window.is_closed(self.now_ns) {
                self.slots.hold(place, due_ns);
                return false;
            }
            let index = match self.shared.next_index(self.window.plan_ns(self.now_ns)) {
                Ok(index) => index,
                Err(reason) => {
                    self.ended = Some(reason);
                    return false;
                }
            };
            if self.begin(place, Claim { index, due_ns }) {
                return true;
            }
            let wait_ns = self.shared.config.schedule.wait_ns(index);
            due_ns = self.window.standing_ns(self.now_ns).saturating_add(wait_ns);
            if wait_ns > 0 {
                self.slots.wake_at(place, Wake::Start(due_ns));
                return false;
            }
        }
    }

    /// Begins what is due in an open loop on the connection that has been free longest, and gives that.
    pub(crate) fn start_claim(&mut self) -> Option<usize> {
        for _ in 0..SKIPS_A_TURN {
            let &place = self.slots.free.front()?;
            if self.shared.stopped().is_some() {
                return None;
            }
            let due_by_ns = self.window.due_by_ns(self.now_ns);
            let Claim { index, due_ns } = self.open_plan.as_mut()?.due(&self.shared, due_by_ns)?;
            let claim = Claim { index, due_ns: self.window.clock_ns(due_ns) };
            if self.now_ns - claim.due_ns > self.late_limit_ns {
                self.now_ns = monotonic_ns();
                self.shared.control.counts[self.number].took_one();
                self.skip(claim);
            } else if self.begin(place, claim) {
                self.slots.free.pop_front();
                return Some(place);
            }
        }
        self.hurried = true;
        None
    }

    /// Prepares a transaction. False if there is nothing to be done, which has then been recorded.
    #[inline]
    fn begin(&mut self, place: usize, claim: Claim) -> bool {
        let slot = &mut self.slots[place];
        let Some(session) = slot.session.as_mut() else { return false };
        self.shared.control.counts[self.number].took_one();
        let begun = session.begin(claim.index);
        self.now_ns = monotonic_ns();
        let under_way =
            UnderWay { index: claim.index, planned_ns: claim.due_ns, start_ns: self.now_ns, kind: begun.kind };
        if begun.skipped {
            self.record(place, under_way, &Ending::of_nothing(Outcome::Skipped, true));
            return false;
        }
        slot.under_way = Some(under_way);
        self.busy += 1;
        true
    }

    /// After a transaction of a connection: the connection that is to be driven next, having begun another.
    #[inline]
    pub(crate) fn next(&mut self, place: usize, ended: UnderWay) -> Option<usize> {
        if self.open_plan.is_some() {
            self.slots.free.push_back(place);
            return self.start_claim();
        }
        let wait_ns = self.shared.config.schedule.wait_ns(ended.index);
        let pause = self.pause(place, ended.index);
        let standing_ns = self.window.standing_ns(self.now_ns);
        let since_ns = if pause.since_planned { ended.planned_ns } else { standing_ns };
        if wait_ns > 0 || pause.ns > 0 {
            // May lie in the past, if the transaction took longer than the user's pause.
            let due_ns = since_ns.saturating_add(wait_ns).saturating_add(pause.ns);
            self.slots.wake_at(place, Wake::Start(due_ns));
            return None;
        }
        self.start_next(place, standing_ns).then_some(place)
    }

    /// The session's own pause after transaction `after`.
    #[inline]
    fn pause(&mut self, place: usize, after: u64) -> Pause {
        self.slots[place].session.as_mut().map_or(Pause::default(), |session| session.pause(after))
    }

    /// Has a connection of a closed loop wait for its first transaction.
    pub(super) fn await_the_first(&mut self, place: usize) {
        // Before it a connection waits as after the last index there is, and so on downwards.
        let wait_ns = self.shared.config.schedule.wait_ns(u64::MAX - u64::from(self.slots[place].number));
        let start_ns = self.first_start_ns(place, self.shared.started_ns.saturating_add(wait_ns));
        self.slots.wake_at(place, Wake::Start(start_ns));
    }

    /// When a connection that has yet to begin its first transaction is to begin it, if it may from `from_ns` on.
    pub(super) fn first_start_ns(&mut self, place: usize, from_ns: i64) -> i64 {
        let number = u64::from(self.slots[place].number);
        let pause = self.pause(place, self.shared.config.first_index.wrapping_add(number));
        from_ns.saturating_add(pause.ns)
    }

    /// Counts and records an operation that is too late to be begun.
    fn skip(&mut self, claim: Claim) {
        self.shared.control.counts[self.number].ended_one(Outcome::Skipped);
        self.tally.took(claim.index);
        self.sink.push(Transaction::unbegun(claim.index, claim.due_ns, self.now_ns));
    }
}
