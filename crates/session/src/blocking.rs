//! Sessions whose calls block: of a file system, or of a client library that does its own waiting.

use crate::{Begun, Ending, Failure, Pause, SessionReport};
use std::sync::Arc;

/// A conversation whose calls block. The engine gives it a thread of its own.
pub trait BlockingSession: Send {
    /// The server's process, 0 if unknown or if there is none.
    fn server_process(&self) -> u32 {
        0
    }

    /// The pause before the next transaction of a closed loop, as [`Session::pause`](crate::Session::pause) has it. What it does
    /// itself before it answers belongs to no transaction.
    fn pause(&mut self, _after: u64) -> Pause {
        Pause::default()
    }

    /// Prepares transaction `index`; what it does here is no part of its time.
    fn begin(&mut self, index: u64) -> Begun;

    /// Whether [`BlockingSession::begin`] has just drawn, and done nothing that takes time: then the transaction counts as begun
    /// when it was taken, and the clock is read once less.
    fn has_only_drawn(&self) -> bool {
        false
    }

    /// Performs what was begun, to its end.
    fn perform(&mut self) -> Ending;

    /// How others end what this session waits for; `None` if nothing does.
    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        None
    }

    /// Ends the conversation.
    fn close(self: Box<Self>) -> SessionReport;
}

/// Ends what a session waits for, from another thread.
pub trait Interrupt: Send + Sync {
    /// Asks that the transaction under way end soon. It may meet the one before or the one after, so it is asked again and again.
    fn cancel(&self);

    /// Ends the conversation, and with it what is under way.
    fn hang_up(&self);
}

/// Opens the blocking conversations of a load.
pub trait BlockingOpener: Send + Sync {
    /// Opens the conversation of connection `number`, counted from 0.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    fn open(&self, number: u32) -> Result<Box<dyn BlockingSession>, Failure>;
}
