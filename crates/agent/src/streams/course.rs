//! The course of a test: what each session is at, what has ended and how. Pure.

use super::session::{Performed, Status, Verified};
use super::work::{Task, Work, kinds};
use crate::sampler::Latest;
use plimsoll_record::{
    ByKind, ErrorEntry, Identity, LagNs, Outcome, Transaction, VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer,
};
use plimsoll_session::Failure;
use serde::Serialize;

/// What a session is at.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    index: usize,
    began_ns: i64,
}

/// The same in a progress line.
#[derive(Debug, Serialize)]
struct At {
    stream: Option<u32>,
    connection: u32,
    place: u32,
    name: String,
    began_ns: i64,
}

/// How far a test has come.
#[derive(Debug, Serialize)]
pub(super) struct ProgressLine {
    t_ns: i64,
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    latest: Latest,
    at: Vec<At>,
}

/// What is known of a test.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) works: Vec<Work>,
    /// By session, in the order of the connections.
    pub(super) backend_pids: Vec<u32>,
    under_way: Vec<Option<UnderWay>>,
    /// By index; `None` until it has ended.
    pub(super) ended: Vec<Option<Performed>>,
    pub(super) identity: Identity,
    pub(super) errors: Vec<ErrorEntry>,
}

impl Course {
    pub(super) fn new(works: Vec<Work>, backend_pids: Vec<u32>) -> Self {
        let identity = Identity { planned: works.len() as u64, ..Identity::default() };
        let (under_way, ended) = (vec![None; backend_pids.len()], works.iter().map(|_| None).collect());
        Self { works, backend_pids, under_way, ended, identity, errors: Vec::new() }
    }

    pub(super) fn began(&mut self, index: usize, began_ns: i64) {
        self.under_way[self.works[index].connection as usize] = Some(UnderWay { index, began_ns });
    }

    /// Takes what has ended, and gives its row.
    pub(super) fn ended(&mut self, performed: Performed) -> Transaction {
        let work = &self.works[performed.index];
        let connection = work.connection;
        self.under_way[connection as usize] = None;
        let count = match performed.status.outcome() {
            Outcome::Done => &mut self.identity.done,
            Outcome::Failed => &mut self.identity.failed,
            Outcome::Skipped => &mut self.identity.skipped,
            Outcome::Lost => &mut self.identity.lost,
        };
        *count += 1;
        let row = Transaction {
            index: performed.index as u64,
            planned_ns: performed.planned_ns,
            start_ns: performed.start_ns,
            end_ns: performed.end_ns,
            bytes: 0,
            connection,
            backend_pid: self.backend_pids[connection as usize],
            statements: u32::try_from(statements(&performed, &work.task)).unwrap_or(u32::MAX),
            requests: u32::try_from(performed.requests).unwrap_or(u32::MAX),
            retries: 0,
            error: performed.failure.as_ref().map_or(0, |failure| place(&mut self.errors, failure)),
            kind: work.task.kind(),
            outcome: performed.status.outcome(),
        };
        let index = performed.index;
        self.ended[index] = Some(performed);
        row
    }

    /// How far the test has come by `t_ns`.
    pub(super) fn progress(&self, t_ns: i64, latest: Latest) -> ProgressLine {
        let at = |under_way: &UnderWay| {
            let Work { stream, connection, place, task, .. } = &self.works[under_way.index];
            let (stream, connection, place) = (*stream, *connection, *place);
            At { stream, connection, place, name: task.name(), began_ns: under_way.began_ns }
        };
        ProgressLine { t_ns, identity: self.identity, latest, at: self.under_way.iter().flatten().map(at).collect() }
    }

    /// What was begun and has ended.
    pub(super) fn begun(&self) -> impl Iterator<Item = &Performed> {
        self.ended.iter().flatten().filter(|performed| performed.status != Status::Skipped)
    }

    /// Counts by kind, in the order of the kinds.
    pub(super) fn by_kind(&self) -> Vec<ByKind> {
        let mut by_kind = vec![ByKind::default(); kinds().len()];
        for performed in self.ended.iter().flatten() {
            let task = &self.works[performed.index].task;
            let counts = &mut by_kind[usize::from(task.kind())];
            counts.statements += statements(performed, task);
            match performed.status.outcome() {
                Outcome::Done => counts.done += 1,
                Outcome::Failed => counts.failed += 1,
                Outcome::Skipped => counts.skipped += 1,
                Outcome::Lost => counts.lost += 1,
            }
        }
        by_kind
    }

    /// What the refresh functions left, beside what they should have.
    pub(super) fn verification(&self) -> Verification {
        let asked = || self.begun().filter_map(|performed| Some((performed, performed.verified?)));
        let wrong = || asked().filter(|(_, verified)| !verified.ok);
        let example = |(performed, verified): (&Performed, Verified)| {
            let (name, set, left) = (self.works[performed.index].task.name(), performed.set, verified.left);
            let set = set.map_or_else(|| "?".to_owned(), |set| set.to_string());
            WrongAnswer {
                index: performed.index as u64,
                message: format!(
                    "after {name} of set {set} there are {} of its orders and {} lines, and {} have a wrong price",
                    left.orders, left.lines, left.prices_wrong
                ),
            }
        };
        Verification {
            checked: asked().count() as u64,
            wrong: wrong().count() as u64,
            examples: wrong().take(VERIFICATION_EXAMPLES_MAX).map(example).collect(),
        }
    }

    /// How much later than due what was begun was begun.
    pub(super) fn lag_ns(&self) -> LagNs {
        let mut lags: Vec<u64> = self.begun().map(|one| (one.start_ns - one.planned_ns).max(0) as u64).collect();
        lags.sort_unstable();
        // The smallest lag that at least so many in a hundred do not exceed.
        let percentile = |hundredths: usize| {
            let place = (lags.len() * hundredths).div_ceil(100).saturating_sub(1);
            lags.get(place).copied().unwrap_or(0)
        };
        LagNs { p50: percentile(50), p99: percentile(99), max: percentile(100) }
    }
}

/// Statements that were sent: a refresh function's are its requests but for BEGIN and COMMIT (or ROLLBACK).
fn statements(performed: &Performed, task: &Task) -> u64 {
    match task {
        Task::Query(_) => performed.requests,
        Task::Refresh(_) => performed.requests.saturating_sub(2),
    }
}

/// The place of `failure` in `errors`, from 1.
fn place(errors: &mut Vec<ErrorEntry>, failure: &Failure) -> u16 {
    let known = errors.iter().position(|entry| entry.sqlstate == failure.code);
    let place = known.unwrap_or_else(|| {
        let (sqlstate, message) = (failure.code.clone(), failure.message.clone());
        errors.push(ErrorEntry { sqlstate, message, count: 0 });
        errors.len() - 1
    });
    errors[place].count += 1;
    u16::try_from(place + 1).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::request::Test;
    use super::super::work::planned;
    use super::*;
    use plimsoll_workload::decision_support::queries::{Ranges, Source};

    const SOURCE: Source = Source { scale_factor: 0.01, seed: 7, ranges: Ranges::Specified };

    fn performed(index: usize, (planned_ns, start_ns, end_ns): (i64, i64, i64), status: Status) -> Performed {
        let failure = |code: &str| Failure { code: code.to_owned(), message: format!("first of {index}") };
        Performed {
            index,
            planned_ns,
            start_ns,
            end_ns,
            requests: 5,
            status,
            found: None,
            failure: match status {
                Status::Done | Status::Skipped => None,
                Status::TimedOut => Some(failure("57014")),
                Status::Failed | Status::Lost => Some(failure("08006")),
            },
            set: None,
            verified: None,
        }
    }

    #[test]
    fn each_piece_is_counted_once_and_by_its_kind() {
        let works = planned(Test::Throughput, 1, true, &SOURCE);
        let mut course = Course::new(works, vec![71, 72]);
        course.began(0, 10);
        course.began(22, 11);
        let at = serde_json::to_value(course.progress(12, Latest::default())).unwrap();
        assert_eq!((&at["planned"], &at["done"], &at["at"][0]["name"]), (&24.into(), &0.into(), &"Q21".into()));
        assert_eq!((&at["at"][1]["name"], &at["at"][1]["stream"]), (&"RF1".into(), &serde_json::Value::Null));

        let row = course.ended(performed(0, (10, 13, 20), Status::Done));
        assert_eq!((row.kind, row.backend_pid, row.statements, row.error), (20, 71, 5, 0));
        let row = course.ended(performed(22, (10, 11, 30), Status::Lost));
        assert_eq!((row.kind, row.backend_pid, row.statements, row.error), (22, 72, 3, 1));
        let row = course.ended(performed(1, (20, 20, 40), Status::TimedOut));
        assert_eq!((row.outcome, row.error), (Outcome::Failed, 2));
        let row = course.ended(performed(23, (30, 30, 30), Status::Skipped));
        assert_eq!((row.outcome, row.error), (Outcome::Skipped, 0));
        assert_eq!(course.progress(50, Latest::default()).at.len(), 0);

        let Identity { planned, done, failed, skipped, lost } = course.identity;
        assert_eq!((planned, done, failed, skipped, lost), (24, 1, 1, 1, 1));
        assert!(!course.identity.holds(), "twenty are yet to end");
        for index in 2..22 {
            course.ended(performed(index, (40, 40, 41), Status::Failed));
        }
        assert!(course.identity.holds());
        let errors: Vec<(u64, &str)> =
            course.errors.iter().map(|entry| (entry.count, entry.message.as_str())).collect();
        assert_eq!(errors, [(21, "first of 22"), (1, "first of 1")]);
        let by_kind = course.by_kind();
        assert_eq!((by_kind[20].done, by_kind[22].lost, by_kind[23].skipped), (1, 1, 1));
        assert_eq!(by_kind.iter().map(|kind| kind.failed).sum::<u64>(), 21);
        assert_eq!(course.lag_ns(), LagNs { p50: 0, p99: 3, max: 3 });
    }
}
