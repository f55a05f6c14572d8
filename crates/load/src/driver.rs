//! What the drivers have in common: what they leave, and what a thread's end means for the others.

use crate::outcomes::Ended;
use crate::recording::tally::Tally;
use crate::shared::Shared;

/// What a driver leaves when its sessions have ended.
pub(crate) struct Carried {
    /// Of each thread.
    pub(crate) threads: Vec<(Tally, Ended)>,
    /// Closes, after the segment, what an opener that was told to end has opened too late.
    pub(crate) opening: Option<CloseLate>,
}

/// Gives the server's processes of what it closes.
pub(crate) type CloseLate = Box<dyn FnOnce() -> Vec<u32>>;

/// A thread's part in the segment. One that ends by an error or a panic takes the segment with it: nothing that the others did from
/// then on could be used, and without an end of its own the segment would go on for ever. And no gate waits for one that has ended.
pub(crate) struct Member<'a> {
    shared: &'a Shared,
    ends_well: bool,
}

impl<'a> Member<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, ends_well: false }
    }

    /// The thread has ended well.
    pub(crate) fn leave(mut self) {
        self.ends_well = true;
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let control = &self.shared.control;
        if !self.ends_well {
            control.stop();
        }
        if let Some(gate) = &control.gate {
            gate.leave();
        }
    }
}
