//! Between two windows: what waits at the gate, and how what is due is moved on when it opens.

use super::Dispatcher;
use crate::conversation::Conversation;
use crate::outcomes::Ended;

impl<S: Conversation + ?Sized> Dispatcher<S> {
    /// Whether the gate is closed and nothing is under way here, nor due in what was the window.
    pub(crate) fn has_drained(&self) -> bool {
        self.window.is_closed(self.now_ns) && self.busy == 0 && !self.hurried && self.claim_ns().is_none()
    }

    /// Whether the window has not drained within the patience.
    pub(super) fn does_not_drain(&self) -> bool {
        let closed_long_ago = self.window.is_closed(self.now_ns.saturating_sub(self.shared.config.patience_ns));
        closed_long_ago && !self.has_drained()
    }

    /// Waits for the next window without taking any time of a CPU; returns for the end of the segment, too.
    pub(crate) fn await_window(&mut self) {
        self.sink.flush(self.now_ns);
        self.flushed_ns = self.now_ns;
        if self.open_plan.is_none() && self.shared.is_exhausted() {
            self.ended.get_or_insert(Ended::Transactions);
            return;
        }
        let Some(gate) = &self.shared.control.gate else { return };
        let window = gate.await_next(&self.window);
        self.slots.postpone(window.later_than_ns(&self.window));
        self.window = window;
    }
}
