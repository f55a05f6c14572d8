//! `load`: connections, probes and the engine, wired together; the summary at the end.

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request::{self, Load};
use crate::sampler::{Latest, Running, Sampled, Sampler};
use crate::stop::{self, Cause};
use crate::summary::{Facts, cpu_ns, summary, verdict, write_json};
use crate::workload::Use;
use plimsoll_load::{
    Config, Control, EngineError, Outcomes, Tables, monotonic_ns, open_all, raise_descriptor_limit, run,
};
use plimsoll_record::{Identity, Summary, write_latency};
use plimsoll_schedule::Schedule;
use plimsoll_session::Opener;
use plimsoll_target::postgres::Client;
use plimsoll_workload::{ConversationOpener, Workload};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Transactions under way when a segment ends may take this long; with scans over swapped memory they are slow. An open
/// loop's backlog is worked off for as long.
const PATIENCE_NS: i64 = 120_000_000_000;
const NS_PER_SECOND: f64 = 1e9;

#[derive(Serialize)]
struct ProgressLine {
    t_ns: i64,
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    latest: Latest,
}

/// What the waiting main thread hears.
enum Heard {
    Stop(Cause),
    Ended(Box<Result<Outcomes, EngineError>>),
}

pub(crate) fn load(request: &Load) -> Result<(), Failure> {
    request.validate()?;
    let chosen = request::workload(&request.workload, request.mode)?;
    chosen.must_have_transactions()?;
    if chosen.is_paced() && !matches!(request.schedule, Schedule::Closed { .. }) {
        let message = "schedule.kind: the workload's keying and think times need \"closed\"";
        return Err(Failure::Request(message.to_owned()));
    }
    let (tell, heard) = channel();
    stop::watch(&tell, Heard::Stop)?;
    raise_descriptor_limit(request.clients).map_err(|error| Failure::Record(error.to_string()))?;
    let mut client = Client::open(&request.target.address_in_schema()?)?;
    chosen.recognise(&mut client, &request.target.schema)?;
    drop(client);
    let (name, counts_commits, facts) = (chosen.name(), chosen.data().is_some(), chosen.facts());
    chosen.into_use(Segment { request, name, counts_commits, facts, tell, heard })?
}

/// A segment whose workload is known.
struct Segment<'a> {
    request: &'a Load,
    name: &'static str,
    counts_commits: bool,
    facts: BTreeMap<String, Value>,
    tell: Sender<Heard>,
    heard: Receiver<Heard>,
}

impl Use for Segment<'_> {
    type Outcome = Result<(), Failure>;

    fn of<W: Workload + 'static>(self, mut workload: W) -> Self::Outcome {
        let Self { request, name, counts_commits, facts, tell, heard } = self;
        let kinds = workload.kinds();
        workload
            .record_in(&request.out)
            .map_err(|error| Failure::Record(format!("a file of the workload cannot be written: {error}")))?;
        let address = request.target.address_in_schema()?;
        let protocol = request.protocol();
        let opener = ConversationOpener::new(&address, Arc::new(workload), protocol, request.retries_max)?;
        let opener: Arc<dyn Opener> = Arc::new(opener);
        let sessions = open_all(opener.as_ref(), request.clients)?;
        let sampler = Sampler::beside_load(&request.out, &request.target, &request.sample, request.probes.as_ref())?;
        let tables = Tables::create(&request.out)
            .map_err(|error| Failure::Record(format!("a table cannot be written: {error}")))?;
        let config = config(request, kinds.len());
        let control = Control::new(request.threads as usize);
        let before = cpu_ns();
        let running = sampler.start().map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
        let engine = Arc::clone(&control);
        std::thread::spawn(move || {
            let carry = AssertUnwindSafe(|| run(sessions, &opener, &config, &engine, tables));
            // Others hold the channel, too: without a word from here `wait` would wait for ever.
            let outcomes = catch_unwind(carry).unwrap_or(Err(EngineError::Panicked));
            tell.send(Heard::Ended(Box::new(outcomes)))
        });
        let (outcomes, cause) = wait(&heard, &control, &running);
        let cpu = cpu_ns() - before;
        let sampled: Sampled =
            running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;
        let outcomes = outcomes?;
        let summary =
            summary(request, &outcomes, Facts { name, kinds, counts_commits, workload: facts, cpu, sampled, cause });
        write(request, &outcomes, &summary)?;
        output::line(&Event { event: "summary", value: &summary });
        verdict(&summary, outcomes.ended, cause)
    }
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
    }
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
                let (t_ns, identity, latest) = (monotonic_ns(), control.identity(), running.latest());
                output::event("progress", ProgressLine { t_ns, identity, latest });
            }
            Err(RecvTimeoutError::Disconnected) => return (Err(EngineError::Panicked), cause),
        }
    }
}

fn write(request: &Load, outcomes: &Outcomes, summary: &Summary) -> Result<(), Failure> {
    let latency = request.out.join("latency.npy");
    write_latency(&latency, &outcomes.latency_ns)
        .map_err(|error| Failure::Record(format!("latency.npy cannot be written: {error}")))?;
    write_json(&request.out, "summary.json", summary)
}
