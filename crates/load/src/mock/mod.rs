//! Sessions without a server: a script says how transactions end, and each has something that answers.

mod blocking;
mod completion;
mod readiness;

use plimsoll_record::{Outcome, Verification};
use plimsoll_session::{Ending, Failure, Pause, SessionReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How a scripted transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripted {
    /// Ends well at once.
    Done,
    /// Ends well after so many nanoseconds.
    DoneAfter(i64),
    /// Ends well after a rest of so many nanoseconds.
    DoneAfterRest(i64),
    /// Ends well after so many retries.
    DoneAfterRetries(u32),
    /// Ends well; so many nanoseconds later the server closes the connection.
    DoneThenClosed(i64),
    /// Ends well at once; its user pauses for so many nanoseconds.
    DoneThenPaused(i64),
    /// Ends well after so many nanoseconds; its user pauses for so many from when it was due.
    HandedIn(i64, i64),
    /// The server refuses it with this SQLSTATE.
    Failed(&'static str),
    /// Nothing is to be done.
    Skipped,
    /// The connection breaks after the commit was sent.
    Lost,
    /// No reply ever comes.
    Silent,
    /// The connection breaks, and closing it never comes back (sessions that block).
    LostAndStuck,
}

/// Of what a session calls its server's process, the number under which it was opened; above it how many were before.
pub const NUMBER_BITS: u32 = 16;

type Script = Arc<dyn Fn(u64) -> Scripted + Send + Sync>;

/// Opens sessions whose transactions end as the script says for their index. All are of kind 0 with one statement.
pub struct MockOpener {
    script: Script,
    opened: AtomicU32,
    accepted: u32,
    silent: bool,
    deaf: bool,
}

impl MockOpener {
    /// Opens as many as are asked for.
    pub fn new(script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self::accepting(u32::MAX, script)
    }

    /// Refuses after the first `accepted`.
    pub fn accepting(accepted: u32, script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), opened: AtomicU32::new(0), accepted, silent: false, deaf: false }
    }

    /// Answers nothing any more after the first `accepted`: whoever asks waits for ever.
    pub fn silent_after(accepted: u32, script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { silent: true, ..Self::accepting(accepted, script) }
    }

    /// Its sessions that block cannot be interrupted.
    pub fn deaf(script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { deaf: true, ..Self::new(script) }
    }

    /// How often it was asked to open.
    pub fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl MockOpener {
    /// Counts an opening; gives what the session calls its server's process, or refuses.
    fn admit(&self, number: u32) -> Result<u32, Failure> {
        let before = self.opened.fetch_add(1, Ordering::Relaxed);
        if self.silent && before >= self.accepted {
            loop {
                std::thread::park();
            }
        }
        if before >= self.accepted {
            return Err(Failure { code: "53300".to_owned(), message: "too many connections".to_owned() });
        }
        Ok((1 + before) << NUMBER_BITS | number)
    }
}

fn scripted_ending(scripted: Scripted) -> Ending {
    match scripted {
        Scripted::Failed(code) => ending(Outcome::Failed, Some(code)),
        Scripted::Lost | Scripted::LostAndStuck => ending(Outcome::Lost, Some(Failure::BROKEN)),
        Scripted::DoneAfterRetries(retries) => Ending { retries, ..ending(Outcome::Done, None) },
        _ => ending(Outcome::Done, None),
    }
}

fn pause(scripted: Scripted) -> Pause {
    match scripted {
        Scripted::DoneThenPaused(ns) => Pause { ns, since_planned: false },
        Scripted::HandedIn(_, ns) => Pause { ns, since_planned: true },
        _ => Pause::default(),
    }
}

fn report(begun: i64) -> SessionReport {
    SessionReport { requests: 0, verification: Verification::default(), totals: vec![("begun", begun)] }
}

fn ending(outcome: Outcome, failure: Option<&str>) -> Ending {
    let failure = failure.map(|code| Failure { code: code.to_owned(), message: "as scripted".to_owned() });
    Ending { outcome, statements: 1, retries: 0, requests: 1, bytes: 0, failure, alive: outcome != Outcome::Lost }
}
