//! A pass on io_uring: as many sessions share a file as operations are to be under way on it.
//!
//! The fact that constrains it: records complete in any order. So each has its place in the pass, and whoever comes back
//! last is the one that syncs the file, where that belongs to the pass.

use super::run::Run;
use crate::passes::{Due, Lane, Moved, Trouble, file_name, refused};
use plimsoll_session::{Begun, Buffer, Completed, CompletionOpener, CompletionSession, Ending, Failure, Operation};
use plimsoll_session::{Pause, Registered, SessionReport};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Opens the sessions of the pass.
pub(super) struct Depth {
    run: Arc<Run>,
    files: Vec<Arc<OwnedFd>>,
}

impl Depth {
    /// Opens the files, one descriptor each.
    ///
    /// # Errors
    /// When one cannot be opened as the pass wants it.
    pub(super) fn new(run: Arc<Run>) -> Result<Self, Failure> {
        let files = (0..run.parameters.processes).map(|file| run.open(file).map(Arc::new)).collect::<Result<_, _>>()?;
        Ok(Self { run, files })
    }
}

impl CompletionOpener for Depth {
    fn open(&self, number: u32) -> Result<Box<dyn CompletionSession>, Failure> {
        let file = self.run.parameters.file_of(number);
        let is_writer = self.run.parameters.is_writer(file);
        Ok(Box::new(UnderWay {
            descriptor: Arc::clone(&self.files[file as usize]),
            lane: Lane::new(file, self.run.parameters.closings_of(file)),
            due: None,
            record: 0,
            is_writer,
            buffer: Some(self.run.buffer()),
            is_tried_again: false,
            run: Arc::clone(&self.run),
        }))
    }
}

struct UnderWay {
    run: Arc<Run>,
    descriptor: Arc<OwnedFd>,
    lane: Lane,
    due: Option<Due>,
    record: u64,
    is_writer: bool,
    /// Out while an operation is under way.
    buffer: Option<Buffer>,
    is_tried_again: bool,
}

impl UnderWay {
    fn operation(&mut self, buffer: Buffer) -> Operation {
        self.lane.calls += 1;
        let (file, offset) = (Arc::clone(&self.descriptor), self.run.offset(self.record));
        match (self.is_writer, self.run.parameters.uncached) {
            (true, false) => Operation::Write { file, offset, buffer },
            (true, true) => Operation::WriteUncached { file, offset, buffer },
            (false, false) => Operation::Read { file, offset, buffer },
            (false, true) => Operation::ReadUncached { file, offset, buffer },
        }
    }

    fn refused(&self, call: &str, error: &io::Error) -> Failure {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        refused(&file_name(self.lane.file), call, errno)
    }

    /// What came of the record; `None` if its write is to be tried again, because a part of it was written.
    fn take(&mut self, buffer: &Buffer, result: io::Result<u32>) -> Option<(Moved, Result<bool, Trouble>)> {
        let call = if self.is_writer { "write" } else { "read" };
        Some(match result {
            Err(error) => (Moved::default(), Err(Trouble::Refused(self.refused(call, &error)))),
            Ok(bytes) if !self.is_writer => {
                let verified = self.run.verify(self.lane.file, self.record, &buffer[..bytes as usize]);
                (Moved { read: bytes.into(), written: 0 }, verified.map_err(Trouble::Wrong))
            }
            Ok(bytes) if bytes as usize == buffer.len() => (Moved { read: 0, written: bytes.into() }, Ok(false)),
            // Why it wrote no more the kernel says to who asks again.
            Ok(_) if !self.is_tried_again => return None,
            Ok(bytes) => {
                let mut failure = self.refused(call, &io::Error::from(Errno::IO));
                failure.message = format!("{}: {bytes} bytes written of {}", file_name(self.lane.file), buffer.len());
                (Moved { read: 0, written: bytes.into() }, Err(Trouble::Refused(failure)))
            }
        })
    }
}

impl CompletionSession for UnderWay {
    fn registered(&mut self) -> Registered<'_> {
        let parameters = &self.run.parameters;
        let files = parameters.fixed_files.then(|| Arc::clone(&self.descriptor)).into_iter().collect();
        let buffers = self.buffer.as_mut().filter(|_| parameters.fixed_buffers).into_iter().collect();
        Registered { files, buffers }
    }

    fn pause(&mut self, _after: u64) -> Pause {
        self.lane.pause(&self.run.progress)
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.due = self.lane.begin(&self.run.progress, index);
        if let Some(Due::Place(place)) = self.due {
            self.record = self.run.record(self.lane.file, place);
            self.is_tried_again = false;
            if let Some(buffer) = self.buffer.as_mut().filter(|_| self.is_writer) {
                self.run.stamp(self.lane.file, self.record, buffer);
            }
        }
        self.run.begun(self.lane.file, self.due)
    }

    fn advance(&mut self, completed: Option<Completed>, operations: &mut Vec<Operation>) -> Option<Ending> {
        let Some(Completed { operation, result }) = completed else {
            if let Some(Due::Closing(_)) = self.due {
                self.lane.calls += 1;
                operations.push(Operation::Fsync { file: Arc::clone(&self.descriptor) });
                return None;
            }
            let buffer = self.buffer.take()?;
            let operation = self.operation(buffer);
            operations.push(operation);
            return None;
        };
        match operation {
            Operation::Read { buffer, .. }
            | Operation::ReadUncached { buffer, .. }
            | Operation::Write { buffer, .. }
            | Operation::WriteUncached { buffer, .. } => match self.take(&buffer, result) {
                Some(moved) => {
                    self.buffer = Some(buffer);
                    self.lane.arrive(&self.run.progress, &moved.1);
                    Some(self.lane.end(moved))
                }
                None => {
                    self.is_tried_again = true;
                    let operation = self.operation(buffer);
                    operations.push(operation);
                    None
                }
            },
            _ => {
                let refused = result.err().map(|error| self.refused("fsync", &error));
                Some(self.lane.closed(&self.run.progress, refused))
            }
        }
    }

    fn abandon(&mut self) -> Ending {
        self.lane.abandon(&self.run.progress)
    }

    fn close(self: Box<Self>) -> SessionReport {
        self.lane.close(&self.run.progress, false)
    }
}
