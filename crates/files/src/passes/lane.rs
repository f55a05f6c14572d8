//! One session's way through a pass, whatever calls it makes: its place, and what it has counted.

use super::progress::Progress;
use plimsoll_record::{Outcome, VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_session::{Begun, Ending, Failure, Pause, SessionReport};

/// A session that is through with its file waits this long, or until the pass is over.
const REST_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The kernel refused: it would again.
    Refused(Failure),
    /// What was read is not what was written, in a sentence.
    Wrong(String),
}

/// What an operation has moved, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// From files.
    pub(crate) read: u64,
    /// To files.
    pub(crate) written: u64,
}

impl Moved {
    fn add(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
    }
}

/// A session's way.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Which file it goes over.
    pub(crate) file: u32,
    /// Given out to this session, and not yet passed.
    place: Option<u64>,
    index: u64,
    /// System calls since the last operation ended.
    pub(crate) calls: u32,
    all_calls: u64,
    /// Payload of what was done.
    bytes: u64,
    moved: Moved,
    of_failed: Moved,
    verification: Verification,
}

impl Lane {
    pub(crate) fn new(file: u32) -> Self {
        let verification = Verification::default();
        let (moved, of_failed) = (Moved::default(), Moved::default());
        Self { file, place: None, index: 0, calls: 0, all_calls: 0, bytes: 0, moved, of_failed, verification }
    }

    /// Before the next operation of a closed loop: its place is taken here, so that nothing is begun for which there is
    /// none.
    pub(crate) fn pause(&mut self, progress: &Progress) -> Pause {
        self.take(progress);
        Pause { ns: if self.place.is_some() { 0 } else { REST_NS }, since_planned: false }
    }

    /// The same of a session that has a thread of its own: where there is no place it rests until the pass is over,
    /// which it notices at once.
    pub(crate) fn pause_or_rest(&mut self, progress: &Progress) -> Pause {
        let pause = self.pause(progress);
        if pause.ns > 0 {
            progress.rest();
        }
        pause
    }

    /// Takes a place if it has none.
    fn take(&mut self, progress: &Progress) -> Option<u64> {
        self.place = self.place.or_else(|| progress.claim(self.file));
        self.place
    }

    /// Begins an operation at its place; `None` if there is nothing more to do.
    pub(crate) fn begin(&mut self, progress: &Progress, index: u64) -> Option<u64> {
        self.index = index;
        self.take(progress)
    }

    /// The answer to the engine.
    pub(crate) fn begun(kind: u8, place: Option<u64>) -> Begun {
        Begun { kind, skipped: place.is_none() }
    }

    /// Its operation has come to its end. True for the last one of the file, whose closing belongs to it:
    /// [`Lane::closed`] is next.
    pub(crate) fn arrive(&mut self, progress: &Progress, result: &Result<bool, Trouble>) -> bool {
        if self.place.take().is_none() {
            return false;
        }
        if let Err(Trouble::Refused(_)) = result {
            progress.fail();
            return false;
        }
        progress.pass(self.file)
    }

    /// The file was closed, or was not because the kernel refused.
    pub(crate) fn closed(&self, progress: &Progress, is_refused: bool) {
        if is_refused {
            progress.lose();
        }
        progress.file_is_through(self.file);
    }

    /// How an operation ended. `closing`: why the file could not be closed after it. What is read and written back is
    /// payload once.
    pub(crate) fn end(&mut self, (moved, result): (Moved, Result<bool, Trouble>), closing: Option<Failure>) -> Ending {
        let failure = self.judge(result).or(closing);
        let requests = std::mem::take(&mut self.calls);
        self.all_calls += u64::from(requests);
        self.moved.add(moved);
        let bytes = moved.read.max(moved.written);
        let outcome = match failure {
            Some(_) => {
                self.of_failed.add(moved);
                Outcome::Failed
            }
            None => {
                self.bytes += bytes;
                Outcome::Done
            }
        };
        Ending { statements: 1, requests, bytes, failure, ..Ending::of_nothing(outcome, true) }
    }

    /// Counts what was compared; gives why the operation failed.
    fn judge(&mut self, result: Result<bool, Trouble>) -> Option<Failure> {
        match result {
            Ok(is_compared) => {
                self.verification.checked += u64::from(is_compared);
                None
            }
            Err(Trouble::Refused(failure)) => Some(failure),
            Err(Trouble::Wrong(message)) => {
                self.verification.checked += 1;
                self.verification.wrong += 1;
                if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
                    self.verification.examples.push(WrongAnswer { index: self.index, message: message.clone() });
                }
                Some(Failure { code: Failure::WRONG_ANSWER.to_owned(), message })
            }
        }
    }

    /// It was given up under way: nobody knows what its place holds.
    pub(crate) fn abandon(&mut self, progress: &Progress) -> Ending {
        self.place = None;
        progress.lose();
        let message = "no completion within the grace period after the segment".to_owned();
        let failure = Failure { code: Failure::ABANDONED.to_owned(), message };
        let requests = std::mem::take(&mut self.calls);
        Ending { requests, failure: Some(failure), ..Ending::of_nothing(Outcome::Lost, false) }
    }

    /// Ends it. Where system calls are none of its own they are not counted.
    pub(crate) fn close(self, progress: &Progress, counts_calls: bool) -> SessionReport {
        if let Some(place) = self.place {
            progress.give_back(self.file, place);
        }
        let Self { moved, of_failed, .. } = self;
        let mut totals = vec![
            ("bytes_read", moved.read as i64),
            ("bytes_written", moved.written as i64),
            ("bytes_read_failed", of_failed.read as i64),
            ("bytes_written_failed", of_failed.written as i64),
        ];
        if counts_calls {
            totals.push(("system_calls", self.all_calls as i64));
        }
        let least = progress.close(self.file, self.bytes);
        totals.extend(least.map(|least| ("min_transfer_bytes", least as i64)));
        SessionReport { requests: self.all_calls, verification: self.verification, totals }
    }
}
