//! How a session that rests until its pass is over hears of an end from outside.

use super::progress::Progress;
use plimsoll_session::Interrupt;
use std::sync::Arc;

/// What the sessions of a pass share, as far as its end goes.
pub(crate) trait HasProgress: Send + Sync + 'static {
    /// Of the pass.
    fn progress(&self) -> &Progress;
}

/// Wakes who rests; nothing else is ever ended from outside.
pub(crate) struct Waker<R>(pub(crate) Arc<R>);

impl<R: HasProgress> Interrupt for Waker<R> {
    fn cancel(&self) {
        self.0.progress().wake();
    }

    fn hang_up(&self) {
        self.cancel();
    }
}
