//! A session without a server: a socket pair that answers itself, and a script of how transactions end.

use plimsoll_record::{Outcome, Verification};
use plimsoll_workload::{Begun, Ending, Failure, Progress, Ready, Session, SessionReport};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// How a scripted transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripted {
    /// Ends well.
    Done,
    /// The server refuses it with this SQLSTATE.
    Failed(&'static str),
    /// Nothing is to be done.
    Skipped,
    /// The connection breaks after the commit was sent.
    Lost,
    /// No reply ever comes.
    Silent,
}

/// A session whose transactions end as `script` says for their index. All are of kind 0 with one statement.
#[derive(Debug)]
pub struct MockSession {
    near: UnixStream,
    far: UnixStream,
    script: fn(u64) -> Scripted,
    under_way: Option<Scripted>,
    sent: bool,
    begun: i64,
}

impl MockSession {
    /// # Errors
    /// When the system gives no socket pair.
    pub fn new(script: fn(u64) -> Scripted) -> std::io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        Ok(Self { near, far, script, under_way: None, sent: false, begun: 0 })
    }
}

impl AsFd for MockSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.near.as_fd()
    }
}

fn ending(outcome: Outcome, failure: Option<&str>) -> Ending {
    let failure = failure.map(|sqlstate| Failure { sqlstate: sqlstate.to_owned(), message: "as scripted".to_owned() });
    Ending { outcome, statements: 1, failure, alive: outcome != Outcome::Lost }
}

impl Session for MockSession {
    fn backend_pid(&self) -> u32 {
        1
    }

    fn begin(&mut self, index: u64) -> Begun {
        let scripted = (self.script)(index);
        self.begun += 1;
        self.under_way = (scripted != Scripted::Skipped).then_some(scripted);
        self.sent = false;
        Begun { kind: 0, skipped: scripted == Scripted::Skipped }
    }

    fn advance(&mut self, ready: Ready) -> Progress {
        if self.under_way.is_some() && !self.sent {
            self.sent = true;
            if self.under_way != Some(Scripted::Silent) && self.far.write_all(b"x").is_err() {
                return Progress::Closed;
            }
        }
        if ready == Ready::Nothing || !matches!(self.near.read(&mut [0; 8]), Ok(1..)) {
            return Progress::Waiting { to_write: false };
        }
        match self.under_way.take() {
            Some(Scripted::Done) => Progress::Ended(ending(Outcome::Done, None)),
            Some(Scripted::Failed(sqlstate)) => Progress::Ended(ending(Outcome::Failed, Some(sqlstate))),
            Some(Scripted::Lost) => Progress::Ended(ending(Outcome::Lost, Some(Failure::BROKEN))),
            Some(Scripted::Skipped | Scripted::Silent) | None => Progress::Waiting { to_write: false },
        }
    }

    fn abandon(&mut self) -> Ending {
        self.under_way = None;
        ending(Outcome::Lost, Some(Failure::ABANDONED))
    }

    fn close(self) -> SessionReport {
        SessionReport { verification: Verification::default(), totals: vec![("begun", self.begun)] }
    }
}
