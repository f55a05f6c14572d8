//! What a test is made of: its streams, and the work of each in its order. Pure.
//!
//! The fact that constrains it: the whole test is known before it begins, so that whatever happens to it, each piece of its work is
//! accounted for.

use super::request::{Test, check_streams};
use crate::failure::Failure;
use plimsoll_workload::decision_support::queries::{QUERIES, Query, Source};
use plimsoll_workload::decision_support::refresh::Function;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A query, or a refresh function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Query(Query),
    Refresh(Function),
}

/// One piece of a test's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Its number in the test, from 0.
    pub(super) index: usize,
    /// The stream's number, as the queries' parameters know it; `None`: the refresh stream of a throughput test.
    pub(super) stream: Option<u32>,
    /// The stream's place among the sessions, from 0.
    pub(super) connection: u32,
    /// Its place in its stream, from 0.
    pub(super) place: u32,
    pub(super) task: Task,
}

/// Names of all that a test can be made of, by kind: "Q1" to "Q22", "RF1", "RF2".
pub(super) fn kinds() -> Vec<String> {
    let functions = Function::ALL.into_iter().map(|function| function.name().to_owned());
    (1..=QUERIES).map(|query| format!("Q{query}")).chain(functions).collect()
}

impl Task {
    /// The place of its name in [`kinds`].
    pub(super) fn kind(&self) -> u8 {
        let kind = match self {
            Self::Query(query) => query.query - 1,
            Self::Refresh(Function::Rf1) => QUERIES,
            Self::Refresh(Function::Rf2) => QUERIES + 1,
        };
        kind as u8
    }

    /// "Q14", "RF1".
    pub(super) fn name(&self) -> String {
        match self {
            Self::Query(query) => format!("Q{}", query.query),
            Self::Refresh(function) => function.name().to_owned(),
        }
    }

    /// What it does, in words.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Self::Query(query) => query.title,
            Self::Refresh(Function::Rf1) => "New sales",
            Self::Refresh(Function::Rf2) => "Old sales",
        }
    }
}

/// The work of `test` with `streams` streams of queries, with refresh functions or without; session after session.
pub(super) fn planned(test: Test, streams: u32, refresh: bool, source: &Source) -> Vec<Work> {
    let queries = |stream| source.stream(stream).into_iter().map(Task::Query);
    let functions = |pairs: u32| (0..pairs).flat_map(|_| Function::ALL).map(Task::Refresh);
    let mut sessions: Vec<(Option<u32>, Vec<Task>)> = Vec::new();
    match test {
        Test::Power if refresh => {
            let [first, last] = Function::ALL.map(Task::Refresh);
            sessions.push((Some(0), std::iter::once(first).chain(queries(0)).chain([last]).collect()));
        }
        Test::Power => sessions.push((Some(0), queries(0).collect())),
        Test::Throughput => {
            sessions.extend((1..=streams).map(|stream| (Some(stream), queries(stream).collect())));
            if refresh {
                sessions.push((None, functions(streams).collect()));
            }
        }
    }
    let mut works = Vec::new();
    for ((stream, tasks), connection) in sessions.into_iter().zip(0..) {
        for (task, place) in tasks.into_iter().zip(0..) {
            works.push(Work { index: works.len(), stream, connection, place, task });
        }
    }
    works
}

/// A test whose work is asked for: keys of `streams`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedTest {
    test: Test,
    #[serde(default)]
    streams: Option<u32>,
    refresh: bool,
}

/// A piece of work as a client that is another program is told of it.
#[derive(Debug, Serialize)]
pub(crate) struct ToldWork {
    index: usize,
    stream: Option<u32>,
    connection: u32,
    place: u32,
    name: String,
    title: &'static str,
    parameters: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    task: ToldTask,
}

/// What is to be performed: a statement, or a refresh function by its name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum ToldTask {
    Sql(String),
    Function(&'static str),
}

/// The work of a test, as it would be performed here.
pub(crate) fn told(asked: AskedTest, source: &Source) -> Result<Vec<ToldWork>, Failure> {
    check_streams(asked.test, asked.streams)?;
    let works = planned(asked.test, asked.streams.unwrap_or(1), asked.refresh, source);
    let tell = |Work { index, stream, connection, place, task }| {
        let (name, title) = (task.name(), task.title());
        let (parameters, task) = match task {
            Task::Query(query) => (query.parameters, ToldTask::Sql(query.sql)),
            Task::Refresh(function) => (BTreeMap::new(), ToldTask::Function(function.name())),
        };
        ToldWork { index, stream, connection, place, name, title, parameters, task }
    };
    Ok(works.into_iter().map(tell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::decision_support::queries::Ranges;

    const SOURCE: Source = Source { scale_factor: 0.01, seed: 7, ranges: Ranges::Specified };

    fn names(works: &[Work]) -> Vec<String> {
        works.iter().map(|work| work.task.name()).collect()
    }

    #[test]
    fn a_power_test_is_stream_0_between_a_pair() {
        let works = planned(Test::Power, 1, true, &SOURCE);
        let names = names(&works);
        assert_eq!((names.len(), names[0].as_str(), names[23].as_str()), (24, "RF1", "RF2"));
        assert_eq!(names[1..5], ["Q14", "Q2", "Q9", "Q20"]);
        assert!(works.iter().all(|work| (work.stream, work.connection) == (Some(0), 0)));
        assert!(works.iter().zip(0..).all(|(work, at)| (work.index, work.place) == (at as usize, at)));
        assert_eq!(self::names(&planned(Test::Power, 1, false, &SOURCE)), names[1..23]);
    }

    #[test]
    fn a_throughput_test_has_a_pair_a_stream_in_a_session_of_its_own() {
        let works = planned(Test::Throughput, 3, true, &SOURCE);
        assert_eq!(works.len(), 3 * 22 + 6);
        assert!(works.iter().enumerate().all(|(at, work)| work.index == at));
        assert_eq!(names(&works[66..]), ["RF1", "RF2", "RF1", "RF2", "RF1", "RF2"]);
        assert!(works[66..].iter().all(|work| (work.stream, work.connection) == (None, 3)));
        for (stream, of_stream) in works[..66].chunks(22).enumerate() {
            let (number, connection) = (stream as u32 + 1, stream as u32);
            assert!(of_stream.iter().all(|work| (work.stream, work.connection) == (Some(number), connection)));
            assert_eq!(of_stream.iter().map(|work| work.place).collect::<Vec<_>>(), (0..22).collect::<Vec<_>>());
            let tasks: Vec<Task> = SOURCE.stream(number).into_iter().map(Task::Query).collect();
            assert!(of_stream.iter().map(|work| &work.task).eq(&tasks));
        }
        assert_eq!(planned(Test::Throughput, 3, false, &SOURCE), works[..66]);
    }

    #[test]
    fn kinds_name_every_task() {
        let kinds = kinds();
        assert_eq!((kinds.len(), kinds[21].as_str(), kinds[22].as_str()), (24, "Q22", "RF1"));
        for work in planned(Test::Power, 1, true, &SOURCE) {
            assert_eq!(kinds[usize::from(work.task.kind())], work.task.name());
        }
    }
}
