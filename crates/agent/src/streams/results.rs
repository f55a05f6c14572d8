//! What the sessions of a test say of their work beside its rows: what they are at, how each piece ended and what came of it.

use super::work::{Task, Work};
use crate::sampler::Latest;
use plimsoll_record::{Identity, Outcome, WrongAnswer};
use plimsoll_target::postgres::Answer;
use plimsoll_workload::decision_support::refresh::{Left as LeftOfSet, Refreshed};
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

    /// As far as its row tells.
    pub(super) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Failed => Self::Failed,
            Outcome::Skipped => Self::Skipped,
            Outcome::Lost => Self::Lost,
        }
    }
}

/// What came of a piece of work that was done.
#[derive(Debug)]
pub(super) enum Product {
    Answered(Answer),
    /// The query's plan with what it took, as the server tells it.
    Explained(String),
    Refreshed(Refreshed),
}

/// What a refresh function left, beside what it should have.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Verified {
    #[serde(flatten)]
    pub(super) left: LeftOfSet,
    pub(super) ok: bool,
}

/// A piece of work that was performed.
#[derive(Debug)]
pub(super) struct Performed {
    pub(super) status: Status,
    pub(super) product: Option<Product>,
    /// Why it was not done, in words.
    pub(super) error: Option<String>,
    /// The number of a refresh function's set.
    pub(super) set: Option<u64>,
    /// Of a refresh function that was done: what it left of its set. `None` where the server could not be asked.
    pub(super) verified: Option<Verified>,
}

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

#[derive(Debug)]
struct State {
    /// By connection.
    under_way: Vec<Option<UnderWay>>,
    /// By index.
    performed: Vec<Option<Performed>>,
}

/// What the sessions tell, and what they have to do.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) works: Vec<Work>,
    state: Mutex<State>,
}

impl Results {
    pub(super) fn new(works: Vec<Work>) -> Self {
        let connections = works.iter().map(|work| work.connection + 1).max().unwrap_or(0);
        let under_way = vec![None; connections as usize];
        let performed = works.iter().map(|_| None).collect();
        Self { works, state: Mutex::new(State { under_way, performed }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn began(&self, index: usize, began_ns: i64) {
        self.state().under_way[self.works[index].connection as usize] = Some(UnderWay { index, began_ns });
    }

    pub(super) fn ended(&self, index: usize, performed: Performed) {
        let mut state = self.state();
        state.under_way[self.works[index].connection as usize] = None;
        state.performed[index] = Some(performed);
    }

    /// What a refresh function that was done had left. Gives what is wrong with it, if anything is.
    pub(super) fn verified(&self, index: usize, verified: Verified) -> Option<WrongAnswer> {
        let mut state = self.state();
        let performed = state.performed[index].as_mut()?;
        performed.verified = Some(verified);
        let (name, left) = (self.works[index].task.name(), verified.left);
        let set = performed.set.map_or_else(|| "?".to_owned(), |set| set.to_string());
        let message = format!(
            "after {name} of set {set} there are {} of its orders and {} lines, and {} have a wrong price",
            left.orders, left.lines, left.prices_wrong
        );
        (!verified.ok).then_some(WrongAnswer { index: index as u64, message })
    }

    /// How far the test has come by `t_ns`.
    pub(super) fn progress(&self, t_ns: i64, identity: Identity, latest: Latest) -> ProgressLine {
        let at = |under_way: &UnderWay| {
            let Work { stream, connection, place, task, .. } = &self.works[under_way.index];
            let (stream, connection, place) = (*stream, *connection, *place);
            At { stream, connection, place, name: task.name(), began_ns: under_way.began_ns }
        };
        ProgressLine { t_ns, identity, latest, at: self.state().under_way.iter().flatten().map(at).collect() }
    }

    /// All that was told so far, by index; from here on nothing is known.
    pub(super) fn take(&self) -> Vec<Option<Performed>> {
        self.state().performed.iter_mut().map(Option::take).collect()
    }
}

/// Statements among `requests`: a refresh function's are its requests but for BEGIN and COMMIT (or ROLLBACK).
pub(super) fn statements(task: &Task, requests: u64) -> u64 {
    match task {
        Task::Query(_) => requests,
        Task::Refresh(_) => requests.saturating_sub(2),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Test;
    use super::super::work::planned;
    use super::*;
    use plimsoll_workload::decision_support::queries::{Ranges, Source};

    const SOURCE: Source = Source { scale_factor: 0.01, seed: 7, ranges: Ranges::Specified };

    fn results() -> Results {
        Results::new(planned(Test::Throughput, 1, true, &SOURCE))
    }

    fn performed(set: Option<u64>) -> Performed {
        Performed { status: Status::Done, product: None, error: None, set, verified: None }
    }

    #[test]
    fn a_progress_line_says_what_each_session_is_at() {
        let results = results();
        results.began(0, 10);
        results.began(22, 11);
        let line = |results: &Results| {
            serde_json::to_value(results.progress(12, Identity::default(), Latest::default())).unwrap()
        };
        let at = &line(&results)["at"];
        assert_eq!((&at[0]["name"], &at[0]["stream"], &at[0]["began_ns"]), (&"Q21".into(), &1.into(), &10.into()));
        assert_eq!((&at[1]["name"], &at[1]["stream"]), (&"RF1".into(), &serde_json::Value::Null));
        results.ended(0, performed(None));
        assert_eq!(line(&results)["at"].as_array().unwrap().len(), 1);
        let told: Vec<usize> = (0..24).zip(results.take()).filter_map(|(index, one)| one.map(|_| index)).collect();
        assert_eq!(told, [0]);
    }

    #[test]
    fn what_a_refresh_function_left_wrong_is_named_with_its_set() {
        let results = results();
        let left = |prices_wrong| LeftOfSet { orders: 15, lines: 60, prices_wrong };
        assert!(results.verified(22, Verified { left: left(3), ok: false }).is_none(), "it was not performed");
        results.ended(22, performed(Some(4)));
        let wrong = results.verified(22, Verified { left: left(3), ok: false }).unwrap();
        assert_eq!(wrong.index, 22);
        assert!(wrong.message.contains("RF1 of set 4") && wrong.message.contains("3 have a wrong price"), "{wrong:?}");
        assert!(results.verified(22, Verified { left: left(0), ok: true }).is_none());
    }

    #[test]
    fn begin_and_commit_are_no_statements() {
        let works = planned(Test::Power, 1, true, &SOURCE);
        assert_eq!((statements(&works[0].task, 5), statements(&works[1].task, 1)), (3, 1));
        assert_eq!(statements(&works[0].task, 1), 0);
    }
}
