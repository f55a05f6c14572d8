//! Sessions that complete on a file: what they write is read back and compared. And on a pipe that nobody writes to.

use plimsoll_record::{Outcome, Verification};
use plimsoll_session::SessionReport;
use plimsoll_session::{Begun, Buffer, Completed, CompletionOpener, CompletionSession, Ending, Failure, Operation};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What a session writes, in bytes; it has as much of the file for itself.
pub(crate) const BLOCK: usize = 8_192;

/// The kinds, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writes the block and has it reach its device.
    Written,
    /// Reads both halves of it at once.
    Read,
    /// Reads from what is open for writing only.
    Refused,
    /// Reads from the pipe, and ends without that.
    Ahead,
    /// Reads from the pipe.
    Silent,
}

/// Opens sessions that share a file; a transaction's kind is what `kind` says for its index.
pub(crate) struct Files {
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) silence: Arc<OwnedFd>,
    pub(crate) writer: Arc<OwnedFd>,
    kind: fn(u64) -> Kind,
}

impl Files {
    pub(crate) fn new(kind: fn(u64) -> Kind) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len(100 * BLOCK as u64).unwrap();
        let (silence, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        Self { file: Arc::new(file.into()), silence: Arc::new(silence), writer: Arc::new(writer), kind }
    }

    /// How many others have one of the descriptors.
    pub(crate) fn held(&self) -> usize {
        [&self.file, &self.silence, &self.writer].into_iter().map(|file| Arc::strong_count(file) - 1).sum()
    }

    /// What nobody has read from the pipe of what is written to it now.
    pub(crate) fn unread(&self) -> u64 {
        rustix::io::write(&self.writer, b"unread").unwrap();
        rustix::io::ioctl_fionread(self.silence.as_fd()).unwrap()
    }
}

impl CompletionOpener for Files {
    fn open(&self, number: u32) -> Result<Box<dyn CompletionSession>, Failure> {
        Ok(Box::new(FileSession {
            file: Arc::clone(&self.file),
            silence: Arc::clone(&self.silence),
            writer: Arc::clone(&self.writer),
            offset: u64::from(number) * BLOCK as u64,
            kind_of: self.kind,
            kind: Kind::Read,
            value: 0,
            written: 0,
            bytes: 0,
            wrong: false,
            verification: Verification::default(),
        }))
    }
}

struct FileSession {
    file: Arc<OwnedFd>,
    silence: Arc<OwnedFd>,
    writer: Arc<OwnedFd>,
    offset: u64,
    kind_of: fn(u64) -> Kind,
    kind: Kind,
    /// Of the transaction under way.
    value: u8,
    /// The last value written.
    written: u8,
    bytes: u64,
    wrong: bool,
    verification: Verification,
}

impl FileSession {
    fn start(&self, operations: &mut Vec<Operation>) {
        let read = |file: &Arc<OwnedFd>, offset: u64| {
            let buffer = Buffer::zeroed(BLOCK / 2);
            Operation::Read { file: Arc::clone(file), offset, buffer }
        };
        match self.kind {
            Kind::Written => {
                let mut buffer = Buffer::zeroed(BLOCK);
                buffer.fill(self.value);
                operations.push(Operation::Write { file: Arc::clone(&self.file), offset: self.offset, buffer });
            }
            Kind::Read => operations.extend([0, BLOCK as u64 / 2].map(|half| read(&self.file, self.offset + half))),
            Kind::Refused => operations.push(read(&self.writer, 0)),
            Kind::Ahead => operations.extend([read(&self.silence, 0), Operation::Nop]),
            Kind::Silent => operations.push(read(&self.silence, 0)),
        }
    }

    fn ending(&self, outcome: Outcome, code: Option<&str>) -> Option<Ending> {
        let failure = code.map(|code| Failure { code: code.to_owned(), message: "as arranged".to_owned() });
        let alive = outcome != Outcome::Lost;
        Some(Ending { statements: 1, requests: 1, bytes: self.bytes, failure, ..Ending::of_nothing(outcome, alive) })
    }
}

impl CompletionSession for FileSession {
    fn begin(&mut self, index: u64) -> Begun {
        (self.kind, self.value, self.bytes, self.wrong) = ((self.kind_of)(index), (index % 251) as u8, 0, false);
        Begun { kind: self.kind as u8, skipped: false }
    }

    fn advance(&mut self, completed: Option<Completed>, operations: &mut Vec<Operation>) -> Option<Ending> {
        let Some(Completed { operation, result }) = completed else {
            self.start(operations);
            return None;
        };
        let Ok(bytes) = result else { return self.ending(Outcome::Failed, Some("58030")) };
        self.bytes += u64::from(bytes);
        match operation {
            Operation::Write { file, .. } => {
                operations.push(Operation::Fdatasync { file });
                None
            }
            Operation::Fdatasync { .. } => {
                self.written = self.value;
                self.ending(Outcome::Done, None)
            }
            Operation::Read { buffer, .. } => {
                self.wrong |= buffer.iter().any(|&byte| byte != self.written);
                if self.bytes < BLOCK as u64 {
                    return None;
                }
                self.verification.checked += 1;
                if self.wrong {
                    self.ending(Outcome::Failed, Some(Failure::WRONG_ANSWER))
                } else {
                    self.ending(Outcome::Done, None)
                }
            }
            _ => self.ending(Outcome::Done, None),
        }
    }

    fn abandon(&mut self) -> Ending {
        let lost = self.ending(Outcome::Lost, Some(Failure::ABANDONED));
        lost.unwrap()
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport { requests: 0, verification: self.verification, totals: Vec::new() }
    }
}
