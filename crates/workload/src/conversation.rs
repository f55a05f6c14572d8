//! A workload's transactions on one PostgreSQL connection, as a state machine.
//!
//! A transaction is a series of round trips: the workload queues the statements of the next one, the replies of the whole
//! round trip are read and verified, and so on. BEGIN travels with the first statement; COMMIT is a round trip of its own, so
//! that a wrong answer is seen before anything is committed and the transaction can still be rolled back.
//!
//! An error of the server ends the transaction as failed, after ROLLBACK if a block is open. A broken connection, or a fatal
//! error, ends it as lost if any byte of a round trip that commits had been handed to the kernel, else as failed.

use crate::session::{Begun, Ending, Failure, Progress, Ready, Session, SessionReport};
use bytes::BytesMut;
use plimsoll_record::{Outcome, VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_target::postgres::wire::{ServerError, command_tag, row_values};
use plimsoll_target::postgres::{Address, Connection, Error, Received, Sent};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What a round trip must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly one row: that of `key` in `table`, every column in order, as the data set's generator gives it.
    Row {
        /// The table's number.
        table: u8,
        /// The row's key.
        key: i64,
    },
    /// A command tag, such as `INSERT 0 1`.
    Tag(&'static [u8]),
}

/// A round trip that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Statements in it, BEGIN and COMMIT not counted.
    pub statements: u8,
    /// What it must answer.
    pub expect: Expect,
    /// True if the server may have changed something for good once it has read it.
    pub commits: bool,
}

/// Transactions on PostgreSQL; pure, shared by all connections.
pub trait Workload: Send + Sync {
    /// All of what one transaction does.
    type Plan: Copy + Send;

    /// What transaction `index` does.
    fn plan(&self, index: u64) -> Self::Plan;

    /// Place in the data set's kinds, and whether there is nothing to do.
    fn begun(&self, plan: &Self::Plan) -> Begun;

    /// Queues round trip `number` (from 0) without its Sync, or gives `None` if the transaction is complete.
    fn round_trip(&self, plan: &Self::Plan, number: u8, connection: &mut Connection) -> Option<RoundTrip>;

    /// Appends the row that [`Expect::Row`] names, in the form of a DataRow.
    fn expected_row(&self, table: u8, key: i64, out: &mut BytesMut);

    /// Names the columns of `table`, for messages.
    fn columns(&self, table: u8) -> (&'static str, Vec<&'static str>);

    /// Names of the totals.
    fn total_names(&self) -> &'static [&'static str];

    /// Adds a transaction that ended done or lost to `totals`, in the order of the names.
    fn tally(&self, plan: &Self::Plan, outcome: Outcome, totals: &mut [i64]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    RollingBack,
}

/// What has been seen of the round trip under way.
#[derive(Debug, Default)]
struct Seen {
    rows: u32,
    tag_matches: bool,
    wrong: Option<String>,
    refused: Option<ServerError>,
}

/// One connection performing a [`Workload`].
#[derive(Debug)]
pub struct Conversation<W: Workload> {
    connection: Connection,
    workload: Arc<W>,
    state: State,
    index: u64,
    plan: Option<W::Plan>,
    next_round_trip: u8,
    statements: u8,
    expect: Expect,
    commit_queued: bool,
    commit_handed: bool,
    seen: Seen,
    failure: Option<Failure>,
    expected: BytesMut,
    verification: Verification,
    totals: Vec<i64>,
}

const BLOCK_CLOSED: u8 = b'I';

impl<W: Workload> Conversation<W> {
    /// Opens a connection and prepares `statements`; blocks until it is ready.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(address: &Address, workload: Arc<W>, statements: &[&str]) -> Result<Self, Error> {
        let totals = vec![0; workload.total_names().len()];
        Ok(Self {
            connection: Connection::open(address, statements)?,
            workload,
            state: State::Idle,
            index: 0,
            plan: None,
            next_round_trip: 0,
            statements: 0,
            expect: Expect::Tag(b""),
            commit_queued: false,
            commit_handed: false,
            seen: Seen::default(),
            failure: None,
            expected: BytesMut::with_capacity(1024),
            verification: Verification::default(),
            totals,
        })
    }

    /// Queues the next round trip; false if there is none.
    fn queue_next(&mut self) -> bool {
        let Some(plan) = self.plan else { return false };
        let Some(trip) = self.workload.round_trip(&plan, self.next_round_trip, &mut self.connection) else {
            return false;
        };
        self.connection.queue_sync();
        self.next_round_trip += 1;
        self.statements += trip.statements;
        self.expect = trip.expect;
        self.commit_queued = trip.commits;
        self.seen = Seen::default();
        true
    }

    fn ended(&mut self, outcome: Outcome, failure: Option<Failure>, alive: bool) -> Progress {
        self.state = State::Idle;
        if let Some(plan) = self.plan.take() {
            self.workload.tally(&plan, outcome, &mut self.totals);
        }
        Progress::Ended(Ending { outcome, statements: self.statements, failure, alive })
    }

    /// The connection is of no more use.
    fn broken(&mut self, sqlstate: &str, message: String) -> Progress {
        let outcome = match self.state {
            State::Idle => return Progress::Closed,
            State::Running if self.commit_handed => Outcome::Lost,
            State::Running | State::RollingBack => Outcome::Failed,
        };
        let failure = Failure { sqlstate: sqlstate.to_owned(), message };
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

    /// Decodes what was received. `Some` when the transaction ended; `None` when more is to be sent or received.
    fn decode(&mut self) -> Option<Progress> {
        loop {
            let frame = match self.connection.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return None,
                Err(message) => return Some(self.broken(Failure::BROKEN, message)),
            };
            match frame.tag {
                b'D' => {
                    self.seen.rows += 1;
                    if let Expect::Row { table, key } = self.expect {
                        self.expected.clear();
                        self.workload.expected_row(table, key, &mut self.expected);
                        if frame.body != &self.expected[..] {
                            let columns = self.workload.columns(table);
                            self.seen.wrong = Some(difference(columns, key, frame.body, &self.expected));
                        }
                    }
                }
                b'C' => {
                    let wanted = match self.expect {
                        Expect::Row { .. } => b"SELECT 1",
                        Expect::Tag(tag) => tag,
                    };
                    self.seen.tag_matches |= command_tag(frame.body) == wanted;
                }
                b'E' => {
                    let error = ServerError::parse(frame.body);
                    if error.fatal {
                        return Some(self.broken(&error.sqlstate, error.message));
                    }
                    self.seen.refused.get_or_insert(error);
                }
                b'Z' => {
                    let status = frame.body.first().copied().unwrap_or(BLOCK_CLOSED);
                    if let Some(progress) = self.round_trip_answered(status) {
                        return Some(progress);
                    }
                }
                _ => {}
            }
        }
    }

    fn round_trip_answered(&mut self, status: u8) -> Option<Progress> {
        match self.state {
            State::Idle => None,
            State::RollingBack => {
                let failure = self.failure.take();
                Some(self.ended(Outcome::Failed, failure, true))
            }
            State::Running => match self.judge() {
                None if self.queue_next() => None,
                None => Some(self.ended(Outcome::Done, None, true)),
                Some(failure) if status == BLOCK_CLOSED => Some(self.ended(Outcome::Failed, Some(failure), true)),
                Some(failure) => {
                    self.failure = Some(failure);
                    self.state = State::RollingBack;
                    self.commit_queued = false;
                    self.connection.queue_simple("ROLLBACK");
                    None
                }
            },
        }
    }

    /// What is wrong with the round trip that was answered.
    fn judge(&mut self) -> Option<Failure> {
        let seen = std::mem::take(&mut self.seen);
        if let Some(error) = seen.refused {
            return Some(Failure { sqlstate: error.sqlstate, message: error.message });
        }
        let wrong = seen.wrong.or_else(|| self.missing(seen.rows, seen.tag_matches));
        self.verification.checked += u64::from(matches!(self.expect, Expect::Row { .. }));
        let message = wrong?;
        self.verification.wrong += 1;
        if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
            self.verification.examples.push(WrongAnswer { index: self.index, message: message.clone() });
        }
        Some(Failure { sqlstate: Failure::WRONG_ANSWER.to_owned(), message })
    }

    fn missing(&self, rows: u32, tag_matches: bool) -> Option<String> {
        match self.expect {
            Expect::Row { table, key } if rows != 1 => {
                Some(format!("{} {key}: {rows} rows instead of one", self.workload.columns(table).0))
            }
            Expect::Row { .. } => None,
            Expect::Tag(_) if tag_matches => None,
            Expect::Tag(tag) => Some(format!("the server did not answer {}", tag.escape_ascii())),
        }
    }
}

/// Names the first column in which two rows differ.
fn difference((table, columns): (&str, Vec<&str>), key: i64, found: &[u8], expected: &[u8]) -> String {
    let (Some(found), Some(expected)) = (row_values(found), row_values(expected)) else {
        return format!("{table} {key}: a malformed row");
    };
    let place = (0..expected.len().max(found.len())).find(|&place| found.get(place) != expected.get(place));
    match place.and_then(|place| columns.get(place)) {
        Some(column) => format!("{table} {key}: {column} differs"),
        None => format!("{table} {key}: {} columns instead of {}", found.len(), expected.len()),
    }
}

impl<W: Workload> AsFd for Conversation<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

impl<W: Workload> Session for Conversation<W> {
    fn backend_pid(&self) -> u32 {
        self.connection.backend_pid()
    }

    fn begin(&mut self, index: u64) -> Begun {
        let plan = self.workload.plan(index);
        let begun = self.workload.begun(&plan);
        if begun.skipped {
            return begun;
        }
        (self.index, self.plan, self.state) = (index, Some(plan), State::Running);
        (self.next_round_trip, self.statements, self.failure) = (0, 0, None);
        (self.commit_queued, self.commit_handed) = (false, false);
        self.queue_next();
        begun
    }

    fn advance(&mut self, ready: Ready) -> Progress {
        let mut readable = ready != Ready::Nothing;
        loop {
            if self.connection.has_unsent() {
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
        match self.broken(Failure::ABANDONED, "no reply after the segment was to end".to_owned()) {
            Progress::Ended(ending) => ending,
            Progress::Waiting { .. } | Progress::Closed => {
                Ending { outcome: Outcome::Failed, statements: 0, failure: None, alive: false }
            }
        }
    }

    fn close(self) -> SessionReport {
        self.connection.close();
        let totals = self.workload.total_names().iter().copied().zip(self.totals).collect();
        SessionReport { verification: self.verification, totals }
    }
}
