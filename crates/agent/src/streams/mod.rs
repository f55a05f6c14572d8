//! `streams`: the power test and the throughput test of decision_support.
//!
//! The fact that constrains it: a query lasts milliseconds and more, so a thread and a blocking connection a stream are nothing beside
//! it. Sessions, refresh sets and probes are there before the clock starts; what a test is to do is known by then as a whole.

mod brake;
mod course;
mod record;
mod request;
mod session;
mod work;

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request as requests;
use crate::sampler::{Running, Sampler};
use crate::stop::{self, Cause};
use crate::summary::{cpu_ns, verdict, write_json};
use brake::Brake;
use course::Course;
use plimsoll_load::{Ended, monotonic_ns};
use plimsoll_record::TransactionWriter;
use plimsoll_target::postgres::{Client, Mode};
use record::Facts;
use request::Streams;
use session::{Heard, Left, Session, Terms, Told};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use work::Work;

const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// A stream's thread, and what lets it begin.
struct Thread {
    release: Sender<i64>,
    handle: JoinHandle<Left>,
}

pub(crate) fn streams(request: &Streams) -> Result<(), Failure> {
    request.validate()?;
    let chosen = requests::workload(&request.workload, Mode::default())?;
    let tables = chosen.decision_support()?;
    let (tell, heard) = channel();
    stop::watch(&tell, Heard::Stop)?;
    let address = request.target.address_in_schema()?;
    let mut client = Client::open(&address)?;
    chosen.recognise(&mut client, &request.target.schema)?;
    drop(client);

    let works = work::planned(request.test, request.streams(), request.refresh, &tables.queries());
    let (scale, timeout, explain) = (tables.scale_factor(), request.timeout(), request.explain);
    let sessions = open_all(&Terms { address: &address, scale, timeout, explain }, &works)?;
    let told = Arc::new(Told::default());
    let cancellers = sessions.iter().map(Session::cancellers).collect::<Result<Vec<_>, _>>()?;
    let mut brake = Brake::new(Arc::clone(&told), cancellers.into_iter().flatten().collect());
    let backend_pids = sessions.iter().map(Session::backend_pid).collect();
    let mut course = Course::new(works, backend_pids);

    let mut writer = writer(request)?;
    let sampler = Sampler::beside_load(&request.out, &request.target, &request.sample, request.probes.as_ref())?;
    let threads = sessions.into_iter().map(|session| spawn(session, &told, &tell)).collect::<io::Result<Vec<_>>>();
    let threads = threads.map_err(|error| Failure::Record(format!("no thread for a stream: {error}")))?;
    let cpu_before = cpu_ns();
    let running = sampler.start().map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
    let released_ns = monotonic_ns();
    // Who waits for it ends only when this was sent.
    for thread in &threads {
        let _ = thread.release.send(released_ns);
    }
    let (cause, written) = conduct(&heard, threads.len(), &mut course, &mut brake, &running, &mut writer);
    let ended_ns = course.begun().map(|performed| performed.end_ns).max().unwrap_or_else(monotonic_ns);
    let cpu = cpu_ns() - cpu_before;
    let left = threads.into_iter().map(|thread| thread.handle.join()).collect::<Result<Vec<Left>, _>>();
    let sampled = running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;

    let recorded = written
        .and_then(|()| writer.close())
        .map_err(|error| Failure::Record(format!("transactions.npy cannot be written: {error}")))?;
    write_json(&request.out, "queries.json", &record::queries(request, &course))?;
    record::write_plans(request, &course)?;
    let left = left.map_err(|_| Failure::Identity("a stream panicked".to_owned()))?;
    let ended = match cause {
        Some(_) => Ended::Told,
        None if left.iter().all(|session| session.broken) => Ended::ConnectionsLost,
        None => Ended::Transactions,
    };
    let of_workload = tables.facts();
    let facts = Facts { of_workload, released_ns, ended_ns, recorded, left, cpu, sampled, ended, cause };
    let summary = record::summary(request, &course, facts);
    write_json(&request.out, "summary.json", &summary)?;
    output::line(&Event { event: "summary", value: &summary });
    verdict(&summary, ended, cause)
}

/// A session for the work of each stream, one after the other.
fn open_all(terms: &Terms<'_>, works: &[Work]) -> Result<Vec<Session>, Failure> {
    let of_streams = works.chunk_by(|one, next| one.connection == next.connection);
    Ok(of_streams.map(|works| Session::open(terms, works)).collect::<Result<_, _>>()?)
}

/// Creates the table of rows, and the folder of the plans.
fn writer(request: &Streams) -> Result<TransactionWriter, Failure> {
    let failed = |name: &str, error: io::Error| Failure::Record(format!("{name} cannot be written: {error}"));
    if request.explain {
        std::fs::create_dir_all(request.out.join(record::PLANS)).map_err(|error| failed(record::PLANS, error))?;
    }
    let name = "transactions.npy";
    TransactionWriter::create(&request.out.join(name)).map_err(|error| failed(name, error))
}

/// Tells when its thread ends, however it does.
struct Leaving(Sender<Heard>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Left);
    }
}

/// A thread that does the work of `session` once it is released.
fn spawn(session: Session, told: &Arc<Told>, tell: &Sender<Heard>) -> io::Result<Thread> {
    let (release, released) = channel();
    let (told, leaving) = (Arc::clone(told), Leaving(tell.clone()));
    let carry = move || {
        let leaving = leaving;
        match released.recv() {
            Ok(due_ns) => session.run(due_ns, &told, &leaving.0),
            Err(_) => Left::default(),
        }
    };
    let handle = std::thread::Builder::new().name("stream".to_owned()).spawn(carry)?;
    Ok(Thread { release, handle })
}

/// Follows the test until every session has left, a progress line a second; passes on what is to stop it. Gives who stopped it,
/// and how the writing of the rows went; where that failed, the test is stopped.
fn conduct(
    heard: &Receiver<Heard>,
    sessions: usize,
    course: &mut Course,
    brake: &mut Brake,
    running: &Running,
    writer: &mut TransactionWriter,
) -> (Option<Cause>, io::Result<()>) {
    let (mut cause, mut written, mut left) = (None, Ok(()), 0);
    let mut next_line = Instant::now() + PROGRESS_EVERY;
    while left < sessions {
        match heard.recv_timeout(next_line.saturating_duration_since(Instant::now())) {
            Ok(Heard::Stop(why)) => {
                cause.get_or_insert(why);
                brake.pull();
            }
            Ok(Heard::Began { index, at_ns }) => course.began(index, at_ns),
            Ok(Heard::Ended(performed)) => {
                let row = course.ended(*performed);
                if written.is_ok() {
                    written = writer.append(&[row]);
                    if written.is_err() {
                        brake.pull();
                    }
                }
            }
            Ok(Heard::Left) => left += 1,
            Err(RecvTimeoutError::Timeout) => {
                next_line += PROGRESS_EVERY;
                brake.hold();
                output::event("progress", course.progress(monotonic_ns(), running.latest()));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    (cause, written)
}
