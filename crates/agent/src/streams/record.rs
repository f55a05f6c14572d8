//! `queries.json` and `summary.json`, from the course of a test.

use super::course::Course;
use super::request::{Streams, Test};
use super::session::{Found, Left, Performed, Status, Verified};
use super::work::{Task, Work, kinds};
use crate::failure::Failure;
use crate::sampler::Sampled;
use crate::stop::Cause;
use crate::summary::{cpus_allowed, ended_by, memory_bytes_max};
use plimsoll_load::{CpuNs, Ended, epoch_minus_monotonic_ns};
use plimsoll_record::{FORMAT, Health, Rows, Summary};
use plimsoll_workload::decision_support;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where plans go, below the folder of the record.
pub(super) const PLANS: &str = "plans";

/// What the course of a test does not say.
pub(super) struct Facts {
    /// What decides the rows and the queries' texts.
    pub(super) of_workload: BTreeMap<String, Value>,
    /// When the first work was due.
    pub(super) released_ns: i64,
    pub(super) ended_ns: i64,
    /// Rows of transactions.npy.
    pub(super) recorded: u64,
    pub(super) left: Vec<Left>,
    /// CPU time of the process.
    pub(super) cpu: CpuNs,
    pub(super) sampled: Sampled,
    pub(super) ended: Ended,
    /// Who told it to stop.
    pub(super) cause: Option<Cause>,
}

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

fn entry<'a>(work: &'a Work, performed: &'a Performed) -> Entry<'a> {
    let begun = performed.status != Status::Skipped;
    let parameters = match &work.task {
        Task::Query(query) => query.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect(),
        Task::Refresh(_) => BTreeMap::new(),
    };
    let (mut rows, mut bytes, mut orders, mut lines, mut plan) = (None, None, None, None, None);
    match &performed.found {
        Some(Found::Answered(answer)) => (rows, bytes) = (Some(answer.rows), Some(answer.bytes)),
        Some(Found::Refreshed(refreshed)) => {
            rows = Some(refreshed.orders + refreshed.lines);
            (orders, lines) = (Some(refreshed.orders), Some(refreshed.lines));
        }
        Some(Found::Explained(_)) => plan = Some(plan_file(work)),
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
        began_ns: begun.then_some(performed.start_ns),
        ended_ns: begun.then_some(performed.end_ns),
        rows,
        bytes,
        status: performed.status,
        error: performed.failure.as_ref().map(|failure| failure.message.as_str()),
        set: performed.set,
        orders,
        lines,
        verified: performed.verified,
        plan,
    }
}

/// What became of each piece of work.
pub(super) fn queries<'a>(request: &Streams, course: &'a Course) -> Queries<'a> {
    let entries = course.works.iter().zip(&course.ended);
    Queries {
        format: FORMAT,
        test: request.test,
        streams: request.streams(),
        refresh: request.refresh,
        explained: request.explain,
        timeout_seconds: request.timeout_seconds,
        began_ns: course.begun().map(|performed| performed.start_ns).min(),
        ended_ns: course.begun().map(|performed| performed.end_ns).max(),
        queries: entries.filter_map(|(work, ended)| Some(entry(work, ended.as_ref()?))).collect(),
    }
}

/// Writes the plans that were asked for.
pub(super) fn write_plans(request: &Streams, course: &Course) -> Result<(), Failure> {
    for (work, performed) in course.works.iter().zip(&course.ended) {
        if let Some(Performed { found: Some(Found::Explained(plan)), .. }) = performed {
            let name = plan_file(work);
            std::fs::write(request.out.join(&name), plan)
                .map_err(|error| Failure::Record(format!("{name} cannot be written: {error}")))?;
        }
    }
    Ok(())
}

/// What belongs to the results: of the workload, and of the test.
fn facts_of(request: &Streams, of_workload: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let of_test = [
        ("test", json!(request.test)),
        ("streams", json!(request.streams())),
        ("refresh", json!(request.refresh)),
        ("explain", json!(request.explain)),
        ("timeout_seconds", json!(request.timeout_seconds)),
    ];
    of_workload.into_iter().chain(of_test.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// What the test amounts to.
pub(super) fn summary(request: &Streams, course: &Course, facts: Facts) -> Summary {
    let Facts { of_workload, released_ns, ended_ns, recorded, left, cpu, sampled, ended, cause } = facts;
    let planned = course.identity.planned;
    let by_kind = kinds().into_iter().zip(course.by_kind()).collect();
    Summary {
        format: FORMAT,
        workload: decision_support::NAME.to_owned(),
        kinds: kinds(),
        first_index: 0,
        next_index: planned,
        started_ns: released_ns,
        ended_ns,
        epoch_minus_monotonic_ns: epoch_minus_monotonic_ns(),
        ended_by: ended_by(ended, cause).to_owned(),
        identity: course.identity,
        by_kind,
        errors: course.errors.clone(),
        health: health(course, &left, &sampled, cpu),
        verification: course.verification(),
        totals: BTreeMap::new(),
        backend_pids: course.backend_pids.clone(),
        // Workers of parallel queries commit, too, as many as the server starts.
        server_commits_beside: None,
        devices: request.sample.devices.clone(),
        rows: Some(Rows { recorded, all_below_index: planned, sample_one_in: 1 }),
        schedule: None,
        planned_rate: None,
        mode: Some("simple".to_owned()),
        describe: Some(false),
        retries: Some(0),
        reconnects: Some(0),
        requests_sent: Some(left.iter().map(|session| session.requests).sum()),
        facts: facts_of(request, of_workload),
        probes: sampled.probes,
    }
}

fn health(course: &Course, left: &[Left], sampled: &Sampled, cpu: CpuNs) -> Health {
    Health {
        cpu_user_ns: cpu.user,
        cpu_system_ns: cpu.system,
        load_cpu_user_ns: Some(left.iter().map(|session| session.cpu.user).sum()),
        load_cpu_system_ns: Some(left.iter().map(|session| session.cpu.system).sum()),
        threads: left.len() as u32,
        lag_ns: course.lag_ns(),
        records_dropped: 0,
        samples: sampled.samples,
        sample_late_ns_max: sampled.late_ns_max,
        thread_cpus: Some(Vec::new()),
        memory_bytes_max: memory_bytes_max(),
        cpus_allowed: cpus_allowed(),
        connections_lost: left.iter().filter(|session| session.broken).count() as u32,
    }
}
