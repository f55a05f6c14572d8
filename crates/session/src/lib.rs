//! What the engine drives: a conversation with a server that performs transaction after transaction.
//!
//! - [`Session`] never blocks. The engine waits until [`AsFd`] is ready, calls [`Session::advance`], and stamps the times.
//! - [`BlockingSession`] does, and has a thread of its own.
//! - [`CompletionSession`] hands out [`Operation`]s, and goes on when the kernel has performed them.

mod blocking;
mod buffer;
mod completion;

pub use blocking::{BlockingOpener, BlockingSession, Interrupt};
pub use buffer::{Buffer, Keeper};
pub use completion::{Completed, CompletionOpener, CompletionSession, Operation, Registered};

use plimsoll_record::{Outcome, Verification};
use std::os::fd::AsFd;

/// A transaction that was prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Place in the workload's kinds.
    pub kind: u8,
    /// Its draw says that nothing is to be done; it has ended already.
    pub skipped: bool,
}

/// How long a connection of a closed loop waits before its next transaction, by the workload's own pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// How long, in nanoseconds.
    pub ns: i64,
    /// From when its last transaction was due, not from when it ended: the user handed that in and did not wait for it.
    pub since_planned: bool,
}

/// Why a transaction failed or was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The server's five characters, or one of [`Failure::WRONG_ANSWER`], [`Failure::BROKEN`], [`Failure::ABANDONED`].
    pub code: String,
    /// In words.
    pub message: String,
}

impl Failure {
    /// An answer that differs from what the seed says.
    pub const WRONG_ANSWER: &'static str = "XXVER";
    /// The connection broke (the standard's connection_failure).
    pub const BROKEN: &'static str = "08006";
    /// No reply within the engine's patience after the segment was to end.
    pub const ABANDONED: &'static str = "XXABN";
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Done, failed or lost; never skipped.
    pub outcome: Outcome,
    /// Statements sent, BEGIN and COMMIT not counted; those of earlier tries too.
    pub statements: u32,
    /// How often it was tried again.
    pub retries: u32,
    /// Round trips begun for it, those of earlier tries and a rollback too.
    pub requests: u32,
    /// Payload read and written, of workloads that are counted in bytes.
    pub bytes: u64,
    /// Why, unless done.
    pub failure: Option<Failure>,
    /// False if the session can perform no more.
    pub alive: bool,
}

impl Ending {
    /// Of a transaction for which nothing was sent.
    #[inline]
    pub fn of_nothing(outcome: Outcome, alive: bool) -> Self {
        Self { outcome, statements: 0, retries: 0, requests: 0, bytes: 0, failure: None, alive }
    }
}

/// What is known of the descriptor when a conversation is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Nothing: there is only something to send.
    Nothing,
    /// Bytes have arrived.
    Readable,
    /// The other side has closed: what is left must be read to the end, for no further notice will come.
    Closing,
}

/// How far a conversation has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits for the server; for room to send, too, if `to_write`.
    Waiting {
        /// Wake it when the descriptor becomes writable, not only readable.
        to_write: bool,
    },
    /// The same on another descriptor than before, which is not ready yet as far as it knows.
    Moved {
        /// Wake it when the descriptor becomes writable, not only readable.
        to_write: bool,
    },
    /// It rests of its own will; it is to be driven again after so many nanoseconds, or when something is received.
    Resting {
        /// How long, in nanoseconds.
        ns: i64,
    },
    /// The transaction has ended.
    Ended(Ending),
    /// No transaction was under way, and the server ended the connection.
    Closed,
}

/// What a session has seen over its life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionReport {
    /// Round trips begun: requests handed over to be sent.
    pub requests: u64,
    /// Answers compared.
    pub verification: Verification,
    /// The workload's totals: exact integers for the consistency check.
    pub totals: Vec<(&'static str, i64)>,
}

/// A conversation with a server.
pub trait Session: AsFd + Send {
    /// The server's process, 0 if unknown.
    fn server_process(&self) -> u32;

    /// The pause before the next transaction of a closed loop; `after` is the index of the last one, and before the first one
    /// a number that no other connection of the segment is given then. Asked once between two transactions.
    fn pause(&mut self, _after: u64) -> Pause {
        Pause::default()
    }

    /// How long it waits for the end of a transaction, in nanoseconds from its start; then it is given up as by
    /// [`Session::abandon`], and goes on if that leaves it alive. The engine looks twenty times a second.
    fn patience_ns(&self) -> i64 {
        i64::MAX
    }

    /// Prepares transaction `index`; nothing is handed to the kernel before [`Session::advance`].
    fn begin(&mut self, index: u64) -> Begun;

    /// Sends what is queued and takes what `ready` says was received, until it would block or the transaction ends.
    fn advance(&mut self, ready: Ready) -> Progress;

    /// Gives up the transaction under way: how it stands if no reply ever comes.
    fn abandon(&mut self) -> Ending;

    /// Ends the conversation.
    fn close(self: Box<Self>) -> SessionReport;
}

/// Opens the conversations of a load. Opening blocks; it is never called from a thread that carries load.
pub trait Opener: Send + Sync {
    /// Opens the conversation of connection `number`, counted from 0.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    fn open(&self, number: u32) -> Result<Box<dyn Session>, Failure>;
}
