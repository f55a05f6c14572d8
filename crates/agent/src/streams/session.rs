//! One stream: a session that does its work, piece after piece.
//!
//! The fact that constrains it: what a query takes counts from when its text is handed to the kernel until the server is ready for
//! the next one. A query that fails ends alone; a connection that is lost ends the rest of its stream. What a refresh function left is
//! asked over a connection of its own, after its time has ended and before the next work is due.

use super::results::{Performed, Product, Results, Status, Verified, statements};
use super::work::{Task, Work};
use plimsoll_load::monotonic_ns;
use plimsoll_record::Verification;
use plimsoll_session::{Begun, BlockingSession, Ending, Failure, Interrupt, Pause, SessionReport};
use plimsoll_target::postgres::{Address, Canceller, Client, Error};
use plimsoll_workload::decision_support::ScaleFactor;
use plimsoll_workload::decision_support::refresh::{Prepared, asks_beside, prepare};
use plimsoll_workload::{DataSetError, failure_of};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The server's code for what was cancelled, by its own clock too.
const CANCELLED: &str = "57014";

/// What all sessions of a test have in common.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    pub(super) address: &'a Address,
    pub(super) scale: ScaleFactor,
    pub(super) timeout: Option<Duration>,
    pub(super) explain: bool,
}

/// Ends what a stream waits for, over each of its connections.
#[derive(Debug)]
struct Cancellers {
    all: Vec<Canceller>,
    hung_up: AtomicBool,
}

impl Interrupt for Cancellers {
    fn cancel(&self) {
        self.all.iter().for_each(|one| drop(one.cancel()));
    }

    fn hang_up(&self) {
        self.hung_up.store(true, Ordering::SeqCst);
        self.all.iter().for_each(Canceller::hang_up);
    }
}

/// A stream's session.
#[derive(Debug)]
pub(super) struct Stream {
    client: Client,
    results: Arc<Results>,
    /// By function, those that are yet to be taken.
    sets: [VecDeque<Prepared>; 2],
    /// Asks what refresh functions left; only where there are any.
    beside: Option<Client>,
    timeout: Option<Duration>,
    explain: bool,
    /// What the server allows a statement at present; 0: no limit.
    limit_ms: u128,
    broken: bool,
    cancellers: Arc<Cancellers>,
    /// Requests of its opening.
    requests_before: u64,
    /// What was begun last.
    index: usize,
    /// Whether the server allows that its time.
    limited: Result<(), Error>,
    /// A refresh function that was done and not looked at yet.
    unverified: Option<(usize, Prepared)>,
    verification: Verification,
}

impl Stream {
    /// Opens it for its part of the works, and generates its refresh sets.
    pub(super) fn open(terms: &Terms<'_>, results: &Arc<Results>, works: &[Work]) -> Result<Self, DataSetError> {
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
        let all = std::iter::once(&client).chain(&beside).map(Client::canceller).collect::<Result<_, _>>()?;
        let cancellers = Arc::new(Cancellers { all, hung_up: AtomicBool::new(false) });
        let (timeout, explain, results) = (terms.timeout, terms.explain, Arc::clone(results));
        let mut stream = Self {
            client,
            results,
            sets,
            beside,
            timeout,
            explain,
            limit_ms: 0,
            broken: false,
            cancellers,
            requests_before: 0,
            index: 0,
            limited: Ok(()),
            unverified: None,
            verification: Verification::default(),
        };
        if let Some(first) = works.first() {
            stream.limit(&first.task)?;
        }
        stream.requests_before = stream.client.requests();
        Ok(stream)
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

    fn attempt(&mut self, task: &Task) -> Result<Product, DataSetError> {
        match task {
            Task::Query(query) if self.explain => {
                let sql = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", query.sql);
                let lines = self.client.rows(&sql)?.into_iter().flatten().flatten();
                Ok(Product::Explained(lines.collect::<Vec<_>>().join("\n")))
            }
            Task::Query(query) => Ok(Product::Answered(self.client.answer(&query.sql)?)),
            Task::Refresh(function) => {
                let none = || DataSetError::Schema(format!("no refresh set is left for {}", function.name()));
                // One that fails is the next one's: sets are taken in the order of their numbers.
                let prepared = self.sets[*function as usize].front().ok_or_else(none)?;
                prepared.perform(&mut self.client).map(Product::Refreshed)
            }
        }
    }

    fn failed(&mut self, task: &Task, error: DataSetError, taken: Duration) -> (Status, Failure) {
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
        if self.broken && self.cancellers.hung_up.load(Ordering::SeqCst) {
            let message = "no reply within the grace period after the test".to_owned();
            return (status, Failure { code: Failure::ABANDONED.to_owned(), message });
        }
        (status, failure)
    }

    /// Asks what a refresh function left. A connection that breaks is not asked again: the server is gone, or was told to end this
    /// one, and the check at the end of the trial tells what is there.
    fn verify(&mut self, index: usize, done: &Prepared) {
        let Some(beside) = self.beside.as_mut() else { return };
        match done.left(beside) {
            Ok(left) => {
                let ok = left == done.expected();
                self.verification.checked += 1;
                self.verification.wrong += u64::from(!ok);
                self.verification.examples.extend(self.results.verified(index, Verified { left, ok }));
            }
            Err(error) if error.leaves_session() => {}
            Err(_) => self.beside = None,
        }
    }
}

impl BlockingSession for Stream {
    fn server_process(&self) -> u32 {
        self.client.backend_pid()
    }

    fn pause(&mut self, _: u64) -> Pause {
        if let Some((index, done)) = self.unverified.take() {
            self.verify(index, &done);
        }
        Pause::default()
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.index = index as usize;
        let results = Arc::clone(&self.results);
        let task = &results.works[self.index].task;
        self.limited = self.limit(task);
        Begun { kind: task.kind(), skipped: false }
    }

    fn perform(&mut self) -> Ending {
        let (index, results) = (self.index, Arc::clone(&self.results));
        let limited = std::mem::replace(&mut self.limited, Ok(()));
        let task = &results.works[index].task;
        results.began(index, monotonic_ns());
        let (requests_before, start) = (self.client.requests(), Instant::now());
        let result = limited.map_err(DataSetError::from).and_then(|()| self.attempt(task));
        let requests = self.client.requests() - requests_before;
        let mut set = None;
        if let Task::Refresh(function) = task {
            let sets = &mut self.sets[*function as usize];
            set = sets.front().map(Prepared::set);
            if result.is_ok() {
                self.unverified = sets.pop_front().map(|done| (index, done));
            }
        }
        let (status, product, failure) = match result {
            Ok(product) => (Status::Done, Some(product), None),
            Err(error) => {
                let (status, failure) = self.failed(task, error, start.elapsed());
                (status, None, Some(failure))
            }
        };
        let error = failure.as_ref().map(|failure| failure.message.clone());
        results.ended(index, Performed { status, product, error, set, verified: None });
        let counted = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Ending {
            statements: counted(statements(task, requests)),
            requests: counted(requests),
            failure,
            ..Ending::of_nothing(status.outcome(), !self.broken)
        }
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(Arc::clone(&self.cancellers) as Arc<dyn Interrupt>)
    }

    fn close(self: Box<Self>) -> SessionReport {
        let requests = self.client.requests() - self.requests_before;
        SessionReport { requests, verification: self.verification, totals: Vec::new() }
    }
}
