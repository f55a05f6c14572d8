//! One stream: a session that does its work, piece after piece, and tells how each ended.
//!
//! The fact that constrains it: what a query takes counts from when its text is handed to the kernel until the server is ready for
//! the next one. A query that fails ends alone; a connection that is lost ends the rest of its stream. What a refresh function left is
//! asked over a connection of its own, after its time has ended and before the next work is due.

use super::work::{Task, Work};
use crate::stop::Cause;
use plimsoll_load::{CpuNs, monotonic_ns, thread_cpu_ns};
use plimsoll_record::Outcome;
use plimsoll_session::Failure;
use plimsoll_target::postgres::{Address, Answer, Canceller, Client, Error};
use plimsoll_workload::decision_support::ScaleFactor;
use plimsoll_workload::decision_support::refresh::{Left as LeftOfSet, Prepared, Refreshed, asks_beside, prepare};
use plimsoll_workload::{DataSetError, failure_of};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The server's code for what was cancelled, by its own clock too.
const CANCELLED: &str = "57014";

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Done,
    Failed,
    /// A query that took all of its time.
    #[serde(rename = "timed out")]
    TimedOut,
    /// Never begun.
    Skipped,
    /// A refresh function that may or may not have been committed.
    Lost,
}

impl Status {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Done => Outcome::Done,
            Self::Failed | Self::TimedOut => Outcome::Failed,
            Self::Skipped => Outcome::Skipped,
            Self::Lost => Outcome::Lost,
        }
    }
}

/// What came of a piece of work that was done.
#[derive(Debug)]
pub(super) enum Found {
    Answered(Answer),
    /// The query's plan with what it took, as the server tells it.
    Explained(String),
    Refreshed(Refreshed),
}

/// A piece of work that has ended.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) index: usize,
    /// When it was due: when its predecessor had ended.
    pub(super) planned_ns: i64,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) requests: u64,
    pub(super) status: Status,
    pub(super) found: Option<Found>,
    pub(super) failure: Option<Failure>,
    /// The number of a refresh function's set.
    pub(super) set: Option<u64>,
    /// Of a refresh function that was done: what it left of its set. `None` where the server could not be asked.
    pub(super) verified: Option<Verified>,
}

/// What a refresh function left, beside what it should have.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Verified {
    #[serde(flatten)]
    pub(super) left: LeftOfSet,
    pub(super) ok: bool,
}

/// What the waiting main thread hears.
pub(super) enum Heard {
    Stop(Cause),
    Began { index: usize, at_ns: i64 },
    Ended(Box<Performed>),
    Left,
}

/// What the sessions are told from outside.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Nothing more is to be begun.
    pub(super) stop: AtomicBool,
    /// What had not ended long after that was given up.
    pub(super) given_up: AtomicBool,
}

/// What a session leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Requests sent in the test.
    pub(super) requests: u64,
    /// Its connection was lost.
    pub(super) broken: bool,
    /// Of its thread.
    pub(super) cpu: CpuNs,
}

/// What all sessions of a test have in common.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    pub(super) address: &'a Address,
    pub(super) scale: ScaleFactor,
    pub(super) timeout: Option<Duration>,
    pub(super) explain: bool,
}

/// A stream's session, open, before its work begins.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    works: Vec<Work>,
    /// By function, those that are yet to be taken.
    sets: [VecDeque<Prepared>; 2],
    /// Asks what refresh functions left; only where there are any.
    beside: Option<Client>,
    timeout: Option<Duration>,
    explain: bool,
    /// What the server allows a statement at present; 0: no limit.
    limit_ms: u128,
    broken: bool,
}

impl Session {
    /// Opens it and generates its refresh sets.
    pub(super) fn open(terms: &Terms<'_>, works: &[Work]) -> Result<Self, DataSetError> {
        let mut client = Client::open(&terms.address.with_settings([("statement_timeout", "0")]))?;
        let mut sets: [VecDeque<Prepared>; 2] = Default::default();
        for work in works {
            if let Task::Refresh(function) = work.task {
                let of_function = &mut sets[function as usize];
                let before = of_function.len() as u64;
                of_function.push_back(prepare(&mut client, terms.scale, function, before)?);
            }
        }
        let beside = match sets.iter().all(VecDeque::is_empty) {
            true => None,
            false => {
                let mut beside = Client::open(client.address())?;
                asks_beside(&mut beside)?;
                Some(beside)
            }
        };
        let (timeout, explain, works) = (terms.timeout, terms.explain, works.to_vec());
        let mut session = Self { client, works, sets, beside, timeout, explain, limit_ms: 0, broken: false };
        if let Some(first) = session.works.first().map(|work| work.task.clone()) {
            session.limit(&first)?;
        }
        Ok(session)
    }

    /// Ways to end whatever it waits for.
    pub(super) fn cancellers(&self) -> Result<Vec<Canceller>, Error> {
        std::iter::once(&self.client).chain(&self.beside).map(Client::canceller).collect()
    }

    pub(super) fn backend_pid(&self) -> u32 {
        self.client.backend_pid()
    }

    /// Does all of its work, the first piece of which is due at `due_ns`.
    pub(super) fn run(mut self, mut due_ns: i64, told: &Told, tell: &Sender<Heard>) -> Left {
        let requests_before = self.client.requests();
        // Who listens is gone only when the process ends.
        let hear = |heard| drop(tell.send(heard));
        for work in std::mem::take(&mut self.works) {
            if self.broken || told.stop.load(Ordering::SeqCst) {
                hear(Heard::Ended(Box::new(skipped(&work))));
                continue;
            }
            hear(Heard::Began { index: work.index, at_ns: monotonic_ns() });
            let performed = self.perform(&work, due_ns, told);
            due_ns = if performed.verified.is_some() { monotonic_ns() } else { performed.end_ns };
            hear(Heard::Ended(Box::new(performed)));
        }
        let requests = self.client.requests() - requests_before;
        Left { requests, broken: self.broken, cpu: thread_cpu_ns() }
    }

    fn perform(&mut self, work: &Work, planned_ns: i64, told: &Told) -> Performed {
        let limited = self.limit(&work.task);
        let requests_before = self.client.requests();
        let start_ns = monotonic_ns();
        let result = limited.map_err(DataSetError::from).and_then(|()| self.attempt(&work.task));
        let end_ns = monotonic_ns();
        let requests = self.client.requests() - requests_before;
        let set = match work.task {
            Task::Refresh(function) => self.sets[function as usize].front().map(Prepared::set),
            Task::Query(_) => None,
        };
        let mut verified = None;
        let (status, found, failure) = match result {
            Ok(found) => {
                if let Task::Refresh(function) = work.task {
                    let done = self.sets[function as usize].pop_front();
                    verified = done.and_then(|done| self.verify(&done, told));
                }
                (Status::Done, Some(found), None)
            }
            Err(error) => {
                let taken = Duration::from_nanos((end_ns - start_ns).max(0) as u64);
                let (status, failure) = self.failed(&work.task, error, taken, told);
                (status, None, Some(failure))
            }
        };
        let index = work.index;
        Performed { index, planned_ns, start_ns, end_ns, requests, status, found, failure, set, verified }
    }

    /// Asks what a refresh function left, unless the test is to end. A connection that breaks is not asked again: the server is
    /// gone, or was told to end this one, and the check at the end of the trial tells what is there.
    fn verify(&mut self, done: &Prepared, told: &Told) -> Option<Verified> {
        let beside = self.beside.as_mut().filter(|_| !told.stop.load(Ordering::SeqCst))?;
        match done.left(beside) {
            Ok(left) => Some(Verified { left, ok: left == done.expected() }),
            Err(error) => {
                if !error.leaves_session() {
                    self.beside = None;
                }
                None
            }
        }
    }

    /// Sees to what the server allows the next statement: a query its time, a refresh function all that it needs. By the server's
    /// clock, because a request to cancel may meet the query after the one that was meant.
    fn limit(&mut self, task: &Task) -> Result<(), Error> {
        let wanted_ms = match task {
            Task::Query(_) => self.timeout.map_or(0, |timeout| timeout.as_millis()),
            Task::Refresh(_) => 0,
        };
        if wanted_ms != self.limit_ms {
            self.client.run(&format!("SET statement_timeout = {wanted_ms}"))?;
            self.limit_ms = wanted_ms;
        }
        Ok(())
    }

    fn attempt(&mut self, task: &Task) -> Result<Found, DataSetError> {
        match task {
            Task::Query(query) if self.explain => {
                let sql = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", query.sql);
                let lines = self.client.rows(&sql)?.into_iter().flatten().flatten();
                Ok(Found::Explained(lines.collect::<Vec<_>>().join("\n")))
            }
            Task::Query(query) => Ok(Found::Answered(self.client.answer(&query.sql)?)),
            Task::Refresh(function) => {
                let none = || DataSetError::Schema(format!("no refresh set is left for {}", function.name()));
                // One that fails is the next one's: sets are taken in the order of their numbers.
                let prepared = self.sets[*function as usize].front().ok_or_else(none)?;
                prepared.perform(&mut self.client).map(Found::Refreshed)
            }
        }
    }

    fn failed(&mut self, task: &Task, error: DataSetError, taken: Duration, told: &Told) -> (Status, Failure) {
        let failure = match error {
            DataSetError::Server(error) => {
                self.broken = !error.leaves_session();
                failure_of(error)
            }
            DataSetError::Schema(message) => Failure { code: Failure::WRONG_ANSWER.to_owned(), message },
        };
        let timed_out = failure.code == CANCELLED && self.timeout.is_some_and(|timeout| taken >= timeout);
        let status = match task {
            Task::Query(_) if timed_out => Status::TimedOut,
            Task::Refresh(_) if self.broken => Status::Lost,
            _ => Status::Failed,
        };
        if self.broken && told.given_up.load(Ordering::SeqCst) {
            let message = "no reply after the test was to end".to_owned();
            return (status, Failure { code: Failure::ABANDONED.to_owned(), message });
        }
        (status, failure)
    }
}

fn skipped(work: &Work) -> Performed {
    let now_ns = monotonic_ns();
    Performed {
        index: work.index,
        planned_ns: now_ns,
        start_ns: now_ns,
        end_ns: now_ns,
        requests: 0,
        status: Status::Skipped,
        found: None,
        failure: None,
        set: None,
        verified: None,
    }
}
