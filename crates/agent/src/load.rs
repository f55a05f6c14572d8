//! `load`: connections, probes and the engine, wired together; the summary at the end.

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request::{self, Load};
use crate::sampler::{Latest, Running, Sampled, Sampler};
use crate::stop::{self, Cause};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use plimsoll_load::{Config, Control, Ended, EngineError, Outcomes, epoch_minus_monotonic_ns, monotonic_ns, run};
use plimsoll_record::{
    FORMAT, Health, Identity, LagNs, Summary, TransactionWriter, VERIFICATION_EXAMPLES_MAX, Verification, write_latency,
};
use plimsoll_target::postgres::Client;
use plimsoll_workload::wpi_orders::WpiOrders;
use plimsoll_workload::{Conversation, DataSet, Session, SessionReport, require_stamp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Transactions under way when a segment ends may take this long; with scans over swapped memory they are slow.
const PATIENCE_NS: i64 = 120_000_000_000;
const NS_PER_SECOND: f64 = 1e9;
/// What a session commits beside its load: PostgreSQL opens a transaction of its own as a backend starts, and what is
/// asked before the load (the statements' preparation, the stamp) is one more, since it is one request.
const COMMITS_BESIDE_A_SESSION: u64 = 2;

#[derive(Serialize)]
struct ProgressLine {
    t_ns: i64,
    #[serde(flatten)]
    identity: Identity,
    #[serde(skip_serializing_if = "Option::is_none")]
    blks_hit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blks_read: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_sectors: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_bytes: Option<i64>,
}

/// What the waiting main thread hears.
enum Heard {
    Stop(Cause),
    Ended(Box<Result<Outcomes, EngineError>>),
}

/// CPU time of this process so far, user and system, in nanoseconds.
fn cpu_ns() -> (i64, i64) {
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or((0, 0), |usage| (usage.user_time().num_nanoseconds(), usage.system_time().num_nanoseconds()))
}

fn cpus_allowed() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

type Sessions = Vec<Conversation<WpiOrders>>;

fn connect(request: &Load, data: &Arc<WpiOrders>) -> Result<Sessions, Failure> {
    let address = request.target.address_in_schema()?;
    let mut client = Client::open(&address)?;
    require_stamp(data.as_ref(), &mut client, &request.target.schema)?;
    drop(client);
    let address = address.with_settings(data.session_settings().iter().copied());
    let statements: Vec<&str> = data.statements().iter().map(|statement| statement.sql).collect();
    let open = |_| Ok(Conversation::open(&address, Arc::clone(data), &statements)?);
    (0..request.clients).map(open).collect()
}

pub(crate) fn load(request: &Load) -> Result<(), Failure> {
    request.validate()?;
    let data = Arc::new(request::workload(&request.workload)?);
    let (tell, heard) = channel();
    stop::watch(&tell, Heard::Stop)?;
    let sessions = connect(request, &data)?;
    let backend_pids = sessions.iter().map(Session::backend_pid).collect();
    let sampler = Sampler::of_load(request)?;
    let table = TransactionWriter::create(&request.out.join("transactions.npy"))
        .map_err(|error| Failure::Record(format!("transactions.npy cannot be written: {error}")))?;
    let config = Config {
        first_index: request.first_index,
        transactions: request.stop.transactions,
        duration_ns: request.stop.seconds.map(|seconds| (seconds * NS_PER_SECOND) as i64),
        schedule: request.schedule,
        kinds: data.kinds().len(),
        patience_ns: PATIENCE_NS,
    };
    let control = Arc::new(Control::new(request.threads as usize));
    let before = cpu_ns();
    let running = sampler.start().map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
    let engine = Arc::clone(&control);
    std::thread::spawn(move || tell.send(Heard::Ended(Box::new(run(sessions, &config, &engine, table)))));
    let (outcomes, cause) = wait(&heard, &control, &running);
    let after = cpu_ns();
    let sampled = running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;
    let outcomes = outcomes?;
    let health = health(request, &outcomes, &sampled, (before, after));
    let mut summary = summary(request, data.as_ref(), &outcomes, health, backend_pids, cause);
    summary.probes = sampled.probes;
    write(request, &outcomes, &summary)?;
    output::line(&Event { event: "summary", value: &summary });
    verdict(&summary, outcomes.ended, cause)
}

/// Writes a progress line a second until the engine has ended; passes on what is to stop it.
fn wait(
    heard: &Receiver<Heard>,
    control: &Control,
    running: &Running,
) -> (Result<Outcomes, EngineError>, Option<Cause>) {
    let mut cause = None;
    let mut next_line = Instant::now() + PROGRESS_EVERY;
    loop {
        match heard.recv_timeout(next_line.saturating_duration_since(Instant::now())) {
            Ok(Heard::Ended(outcomes)) => return (*outcomes, cause),
            Ok(Heard::Stop(why)) => {
                cause.get_or_insert(why);
                control.stop();
            }
            Err(RecvTimeoutError::Timeout) => {
                next_line += PROGRESS_EVERY;
                let Latest { blks_hit, blks_read, read_sectors, swap_bytes } = running.latest();
                let (t_ns, identity) = (monotonic_ns(), control.identity());
                let line = ProgressLine { t_ns, identity, blks_hit, blks_read, read_sectors, swap_bytes };
                output::event("progress", line);
            }
            Err(RecvTimeoutError::Disconnected) => return (Err(EngineError::Panicked), cause),
        }
    }
}

fn health(request: &Load, outcomes: &Outcomes, sampled: &Sampled, cpu: ((i64, i64), (i64, i64))) -> Health {
    let lag = |quantile: f64| outcomes.lag_ns.value_at_quantile(quantile);
    let ((user_before, system_before), (user_after, system_after)) = cpu;
    Health {
        cpu_user_ns: user_after - user_before,
        cpu_system_ns: system_after - system_before,
        threads: request.threads,
        lag_ns: LagNs { p50: lag(0.5), p99: lag(0.99), max: outcomes.lag_ns.max() },
        records_dropped: outcomes.records_dropped,
        samples: sampled.samples,
        sample_late_ns_max: sampled.late_ns_max,
        cpus_allowed: cpus_allowed(),
        connections_lost: outcomes.connections_lost,
    }
}

fn summary(
    request: &Load,
    data: &WpiOrders,
    outcomes: &Outcomes,
    health: Health,
    backend_pids: Vec<u32>,
    cause: Option<Cause>,
) -> Summary {
    let kinds: Vec<String> = data.kinds().into_iter().map(str::to_owned).collect();
    let ended_by = match (outcomes.ended, cause) {
        (Ended::Seconds, _) => "seconds",
        (Ended::Transactions, _) => "transactions",
        (Ended::ConnectionsLost, _) => "connections_lost",
        (Ended::RecordFailed, _) => "record_failed",
        (Ended::Told, Some(Cause::Signal)) => "signal",
        (Ended::Told, Some(Cause::InputClosed)) => "input_closed",
        (Ended::Told, Some(Cause::Told) | None) => "told",
    };
    let (verification, totals) = merged(&outcomes.reports);
    Summary {
        format: FORMAT,
        workload: data.name().to_owned(),
        by_kind: kinds.iter().cloned().zip(outcomes.by_kind.iter().copied()).collect(),
        kinds,
        first_index: request.first_index,
        next_index: outcomes.next_index,
        started_ns: outcomes.started_ns,
        ended_ns: outcomes.ended_ns,
        epoch_minus_monotonic_ns: epoch_minus_monotonic_ns(),
        ended_by: ended_by.to_owned(),
        identity: outcomes.identity,
        errors: outcomes.errors.clone(),
        health,
        verification,
        totals,
        // The sessions of the load, and the one that read the stamp.
        server_commits_beside: Some(COMMITS_BESIDE_A_SESSION * (backend_pids.len() as u64 + 1)),
        backend_pids,
        devices: request.sample.devices.clone(),
        probes: BTreeMap::new(),
    }
}

fn merged(reports: &[SessionReport]) -> (Verification, BTreeMap<String, i64>) {
    let (mut verification, mut totals) = (Verification::default(), BTreeMap::new());
    for report in reports {
        verification.checked += report.verification.checked;
        verification.wrong += report.verification.wrong;
        verification.examples.extend(report.verification.examples.iter().cloned());
        for (name, value) in &report.totals {
            *totals.entry((*name).to_owned()).or_insert(0) += value;
        }
    }
    verification.examples.truncate(VERIFICATION_EXAMPLES_MAX);
    (verification, totals)
}

fn write(request: &Load, outcomes: &Outcomes, summary: &Summary) -> Result<(), Failure> {
    let failed = |name: &str, error: std::io::Error| Failure::Record(format!("{name} cannot be written: {error}"));
    let latency = request.out.join("latency.npy");
    write_latency(&latency, &outcomes.latency_ns).map_err(|error| failed("latency.npy", error))?;
    let json = serde_json::to_vec_pretty(summary).map_err(|error| failed("summary.json", error.into()))?;
    std::fs::write(request.out.join("summary.json"), json).map_err(|error| failed("summary.json", error))
}

/// The exit that a segment deserves, once everything is written.
fn verdict(summary: &Summary, ended: Ended, cause: Option<Cause>) -> Result<(), Failure> {
    let taken = summary.next_index - summary.first_index;
    if !summary.identity.holds() || summary.identity.planned != taken {
        return Err(Failure::Identity(format!("{:?}, {taken} indexes taken", summary.identity)));
    }
    match (ended, cause) {
        (Ended::ConnectionsLost, _) => {
            let reason = summary.errors.last().map_or("", |error| error.message.as_str());
            Err(Failure::Target(format!("every connection was lost: {reason}")))
        }
        (Ended::Told, Some(Cause::Signal)) => Err(Failure::Ended("a signal")),
        (Ended::Told, Some(Cause::InputClosed)) => Err(Failure::Ended("the end of standard input")),
        _ => Ok(()),
    }
}
