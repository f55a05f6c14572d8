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

/// What of a file's end belongs to the pass: an operation of its own each, after all others on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Its data reach the device.
    Fsync,
    /// Its descriptor is closed.
    Close,
}

impl Closing {
    /// Those that are asked for.
    pub(crate) fn of(fsync: bool, close: bool) -> &'static [Self] {
        match (fsync, close) {
            (false, false) => &[],
            (true, false) => &[Self::Fsync],
            (false, true) => &[Self::Close],
            (true, true) => &[Self::Fsync, Self::Close],
        }
    }

    /// As kinds of operation are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Close => "close",
        }
    }
}

/// What a session is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The record, chunk or seek of this place.
    Place(u64),
    /// All is done with the file.
    Closing(Closing),
}

/// A session's way.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Which file it goes over.
    pub(crate) file: u32,
    /// Given out to this session, and not yet passed.
    place: Option<u64>,
    /// What of the file's closing is left to this session, if it is the one that closes it.
    closing: Option<&'static [Closing]>,
    /// What closing the file consists of.
    closings: &'static [Closing],
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
    pub(crate) fn new(file: u32, closings: &'static [Closing]) -> Self {
        let verification = Verification::default();
        let (moved, of_failed) = (Moved::default(), Moved::default());
        let (place, closing) = (None, None);
        let (index, calls, all_calls, bytes) = (0, 0, 0, 0);
        Self { file, place, closing, closings, index, calls, all_calls, bytes, moved, of_failed, verification }
    }

    /// Before the next operation of a closed loop: its place is taken here, so that nothing is begun for which there is
    /// none.
    pub(crate) fn pause(&mut self, progress: &Progress) -> Pause {
        let is_due = self.take(progress).is_some();
        Pause { ns: if is_due { 0 } else { REST_NS }, since_planned: false }
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

    /// Takes a place if it has none, or what of the closing is next.
    fn take(&mut self, progress: &Progress) -> Option<Due> {
        if self.place.is_none() && self.closing.is_none() {
            self.place = progress.claim(self.file);
            if self.place.is_none() && progress.may_close(self.file) {
                self.closing = Some(self.closings);
                self.close_on(progress);
            }
        }
        let closing = || self.closing?.first().copied().map(Due::Closing);
        self.place.map(Due::Place).or_else(closing)
    }

    /// Nothing is left of the closing: the file is closed.
    fn close_on(&mut self, progress: &Progress) {
        if self.closing.is_some_and(<[Closing]>::is_empty) {
            self.closing = None;
            progress.file_is_closed();
        }
    }

    /// Begins what is due; `None` if there is nothing more to do.
    pub(crate) fn begin(&mut self, progress: &Progress, index: u64) -> Option<Due> {
        self.index = index;
        self.take(progress)
    }

    /// The answer to the engine. `kinds`: how many there are of other operations than those of the closing, which is `closings`
    /// in the whole pass.
    pub(crate) fn begun(kind: u8, due: Option<Due>, (kinds, closings): (usize, &[Closing])) -> Begun {
        let of_closing = |closing| closings.iter().position(|&other| other == closing).unwrap_or_default();
        let kind = match due {
            Some(Due::Closing(closing)) => (kinds + of_closing(closing)) as u8,
            Some(Due::Place(_)) | None => kind,
        };
        Begun { kind, skipped: due.is_none() }
    }

    /// Its operation at a place has come to its end.
    pub(crate) fn arrive(&mut self, progress: &Progress, result: &Result<bool, Trouble>) {
        if self.place.take().is_none() {
            return;
        }
        match result {
            Err(Trouble::Refused(_)) => progress.fail(),
            _ => progress.pass(self.file),
        }
    }

    /// A part of the closing has come to its end, well or refused by the kernel.
    pub(crate) fn closed(&mut self, progress: &Progress, refused: Option<Failure>) -> Ending {
        if refused.is_some() {
            progress.lose();
        }
        self.closing = self.closing.and_then(|closing| closing.get(1..));
        self.close_on(progress);
        let result = refused.map_or(Ok(false), |failure| Err(Trouble::Refused(failure)));
        self.end((Moved::default(), result))
    }

    /// How an operation ended. What is read and written back is payload once.
    pub(crate) fn end(&mut self, (moved, result): (Moved, Result<bool, Trouble>)) -> Ending {
        let failure = self.judge(result);
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
        (self.place, self.closing) = (None, None);
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
