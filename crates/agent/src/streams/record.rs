//! `queries.json` and the plans, from the rows of a test and what its sessions said beside them.

use super::request::{Streams, Test};
use super::results::{Performed, Product, Status, Verified};
use super::work::{Task, Work};
use crate::failure::Failure;
use plimsoll_load::Outcomes;
use plimsoll_record::{FORMAT, Outcome, Table};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where plans go, below the folder of the record.
pub(super) const PLANS: &str = "plans";

/// `queries.json`.
#[derive(Serialize)]
pub(super) struct Queries<'a> {
    format: u32,
    test: Test,
    streams: u32,
    refresh: bool,
    explained: bool,
    timeout_seconds: Option<f64>,
    began_ns: Option<i64>,
    ended_ns: Option<i64>,
    queries: Vec<Entry<'a>>,
}

/// One piece of work in it.
#[derive(Serialize)]
struct Entry<'a> {
    index: usize,
    stream: Option<u32>,
    connection: u32,
    place: u32,
    name: String,
    title: &'static str,
    parameters: BTreeMap<&'static str, &'a str>,
    began_ns: Option<i64>,
    ended_ns: Option<i64>,
    rows: Option<u64>,
    bytes: Option<u64>,
    status: Status,
    error: Option<&'a str>,
    set: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Verified>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
}

/// The plan's file of a piece of work, below the folder of the record.
pub(super) fn plan_file(work: &Work) -> String {
    format!("{PLANS}/{}-{}.json", work.stream.unwrap_or_default(), work.task.name())
}

/// A piece of work that has ended: what its row says, and what its session did.
pub(super) struct Ended<'a> {
    work: &'a Work,
    start_ns: i64,
    end_ns: i64,
    status: Status,
    error: Option<&'a str>,
    /// `None` where the session never came back with it.
    performed: Option<&'a Performed>,
}

/// All that have ended, by index. The rows decide how: a session may have come back after it was given up.
pub(super) fn ended<'a>(
    request: &Streams,
    works: &'a [Work],
    performed: &'a [Option<Performed>],
    outcomes: &'a Outcomes,
) -> Result<Vec<Ended<'a>>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Record(format!("transactions.npy cannot be read: {error}"));
    let table = Table::read(&request.out.join("transactions.npy")).map_err(|error| failed(&error))?;
    let column = |name| table.column(name).ok_or_else(|| failed(&format!("it has no column {name}")));
    let (indexes, ends, errors) = (column("index")?, column("end_ns")?, column("error")?);
    let (starts, outcomes_of_rows) = (column("start_ns")?, column("outcome")?);
    let rows = (0..table.len()).filter_map(|row| {
        let index = usize::try_from(indexes[row]).ok()?;
        let outcome = Outcome::ALL.into_iter().find(|outcome| *outcome as i128 == outcomes_of_rows[row])?;
        let performed = performed.get(index)?.as_ref().filter(|performed| performed.status.outcome() == outcome);
        let reason = usize::try_from(errors[row] - 1).ok().and_then(|place| outcomes.errors.get(place));
        let error =
            performed.map_or(reason.map(|entry| entry.message.as_str()), |performed| performed.error.as_deref());
        let status = performed.map_or_else(|| Status::of(outcome), |performed| performed.status);
        let (start_ns, end_ns) = (i64::try_from(starts[row]).ok()?, i64::try_from(ends[row]).ok()?);
        Some(Ended { work: works.get(index)?, start_ns, end_ns, status, error, performed })
    });
    let mut ended: Vec<Ended<'a>> = rows.collect();
    ended.sort_by_key(|ended| ended.work.index);
    Ok(ended)
}

fn entry<'a>(ended: &Ended<'a>) -> Entry<'a> {
    let Ended { work, start_ns, end_ns, status, error, performed } = *ended;
    let begun = status != Status::Skipped;
    let parameters = match &work.task {
        Task::Query(query) => query.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect(),
        Task::Refresh(_) => BTreeMap::new(),
    };
    let (mut rows, mut bytes, mut orders, mut lines, mut plan) = (None, None, None, None, None);
    match performed.and_then(|performed| performed.product.as_ref()) {
        Some(Product::Answered(answer)) => (rows, bytes) = (Some(answer.rows), Some(answer.bytes)),
        Some(Product::Refreshed(refreshed)) => {
            rows = Some(refreshed.orders + refreshed.lines);
            (orders, lines) = (Some(refreshed.orders), Some(refreshed.lines));
        }
        Some(Product::Explained(_)) => plan = Some(plan_file(work)),
        None => {}
    }
    Entry {
        index: work.index,
        stream: work.stream,
        connection: work.connection,
        place: work.place,
        name: work.task.name(),
        title: work.task.title(),
        parameters,
        began_ns: begun.then_some(start_ns),
        ended_ns: begun.then_some(end_ns),
        rows,
        bytes,
        status,
        error,
        set: performed.and_then(|performed| performed.set),
        orders,
        lines,
        verified: performed.and_then(|performed| performed.verified),
        plan,
    }
}

/// What became of each piece of work.
pub(super) fn queries<'a>(request: &Streams, ended: &[Ended<'a>]) -> Queries<'a> {
    let begun = || ended.iter().filter(|ended| ended.status != Status::Skipped);
    Queries {
        format: FORMAT,
        test: request.test,
        streams: request.streams(),
        refresh: request.refresh,
        explained: request.explain,
        timeout_seconds: request.timeout_seconds,
        began_ns: begun().map(|ended| ended.start_ns).min(),
        ended_ns: begun().map(|ended| ended.end_ns).max(),
        queries: ended.iter().map(entry).collect(),
    }
}

/// Writes the plans that were asked for.
pub(super) fn write_plans(request: &Streams, ended: &[Ended<'_>]) -> Result<(), Failure> {
    for Ended { work, performed, .. } in ended {
        if let Some(Product::Explained(plan)) = performed.and_then(|performed| performed.product.as_ref()) {
            let name = plan_file(work);
            std::fs::write(request.out.join(&name), plan)
                .map_err(|error| Failure::Record(format!("{name} cannot be written: {error}")))?;
        }
    }
    Ok(())
}

/// What belongs to the results: of the workload, and of the test.
pub(super) fn facts_of(request: &Streams, of_workload: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let of_test = [
        ("test", json!(request.test)),
        ("streams", json!(request.streams())),
        ("refresh", json!(request.refresh)),
        ("explain", json!(request.explain)),
        ("timeout_seconds", json!(request.timeout_seconds)),
    ];
    of_workload.into_iter().chain(of_test.map(|(name, value)| (name.to_owned(), value))).collect()
}
