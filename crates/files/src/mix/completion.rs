//! Sessions on an io_uring: reads, writes, appends and fsyncs, one under way a session.

use super::blocking::{buffer, refused};
use super::live::Live;
use super::operator::Operator;
use super::plan::{Sync, Task};
use crate::tree::Tree;
use plimsoll_session::{
    Begun, Buffer, Completed, CompletionOpener, CompletionSession, Ending, Failure, Operation, SessionReport,
};
use rustix::io::Errno;
use std::sync::Arc;

/// Opens them.
pub(super) struct Opener {
    pub(super) live: Arc<Live>,
    pub(super) tree: Arc<Tree>,
}

impl CompletionOpener for Opener {
    fn open(&self, number: u32) -> Result<Box<dyn CompletionSession>, Failure> {
        let operator = Operator::new(&self.live, &self.tree, number).map_err(refused)?;
        let buffer = buffer(&self.live);
        let most = buffer.len();
        Ok(Box::new(Session { operator, buffer: Some(buffer), most, calls: 0 }))
    }
}

struct Session {
    operator: Operator,
    /// `None` while the kernel has it, and when it never gave it back.
    buffer: Option<Buffer>,
    /// Its whole length.
    most: usize,
    /// Operations handed out for the one under way.
    calls: u32,
}

/// How it may end that a write was made durable.
fn durable(sync: Sync, file: &Arc<std::os::fd::OwnedFd>) -> Option<Operation> {
    match sync {
        Sync::None | Sync::ODsync => None,
        Sync::Fsync => Some(Operation::Fsync { file: Arc::clone(file) }),
        Sync::Fdatasync => Some(Operation::Fdatasync { file: Arc::clone(file) }),
    }
}

impl Session {
    /// The buffer, as long as what is moved.
    fn lend(&mut self) -> Buffer {
        let mut buffer = self.buffer.take().unwrap_or_else(|| Buffer::zeroed(self.most));
        buffer.set_length(self.operator.at.bytes as usize);
        buffer
    }

    fn take(&mut self, mut buffer: Buffer) {
        buffer.set_length(self.most);
        self.buffer = Some(buffer);
    }

    fn start(&mut self) -> Operation {
        let (file, offset) = (Arc::clone(self.operator.file()), self.operator.at.offset);
        match self.operator.at.task {
            Task::Read { .. } => Operation::Read { file, offset, buffer: self.lend() },
            Task::Write { .. } | Task::Append { .. } => Operation::Write { file, offset, buffer: self.lend() },
            _ => Operation::Fsync { file },
        }
    }

    fn sync(&self) -> Sync {
        match self.operator.at.task {
            Task::Write { sync, .. } | Task::Append { sync, .. } => sync,
            _ => Sync::None,
        }
    }

    fn written(&mut self, result: Result<usize, Errno>, operations: &mut Vec<Operation>) -> Option<Ending> {
        let bytes = self.operator.at.bytes as usize;
        let failed = match result {
            Ok(written) if written == bytes => None,
            // What is on the disk is known to nobody: once more, all of it, and the kernel says why.
            Ok(_) if self.calls == 1 => {
                operations.push(self.start());
                self.calls += 1;
                return None;
            }
            Ok(_) => Some(Errno::IO),
            Err(errno) => Some(errno),
        };
        let call = if matches!(self.operator.at.task, Task::Append { .. }) { "append" } else { "write" };
        if let Some(errno) = failed {
            return Some(self.operator.has_written(Err((call, errno)), self.calls));
        }
        match durable(self.sync(), self.operator.file()) {
            Some(operation) => {
                operations.push(operation);
                self.calls += 1;
                None
            }
            None => Some(self.operator.has_written(Ok(()), self.calls)),
        }
    }

    fn synced(&mut self, result: Result<usize, Errno>) -> Ending {
        match (self.operator.at.task, result) {
            (Task::Fsync, Ok(_)) => self.operator.done(1, 0),
            (Task::Fsync, Err(errno)) => self.operator.errs("fsync", errno, 1),
            (_, result) => {
                let call = if self.sync() == Sync::Fsync { "fsync" } else { "fdatasync" };
                self.operator.has_written(result.map(|_| ()).map_err(|errno| (call, errno)), self.calls)
            }
        }
    }
}

impl CompletionSession for Session {
    fn begin(&mut self, index: u64) -> Begun {
        let buffer = self.buffer.get_or_insert_with(|| Buffer::zeroed(self.most));
        self.operator.begin(index, buffer)
    }

    fn advance(&mut self, completed: Option<Completed>, operations: &mut Vec<Operation>) -> Option<Ending> {
        let Some(Completed { operation, result }) = completed else {
            let refused = self.operator.refused();
            if refused.is_none() {
                self.calls = 1;
                operations.push(self.start());
            }
            return refused;
        };
        let result = match result {
            Ok(bytes) => Ok(bytes as usize),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        };
        match operation {
            Operation::Read { buffer, .. } => {
                let ending = self.operator.has_read(result, &buffer);
                self.take(buffer);
                Some(ending)
            }
            Operation::Write { buffer, .. } => {
                self.take(buffer);
                self.written(result, operations)
            }
            _ => Some(self.synced(result)),
        }
    }

    fn abandon(&mut self) -> Ending {
        self.operator.abandon()
    }

    fn close(self: Box<Self>) -> SessionReport {
        self.operator.close(false)
    }
}
