//! A workload's transactions on one PostgreSQL connection, as a state machine.
//!
//! A transaction is a series of round trips: the workload queues the statements of the next one, the replies of the whole
//! round trip are read and verified, and so on. A COMMIT that is a round trip of its own comes after every answer was seen, so
//! that after a wrong one the transaction can still be rolled back.
//!
//! An error of the server ends the transaction as failed, after ROLLBACK if a block is open; or, if it is a serialization
//! failure or a deadlock and tries are left, the transaction starts again. A broken connection, or a fatal error, ends it as
//! lost if any byte of a round trip that commits had been handed to the kernel in this try, else as failed.

mod answer;
mod opener;

pub use opener::{ConversationOpener, failure_of};

use crate::workload::{Next, RoundTrip, Workload};
use answer::Answer;
use plimsoll_record::{Outcome, VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_session::{Begun, Ending, Failure, Pause, Progress, Ready, Session, SessionReport};
use plimsoll_target::postgres::wire::ServerError;
use plimsoll_target::postgres::{Address, Connection, Error, Form, Mode, Received, Sent, Statements};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// SQLSTATEs after which the same transaction may do better: serialization_failure, deadlock_detected.
const WORTH_ANOTHER_TRY: [&str; 2] = ["40001", "40P01"];
/// The standard's active_sql_transaction.
const BLOCK_LEFT_OPEN: &str = "25001";
/// The server's feature_not_supported.
const NOT_SUPPORTED: &str = "0A000";
const BLOCK_CLOSED: u8 = b'I';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No transaction is under way.
    Idle,
    /// A transaction was begun; its first step is to be taken.
    Begun,
    /// A round trip is queued or awaited.
    Running,
    /// Nothing is awaited until the rest is over.
    Resting,
    /// ROLLBACK is queued or awaited, after which the transaction has failed.
    RollingBack,
    /// ROLLBACK is queued or awaited, after which the transaction is tried again.
    Retrying,
}

/// One connection performing a [`Workload`].
#[derive(Debug)]
pub struct Conversation<W: Workload> {
    connection: Connection,
    workload: Arc<W>,
    client: W::Client,
    /// Form of the rows that are compared.
    form: Form,
    retries_max: u32,
    state: State,
    index: u64,
    statements: u32,
    retries: u32,
    /// Round trips of all transactions so far, and of those before the present one.
    requests: u64,
    requests_before: u64,
    /// What the last ReadyForQuery said of a transaction block.
    block: u8,
    commit_queued: bool,
    commit_handed: bool,
    answer: Answer,
    failure: Option<Failure>,
    verification: Verification,
    totals: Vec<i64>,
}

impl<W: Workload> Conversation<W> {
    /// Opens connection `number` and prepares its statements; blocks until it is ready.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(
        address: &Address,
        workload: Arc<W>,
        statements: &Arc<Statements>,
        retries_max: u32,
        number: u32,
    ) -> Result<Self, Error> {
        let connection = Connection::open(address, statements)?;
        Ok(Self {
            form: if statements.mode() == Mode::Simple { Form::Text } else { Form::Binary },
            connection,
            client: workload.client(number),
            totals: vec![0; workload.total_names().len()],
            workload,
            retries_max,
            state: State::Idle,
            index: 0,
            statements: 0,
            retries: 0,
            requests: 0,
            requests_before: 0,
            block: BLOCK_CLOSED,
            commit_queued: false,
            commit_handed: false,
            answer: Answer::default(),
            failure: None,
            verification: Verification::default(),
        })
    }

    /// Takes the workload's next step. `None` when a round trip was queued.
    #[inline]
    fn step(&mut self) -> Option<Progress> {
        match self.workload.next(&mut self.client, &mut self.connection) {
            Next::RoundTrip(trip) => {
                self.await_answer(trip);
                None
            }
            Next::Complete if self.block == BLOCK_CLOSED => Some(self.ended(Outcome::Done, None, true)),
            Next::Complete => {
                let message = "the transaction ended within a transaction block".to_owned();
                self.give_up(Failure { code: BLOCK_LEFT_OPEN.to_owned(), message })
            }
            Next::Rest { ns } => {
                self.state = State::Resting;
                Some(Progress::Resting { ns })
            }
            Next::Failed(failure) => self.give_up(failure),
        }
    }

    #[inline]
    fn await_answer(&mut self, trip: RoundTrip) {
        self.connection.queue_sync();
        self.requests += 1;
        self.statements = self.statements.saturating_add(trip.statements);
        self.commit_queued = trip.commits;
        self.answer.expect(trip.expect);
        self.state = State::Running;
    }

    fn ended(&mut self, outcome: Outcome, failure: Option<Failure>, alive: bool) -> Progress {
        self.state = State::Idle;
        self.workload.tally(&self.client, outcome, &mut self.totals);
        let (statements, retries) = (self.statements, self.retries);
        let requests = u32::try_from(self.requests - self.requests_before).unwrap_or(u32::MAX);
        Progress::Ended(Ending { outcome, statements, retries, requests, bytes: 0, failure, alive })
    }

    /// The transaction has failed, for `failure`.
    #[cold]
    fn give_up(&mut self, failure: Failure) -> Option<Progress> {
        if self.block == BLOCK_CLOSED {
            return Some(self.ended(Outcome::Failed, Some(failure), true));
        }
        self.failure = Some(failure);
        self.roll_back(State::RollingBack);
        None
    }

    /// The server refused the round trip, or answered it wrongly.
    #[cold]
    fn refused(&mut self, failure: Failure) -> Option<Progress> {
        let worth_it = WORTH_ANOTHER_TRY.contains(&failure.code.as_str());
        if !worth_it || self.retries >= self.retries_max {
            return self.give_up(failure);
        }
        if self.block == BLOCK_CLOSED {
            return self.try_again();
        }
        self.failure = Some(failure);
        self.roll_back(State::Retrying);
        None
    }

    fn roll_back(&mut self, state: State) {
        self.state = state;
        self.commit_queued = false;
        self.requests += 1;
        self.connection.queue_simple("ROLLBACK");
    }

    #[cold]
    fn try_again(&mut self) -> Option<Progress> {
        self.retries += 1;
        self.failure = None;
        self.commit_handed = false;
        self.workload.again(&mut self.client);
        self.step()
    }

    /// The connection is of no more use.
    #[cold]
    fn broken(&mut self, code: &str, message: String) -> Progress {
        let outcome = match self.state {
            State::Idle => return Progress::Closed,
            State::RollingBack | State::Retrying => Outcome::Failed,
            _ if self.commit_handed => Outcome::Lost,
            _ => Outcome::Failed,
        };
        let failure = Failure { code: code.to_owned(), message };
        let failure = self.failure.take().unwrap_or(failure);
        self.ended(outcome, Some(failure), false)
    }

    fn send(&mut self) -> Result<Sent, String> {
        let sent = self.connection.send();
        if self.commit_queued && (matches!(sent, Ok(Sent::All)) || self.connection.has_sent_part()) {
            self.commit_handed = true;
        }
        sent.map_err(|error| error.to_string())
    }

    /// Decodes what was received. `Some` when there is something to tell; `None` when more is to be sent or received.
    fn decode(&mut self) -> Option<Progress> {
        loop {
            let frame = match self.connection.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return None,
                Err(message) => return Some(self.broken(Failure::BROKEN, message)),
            };
            match frame.tag {
                b'D' => self.answer.row(frame.body, self.workload.as_ref(), &mut self.client, self.form),
                b'C' => self.answer.completed(frame.body, self.workload.as_ref(), &mut self.client),
                b'Z' => {
                    self.block = frame.body.first().copied().unwrap_or(BLOCK_CLOSED);
                    if let Some(progress) = self.round_trip_answered() {
                        return Some(progress);
                    }
                }
                b'T' => self.workload.described(&mut self.client, frame.body),
                b'I' => self.answer.completed(b"", self.workload.as_ref(), &mut self.client),
                b'E' => {
                    let error = ServerError::parse(frame.body);
                    if error.fatal {
                        return Some(self.broken(&error.sqlstate, error.message));
                    }
                    self.answer.refused(error);
                }
                // The server would wait for rows that no transaction has.
                b'G' | b'W' => {
                    return Some(self.broken(NOT_SUPPORTED, "COPY from the client is not supported".to_owned()));
                }
                _ => {}
            }
        }
    }

    fn round_trip_answered(&mut self) -> Option<Progress> {
        match self.state {
            State::Running => match self.judge() {
                None => self.step(),
                Some(failure) => self.refused(failure),
            },
            State::RollingBack => {
                let failure = self.failure.take();
                Some(self.ended(Outcome::Failed, failure, true))
            }
            State::Retrying => self.try_again(),
            State::Idle | State::Begun | State::Resting => None,
        }
    }

    /// What is wrong with the round trip that was answered.
    #[inline]
    fn judge(&mut self) -> Option<Failure> {
        if let Some(error) = self.answer.take_refusal() {
            return Some(Failure { code: error.sqlstate, message: error.message });
        }
        self.verification.checked += u64::from(self.answer.is_compared());
        self.answer.wrong(self.workload.as_ref(), &self.client).map(|message| self.wrong_answer(message))
    }

    #[cold]
    fn wrong_answer(&mut self, message: String) -> Failure {
        self.verification.wrong += 1;
        if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
            self.verification.examples.push(WrongAnswer { index: self.index, message: message.clone() });
        }
        Failure { code: Failure::WRONG_ANSWER.to_owned(), message }
    }
}

impl<W: Workload> AsFd for Conversation<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

impl<W: Workload + 'static> Session for Conversation<W> {
    fn server_process(&self) -> u32 {
        self.connection.backend_pid()
    }

    fn pause(&mut self, after: u64) -> Pause {
        self.workload.pause(&mut self.client, after)
    }

    fn begin(&mut self, index: u64) -> Begun {
        let begun = self.workload.begin(&mut self.client, index);
        if !begun.skipped {
            (self.index, self.state) = (index, State::Begun);
            (self.statements, self.retries, self.failure) = (0, 0, None);
            self.requests_before = self.requests;
            (self.commit_queued, self.commit_handed) = (false, false);
        }
        begun
    }

    /// While the transaction rests, `Ready::Nothing` says that the rest is over; what is received meanwhile is taken, and
    /// `Waiting` then says that the rest goes on.
    fn advance(&mut self, ready: Ready) -> Progress {
        if (self.state == State::Begun || (self.state == State::Resting && ready == Ready::Nothing))
            && let Some(progress) = self.step()
        {
            return progress;
        }
        let mut readable = ready != Ready::Nothing;
        loop {
            // What is queued before a rest is part of the round trip that comes after it.
            if self.connection.has_unsent() && self.state != State::Resting {
                match self.send() {
                    Ok(Sent::All) => {}
                    // The server may be waiting for us to read before it takes more.
                    Ok(Sent::Part) if !readable => return Progress::Waiting { to_write: true },
                    Ok(Sent::Part) => {}
                    Err(message) => return self.broken(Failure::BROKEN, message),
                }
            }
            if !readable {
                return Progress::Waiting { to_write: false };
            }
            match self.connection.receive() {
                Ok(Received::Full) => {}
                Ok(Received::Short) => readable = ready == Ready::Closing,
                Ok(Received::Nothing) => readable = false,
                Err(error) => return self.broken(Failure::BROKEN, error.to_string()),
            }
            if let Some(progress) = self.decode() {
                return progress;
            }
        }
    }

    fn abandon(&mut self) -> Ending {
        match self.broken(Failure::ABANDONED, "no reply within the grace period after the segment".to_owned()) {
            Progress::Ended(ending) => ending,
            Progress::Waiting { .. } | Progress::Moved { .. } | Progress::Resting { .. } | Progress::Closed => {
                Ending::of_nothing(Outcome::Failed, false)
            }
        }
    }

    fn close(self: Box<Self>) -> SessionReport {
        self.connection.close();
        let totals = self.workload.total_names().iter().copied().zip(self.totals).collect();
        SessionReport { requests: self.requests, verification: self.verification, totals }
    }
}
