//! `streams`: the power test and the throughput test of decision_support.
//!
//! The fact that constrains it: a query lasts milliseconds and more, so a thread and a blocking connection a stream are nothing beside
//! it. Sessions, refresh sets and probes are there before the clock starts; what a test is to do is known by then as a whole, and is
//! dealt out to its sessions.

mod record;
mod request;
mod results;
mod session;
mod work;

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request as requests;
use crate::sampler::Sampler;
use crate::segment::{Conductor, PATIENCE_NS};
use crate::summary::{Asked, summary, verdict, write_json};
use crate::workload;
use plimsoll_load::{Config, Tables, run_blocking};
use plimsoll_schedule::Schedule;
use plimsoll_session::BlockingSession;
use plimsoll_target::postgres::{Client, Mode};
use plimsoll_workload::decision_support;
use request::Streams;
use results::Results;
use session::{Stream, Terms};
use std::io;
use std::sync::Arc;
pub(crate) use work::{AskedTest, told as told_work};
use work::{Work, kinds};

pub(crate) fn streams(request: &Streams) -> Result<(), Failure> {
    request.validate()?;
    let workload = requests::workload(&request.workload, Mode::default())?;
    let tables = workload::decision_support(workload.as_ref())?;
    let conductor = Conductor::new()?;
    let server = request.target.postgresql()?;
    let address = server.address_in_schema()?;
    let mut client = Client::open(&address)?;
    workload::recognise(workload.as_ref(), &mut client, &server.schema)?;
    drop(client);

    let works = work::planned(request.test, request.streams(), request.refresh, &tables.queries());
    let config = config(&works);
    let results = Arc::new(Results::new(works));
    let (scale, timeout, explain) = (tables.scale_factor(), request.timeout(), request.explain);
    let sessions = open_all(&Terms { address: &address, scale, timeout, explain }, &results)?;
    let rows = files(request)?;
    let sampler = Sampler::beside_load(&request.out, &request.target, &request.sample, request.probes.as_ref())?;
    let control = conductor.control(sessions.len());
    let threads = sessions.len() as u32;
    let carried = {
        let (engine, progress) = (Arc::clone(&control), Arc::clone(&results));
        let progress = |t_ns, latest| progress.progress(t_ns, control.identity(), latest);
        conductor.carry(sampler, &control, progress, move || run_blocking(sessions, None, &config, &engine, rows))?
    };

    let performed = results.take();
    let ended = record::ended(request, &results.works, &performed, &carried.outcomes)?;
    write_json(&request.out, "queries.json", &record::queries(request, &ended))?;
    record::write_plans(request, &ended)?;
    let asked = Asked {
        name: decision_support::NAME,
        kinds: kinds(),
        first_index: 0,
        schedule: None,
        mode: Mode::Simple,
        describe: false,
        threads,
        devices: &request.sample.devices,
        // Workers of parallel queries commit, too, as many as the server starts.
        commits_beside: None,
        facts: record::facts_of(request, tables.facts()),
    };
    let summary = summary(asked, &carried);
    write_json(&request.out, "summary.json", &summary)?;
    output::line(&Event { event: "summary", value: &summary });
    verdict(&summary, carried.outcomes.ended, carried.cause)
}

/// Each connection has its own work, one piece after the other.
fn config(works: &[Work]) -> Config {
    let of_connections = works.chunk_by(|one, next| one.connection == next.connection);
    Config {
        first_index: 0,
        transactions: None,
        duration_ns: None,
        schedule: Schedule::default(),
        kinds: kinds().len(),
        patience_ns: PATIENCE_NS,
        reconnect: false,
        rows_max: u64::MAX,
        sample_one_in: 1,
        pin_threads: false,
        own_descriptors: false,
        dealt: of_connections.map(|works| works.iter().map(|work| work.task.kind()).collect()).collect(),
    }
}

/// A session for the work of each stream, one after the other.
fn open_all(terms: &Terms<'_>, results: &Arc<Results>) -> Result<Vec<Box<dyn BlockingSession>>, Failure> {
    let of_streams = results.works.chunk_by(|one, next| one.connection == next.connection);
    let open = |works| Ok(Box::new(Stream::open(terms, results, works)?) as Box<dyn BlockingSession>);
    of_streams.map(open).collect()
}

/// Creates the table of rows, and the folder of the plans.
fn files(request: &Streams) -> Result<Tables, Failure> {
    let failed = |error: &io::Error| Failure::Record(format!("a file of the record cannot be created: {error}"));
    if request.explain {
        std::fs::create_dir_all(request.out.join(record::PLANS)).map_err(|error| failed(&error))?;
    }
    Tables::of_rows(&request.out).map_err(|error| failed(&error))
}
