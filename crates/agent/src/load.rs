//! `load`: sessions, probes and the engine, wired together; the summary at the end.

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request::{self, Load};
use crate::sampler::{Latest, Sampler};
use crate::segment::{Conductor, PATIENCE_NS};
use crate::summary::{Asked, summary, verdict, write_json};
use crate::target::{Prepared, Wanted};
use crate::workload::without_transactions;
use plimsoll_load::{Config, Outcomes, Tables};
use plimsoll_record::{Identity, Summary, write_latency};
use plimsoll_schedule::Schedule;
use serde::Serialize;
use std::sync::{Arc, OnceLock};

const NS_PER_SECOND: f64 = 1e9;

#[derive(Serialize)]
struct ProgressLine {
    t_ns: i64,
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    latest: Latest,
}

pub(crate) fn load(request: &Load) -> Result<(), Failure> {
    request.validate()?;
    let workload = request::workload(&request.workload, request.mode)?;
    if !workload.has_transactions() {
        return Err(without_transactions(workload.name()));
    }
    if workload.is_paced() && !matches!(request.schedule, Schedule::Closed { .. }) {
        let message = "schedule.kind: the workload's keying and think times need \"closed\"";
        return Err(Failure::Request(message.to_owned()));
    }
    let mut conductor = Conductor::new()?;
    let end = Arc::new(OnceLock::new());
    let wanted = Wanted {
        clients: request.clients,
        threads: request.threads,
        protocol: request.protocol(),
        retries_max: request.retries_max,
        out: &request.out,
        end: &end,
    };
    let prepared = request.target.prepare(&wanted, workload)?;
    let sampler = Sampler::beside_load(&request.out, &request.target, &request.sample, request.probes.as_ref())?;
    let tables =
        Tables::create(&request.out).map_err(|error| Failure::Record(format!("a table cannot be written: {error}")))?;
    if request.windows {
        conductor.opens_windows(&request.out, request.first_index)?;
    }
    let Prepared { name, kinds, facts, threads, counts_commits, start, conclude } = prepared;
    let control = conductor.control(threads as usize);
    let _ = end.set(Arc::clone(&control));
    let config = config(request, kinds.len());
    let (engine, watched) = (Arc::clone(&control), Arc::clone(&control));
    let progress = |t_ns, latest| ProgressLine { t_ns, identity: watched.identity(), latest };
    let carried = conductor.carry(sampler, &control, progress, move || start(&config, &engine, tables))?;
    let backends = carried.outcomes.backend_pids.len() as u64;
    let asked = Asked {
        name,
        kinds,
        first_index: request.first_index,
        schedule: Some(&request.schedule),
        mode: request.mode,
        describe: request.describe,
        threads,
        devices: &request.sample.devices,
        commits_beside: request.target.commits_beside(request.mode, backends).filter(|_| counts_commits),
        facts,
    };
    let summary = summary(asked, &carried);
    write(request, &carried.outcomes, &summary)?;
    output::line(&Event { event: "summary", value: &summary });
    // Where that fails the record is written already.
    conclude()?;
    verdict(&summary, carried.outcomes.ended, carried.cause)
}

fn config(request: &Load, kinds: usize) -> Config {
    Config {
        first_index: request.first_index,
        transactions: request.stop.transactions,
        duration_ns: request.stop.seconds.map(|seconds| (seconds * NS_PER_SECOND) as i64),
        schedule: request.schedule.clone(),
        kinds,
        patience_ns: PATIENCE_NS,
        reconnect: request.reconnect,
        rows_max: request.rows_max,
        sample_one_in: request.sample_one_in,
        pin_threads: request.pin_threads,
        own_descriptors: false,
        dealt: Vec::new(),
    }
}

fn write(request: &Load, outcomes: &Outcomes, summary: &Summary) -> Result<(), Failure> {
    let latency = request.out.join("latency.npy");
    write_latency(&latency, &outcomes.latency_ns)
        .map_err(|error| Failure::Record(format!("latency.npy cannot be written: {error}")))?;
    write_json(&request.out, "summary.json", summary)
}
