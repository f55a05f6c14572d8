//! Sessions that complete: they hand out operations, and go on when the kernel has performed them.

use crate::{Begun, Buffer, Ending, Failure, Pause, SessionReport};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What the kernel is to perform. Who performs it owns it until it has completed, its buffer and its file with it.
#[derive(Debug)]
pub enum Operation {
    /// Nothing; it completes at once.
    Nop,
    /// Fills the buffer with bytes of the file.
    Read {
        /// What is read.
        file: Arc<OwnedFd>,
        /// Of the first byte; without meaning to a pipe or a socket.
        offset: u64,
        /// As many as it is long, at most.
        buffer: Buffer,
    },
    /// Writes the buffer's bytes to the file.
    Write {
        /// What is written to.
        file: Arc<OwnedFd>,
        /// Of the first byte; without meaning to a pipe or a socket.
        offset: u64,
        /// All of them, at most.
        buffer: Buffer,
    },
    /// As [`Operation::Read`], and the pages that it brings into the page cache leave it again (RWF_DONTCACHE).
    ReadUncached {
        /// What is read.
        file: Arc<OwnedFd>,
        /// Of the first byte.
        offset: u64,
        /// As many as it is long, at most.
        buffer: Buffer,
    },
    /// As [`Operation::Write`], and the pages that it makes are written back at once and leave the page cache (RWF_DONTCACHE).
    WriteUncached {
        /// What is written to.
        file: Arc<OwnedFd>,
        /// Of the first byte.
        offset: u64,
        /// All of them, at most.
        buffer: Buffer,
    },
    /// Has the file's data and metadata reach its device.
    Fsync {
        /// Which file.
        file: Arc<OwnedFd>,
    },
    /// Has the file's data reach its device, and what of its metadata is needed to find it.
    Fdatasync {
        /// Which file.
        file: Arc<OwnedFd>,
    },
    /// Completes after so long.
    Timeout {
        /// In nanoseconds.
        ns: i64,
    },
}

/// An operation that has completed.
#[derive(Debug)]
pub struct Completed {
    /// As it was handed out; what was read is in its buffer.
    pub operation: Operation,
    /// How many bytes were read or written, which may be fewer than asked for; 0 of other operations. Or why it failed.
    pub result: io::Result<u32>,
}

/// What the ring that carries a session is to know beforehand, so that the kernel looks up a file, and maps a buffer, once and not for
/// each operation. An operation says nothing of it: the ring knows its files and buffers again.
#[derive(Debug, Default)]
pub struct Registered<'a> {
    /// Open as long as the ring lives.
    pub files: Vec<Arc<OwnedFd>>,
    /// Their memory stays in the machine's memory as long as the ring lives.
    pub buffers: Vec<&'a mut Buffer>,
}

/// A conversation whose operations the kernel performs while others go on. It never blocks, and has one transaction under way.
pub trait CompletionSession: Send {
    /// The server's process, 0 if unknown or if there is none.
    fn server_process(&self) -> u32 {
        0
    }

    /// What its ring is to register. Asked once, before the first transaction; not of a session that was opened again.
    fn registered(&mut self) -> Registered<'_> {
        Registered::default()
    }

    /// The pause before the next transaction of a closed loop, as [`Session::pause`](crate::Session::pause) has it.
    fn pause(&mut self, _after: u64) -> Pause {
        Pause::default()
    }

    /// Prepares transaction `index`; it hands nothing out before [`CompletionSession::advance`].
    fn begin(&mut self, index: u64) -> Begun;

    /// Goes on: first with nothing, then with each operation that has completed, in the order in which they did. It appends to
    /// `operations` what is to be performed next, all of it side by side. Gives how the transaction ended, if it has; until then
    /// something has to be under way. What is still under way of a transaction that has ended is cancelled, and nothing is heard
    /// of it.
    fn advance(&mut self, completed: Option<Completed>, operations: &mut Vec<Operation>) -> Option<Ending>;

    /// Gives up the transaction under way: how it stands if its operations never complete.
    fn abandon(&mut self) -> Ending;

    /// Ends the conversation.
    fn close(self: Box<Self>) -> SessionReport;
}

/// Opens the conversations of a load that complete. Opening blocks; it is never called from a thread that carries load.
pub trait CompletionOpener: Send + Sync {
    /// Opens the conversation of connection `number`, counted from 0.
    ///
    /// # Errors
    /// When what it is about cannot be reached or opened.
    fn open(&self, number: u32) -> Result<Box<dyn CompletionSession>, Failure>;
}
