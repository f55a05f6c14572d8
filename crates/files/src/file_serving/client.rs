//! A client as the engine drives it: a line of the script for each operation, over and over.
//!
//! The fact that constrains it: an index of the plan says when, not what. What is performed is the line after the last
//! one. Clients are threads of one process, so they share a table of descriptors unless each is asked to have its own, as
//! the original's processes do; then what a client opens nobody else may use or close, and its work directory is open
//! before.

use super::ending::{Verdict, judge, name_of};
use super::options::Options;
use super::pattern::{Hand, Pattern};
use super::player::Player;
use super::script::Script;
use super::state::Position;
use crate::finish::Finish;
use plimsoll_record::{Outcome, VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_session::{Begun, BlockingOpener, BlockingSession, Ending, Failure, Pause, SessionReport};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The error of lines that found another name than the script foretells, where it does not say so.
const OF_NAMES: &str = "ENOENT";

/// What all clients of a segment have in common.
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    /// [`Script::moved`].
    pub(super) moved: Vec<(u64, u64)>,
    pub(super) pattern: Arc<Pattern>,
    pub(super) seed: u64,
    pub(super) options: Options,
    /// The number of the segment's first pass: those before it are other segments'.
    pub(super) first_pass: u64,
    /// Clients that are not through yet.
    pub(super) busy: AtomicU32,
    pub(super) finish: Finish,
    /// Where clients were when they ended.
    pub(super) positions: Arc<Mutex<Vec<Position>>>,
}

/// Opens the clients of a segment, in `tree`.
pub(super) struct Opener {
    pub(super) shared: Arc<Shared>,
    pub(super) tree: Arc<crate::tree::Tree>,
}

impl BlockingOpener for Opener {
    fn open(&self, number: u32) -> Result<Box<dyn BlockingSession>, Failure> {
        let shared = Arc::clone(&self.shared);
        let failed = |error| Failure { code: name_of(error), message: format!("client {}: {error}", number + 1) };
        let work = rustix::io::fcntl_dupfd_cloexec(self.tree.data().as_fd(), 0).map_err(failed)?;
        let mut player = Player::new(&shared.script, &shared.pattern, shared.options, number, work);
        player.empty().map_err(failed)?;
        player.calls.made = 0;
        let position = Position { client: number, pass: shared.first_pass, lines: 0, is_disturbed: false };
        let hand = Hand::new(shared.seed, number, position.pass, shared.script.steps.len());
        let last_pass = shared.first_pass.saturating_add(shared.options.passes).saturating_sub(1);
        let last_pass = (shared.options.passes > 0).then_some(last_pass);
        Ok(Box::new(Client {
            shared,
            player,
            position,
            last_pass,
            hand,
            index: 0,
            verification: Verification::default(),
            cause: String::new(),
            uncompared: 0,
            is_told: false,
            hindrance: None,
        }))
    }
}

/// One client.
struct Client {
    shared: Arc<Shared>,
    player: Player,
    position: Position,
    /// After which it waits; `None`: it goes on until the load ends.
    last_pass: Option<u64>,
    hand: Hand,
    index: u64,
    verification: Verification,
    /// The error of the pass's first line that went wrong.
    cause: String,
    /// Lines that were performed after one before them went wrong.
    uncompared: u64,
    is_told: bool,
    /// Why the next line is not performed.
    hindrance: Option<Failure>,
}

impl Client {
    fn line(&self) -> usize {
        self.position.lines as usize
    }

    fn is_through(&self) -> bool {
        self.line() == self.shared.script.steps.len() && self.last_pass == Some(self.position.pass)
    }

    /// The next pass begins with nothing, as the first one did.
    fn begin_pass(&mut self) -> Result<(), Failure> {
        let emptied = match self.shared.script.leaves_files || self.position.is_disturbed {
            true => self.player.empty(),
            false => Ok(()),
        };
        let pass = self.position.pass + 1;
        self.hand = Hand::new(self.shared.seed, self.position.client, pass, self.shared.script.steps.len());
        self.position = Position { pass, lines: 0, is_disturbed: emptied.is_err(), ..self.position };
        let of_client = self.position.client + 1;
        let said = |error| format!("client {of_client}: its folder cannot be emptied between two passes: {error}");
        emptied.map_err(|error| Failure { code: name_of(error), message: said(error) })
    }

    /// It has performed a line; with the last one of all clients the segment is over.
    fn went_on(&mut self) {
        self.position.lines += 1;
        if self.is_through() {
            self.is_awaited_no_more();
        }
    }

    /// The others wait no longer for this one: it is through, or it has ended before.
    fn is_awaited_no_more(&mut self) {
        if !std::mem::replace(&mut self.is_told, true) && self.shared.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.finish.finish();
        }
    }

    /// From here on the files are not those that the script foretells.
    fn disturbed_by(&mut self, code: &str) {
        if !self.position.is_disturbed {
            self.position.is_disturbed = true;
            code.clone_into(&mut self.cause);
        }
    }

    fn failed(&mut self, line: usize, failure: Failure, is_wrong: bool) -> Failure {
        let operation = self.shared.script.steps[line].operation().name();
        let message = format!(
            "client {}, pass {}, line {} ({operation}): {}",
            self.position.client + 1,
            self.position.pass - self.shared.first_pass + 1,
            line + 1,
            failure.message
        );
        if is_wrong {
            self.verification.wrong += 1;
            if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
                self.verification.examples.push(WrongAnswer { index: self.index, message: message.clone() });
            }
        }
        Failure { message, ..failure }
    }
}

impl BlockingSession for Client {
    /// One that is through waits for the others.
    fn pause(&mut self, _after: u64) -> Pause {
        let ns = if self.is_through() { i64::MAX } else { 0 };
        Pause { ns, since_planned: false }
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.index = index;
        if self.is_through() {
            return Begun { kind: 0, skipped: true };
        }
        if self.line() == self.shared.script.steps.len() {
            self.hindrance = self.begin_pass().err();
        }
        Begun { kind: self.shared.script.steps[self.line()].operation().kind(), skipped: false }
    }

    fn perform(&mut self) -> Ending {
        if let Some(failure) = self.hindrance.take() {
            return Ending { failure: Some(failure), ..Ending::of_nothing(Outcome::Failed, false) };
        }
        let (line, calls) = (self.line(), self.player.calls.made);
        let compares = !self.position.is_disturbed;
        let compared = self.player.compared;
        let played = self.player.play(line, self.hand, compares);
        let compared = self.player.compared - compared;
        self.verification.checked += compared;
        self.uncompared += u64::from(!compares);
        let requests = (self.player.calls.made - calls) as u32;
        let ending = match judge(self.shared.script.expected[line], played) {
            Verdict::AsExpected(bytes) => Ending { requests, bytes, ..Ending::of_nothing(Outcome::Done, true) },
            Verdict::Unforeseen => {
                self.disturbed_by(OF_NAMES);
                Ending { requests, ..Ending::of_nothing(Outcome::Done, true) }
            }
            // The files are not those that the script foretells: what differs from it follows from what went wrong before.
            Verdict::Failed { failure, is_wrong: true } if !compares => {
                let message = format!("{}, after a line that failed", failure.message);
                let failure = Some(self.failed(line, Failure { code: self.cause.clone(), message }, false));
                Ending { requests, failure, ..Ending::of_nothing(Outcome::Failed, true) }
            }
            Verdict::Failed { failure, is_wrong } => {
                // A wrong answer leaves the files as they are foretold; whatever else went wrong does not.
                if !is_wrong || !self.shared.script.expected[line].is_ok {
                    self.disturbed_by(&failure.code);
                }
                // An answer that is too short, or that should be none, was compared as much.
                self.verification.checked += u64::from(is_wrong && compared == 0);
                let failure = Some(self.failed(line, failure, is_wrong));
                Ending { requests, failure, ..Ending::of_nothing(Outcome::Failed, true) }
            }
        };
        self.went_on();
        ending
    }

    fn close(mut self: Box<Self>) -> SessionReport {
        self.is_awaited_no_more();
        let Self { shared, player, position, verification, uncompared, .. } = *self;
        shared.positions.lock().unwrap_or_else(PoisonError::into_inner).push(position);
        // By its way through the script, and not by what it has counted.
        let passes = position.pass - shared.first_pass;
        let ((read_by_all, written_by_all), (read, written)) =
            (shared.moved.last().copied().unwrap_or_default(), shared.moved[position.lines as usize]);
        let totals = vec![
            ("lines_passed", (passes * shared.script.steps.len() as u64 + position.lines) as i64),
            ("bytes_read_foretold", (passes * read_by_all + read) as i64),
            ("bytes_written_foretold", (passes * written_by_all + written) as i64),
            ("bytes_read", player.bytes_read as i64),
            ("bytes_written", player.bytes_written as i64),
            ("system_calls", player.calls.made as i64),
            ("passes_begun", (position.pass - shared.first_pass) as i64 + i64::from(position.lines > 0)),
            ("lines_after_a_failure", uncompared as i64),
        ];
        SessionReport { requests: player.calls.made, verification, totals }
    }
}
