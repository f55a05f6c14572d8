//! What the drivers have in common: what they leave, and that a fault in one thread ends the segment.

use crate::outcomes::Ended;
use crate::shared::Shared;
use crate::tally::Tally;

/// What a driver leaves when its sessions have ended.
pub(crate) struct Carried {
    /// Of each thread.
    pub(crate) threads: Vec<(Tally, Ended)>,
    /// Closes, after the segment, what an opener that was told to end has opened too late.
    pub(crate) opening: Option<CloseLate>,
}

/// Gives the server's processes of what it closes.
pub(crate) type CloseLate = Box<dyn FnOnce() -> Vec<u32>>;

/// A thread that ends by an error or a panic takes the segment with it: nothing that the others did from then on could be
/// used, and without an end of its own the segment would go on for ever.
pub(crate) struct StopsAtFault<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl<'a> StopsAtFault<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, armed: true }
    }

    /// The thread has ended well.
    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for StopsAtFault<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.control.stop();
        }
    }
}
