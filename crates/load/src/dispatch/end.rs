//! Ending: what has ended is recorded, what broke is opened again, and what never ends is given up.

use super::Dispatcher;
use crate::clock::monotonic_ns;
use crate::conversation::Conversation;
use crate::slots::Wake;
use crate::under_way::UnderWay;
use plimsoll_session::Ending;

impl<S: Conversation + ?Sized> Dispatcher<S> {
    /// A connection's transaction has ended now.
    #[inline]
    pub(crate) fn end(&mut self, place: usize, ending: &Ending) -> Option<UnderWay> {
        self.now_ns = monotonic_ns();
        let slot = &mut self.slots[place];
        let under_way = slot.under_way.take()?;
        slot.wake = Wake::Never;
        self.busy -= 1;
        self.record(place, under_way, ending);
        Some(under_way)
    }

    /// Records a transaction that ends now.
    #[inline]
    pub(super) fn record(&mut self, place: usize, under_way: UnderWay, ending: &Ending) {
        let slot = &self.slots[place];
        let row = under_way.row(&self.shared, (slot.number, slot.backend_pid), ending, self.now_ns);
        self.shared.control.counts[self.number].ended_one(ending.outcome);
        self.tally.add(&row);
        self.sink.push(row);
    }

    /// A connection is gone; `reopen`: it is opened again, if that is asked for and the segment goes on.
    pub(crate) fn lose(&mut self, place: usize, reopen: bool) {
        let Some(session) = self.slots.remove(place) else { return };
        self.tally.reports.push(session.close());
        self.tally.connections_lost += 1;
        if let Some(reopening) = self.reopening.as_ref().filter(|_| reopen && self.ended.is_none()) {
            reopening.ask(place, self.slots[place].number);
        }
        if self.slots.free.is_empty() {
            self.return_claim();
        }
    }

    pub(super) fn abandon_all(&mut self) {
        for place in 0..self.slots.len() {
            let slot = &mut self.slots[place];
            let Some(session) = slot.session.as_mut().filter(|_| slot.under_way.is_some()) else { continue };
            let ending = session.abandon();
            self.end(place, &ending);
            self.lose(place, false);
        }
    }
}
