//! Sessions that complete: each operation is one of the kernel's, nothing, a time or a pipe that nobody writes to.

use super::{MockOpener, Script, Scripted, ending, pause, report, scripted_ending};
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, Buffer, Completed, CompletionOpener, CompletionSession, Ending, Failure, Operation};
use plimsoll_session::{Pause, SessionReport};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl CompletionOpener for MockOpener {
    fn open(&self, number: u32) -> Result<Box<dyn CompletionSession>, Failure> {
        let server_process = self.admit(number)?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| Failure { code: Failure::BROKEN.to_owned(), message: error.to_string() })?;
        Ok(Box::new(MockCompletionSession {
            script: Arc::clone(&self.script),
            scripted: None,
            silence: Arc::new(reader),
            _unwritten: writer,
            server_process,
            begun: 0,
        }))
    }
}

/// A session of a [`MockOpener`] that completes.
struct MockCompletionSession {
    script: Script,
    scripted: Option<Scripted>,
    silence: Arc<OwnedFd>,
    /// The other end, which is open as long as the session is.
    _unwritten: OwnedFd,
    server_process: u32,
    begun: i64,
}

impl CompletionSession for MockCompletionSession {
    fn server_process(&self) -> u32 {
        self.server_process
    }

    fn pause(&mut self, after: u64) -> Pause {
        pause((self.script)(after))
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.begun += 1;
        let scripted = (self.script)(index);
        self.scripted = Some(scripted);
        Begun { kind: 0, skipped: scripted == Scripted::Skipped }
    }

    fn advance(&mut self, completed: Option<Completed>, operations: &mut Vec<Operation>) -> Option<Ending> {
        let scripted = self.scripted?;
        if let Some(Completed { result, .. }) = completed {
            return Some(result.map_or_else(|_| ending(Outcome::Failed, Some("58030")), |_| scripted_ending(scripted)));
        }
        operations.push(match scripted {
            Scripted::DoneAfter(ns) | Scripted::DoneAfterRest(ns) | Scripted::HandedIn(ns, _) => {
                Operation::Timeout { ns }
            }
            Scripted::Silent => {
                Operation::Read { file: Arc::clone(&self.silence), offset: 0, buffer: Buffer::zeroed(8) }
            }
            _ => Operation::Nop,
        });
        None
    }

    fn abandon(&mut self) -> Ending {
        ending(Outcome::Lost, Some(Failure::ABANDONED))
    }

    fn close(self: Box<Self>) -> SessionReport {
        report(self.begun)
    }
}
