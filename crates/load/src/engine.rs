//! One segment: workers on threads, the writer and the opener beside them, and the identity at the end.

use crate::clock::monotonic_ns;
use crate::config::{Config, EngineError};
use crate::control::Control;
use crate::cpus::{dealt_out, stay_on};
use crate::keep::Keep;
use crate::opening::{Reopener, Reopening};
use crate::outcomes::{Ended, Outcomes};
use crate::recorder::{Lane, Recorder, Tables};
use crate::settle::{Settled, settle};
use crate::shared::Shared;
use crate::tally::{Counts, Tally};
use crate::worker::Worker;
use crossbeam_channel::Receiver;
use plimsoll_record::Rows;
use plimsoll_session::{Opener, Session};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

/// From the making of the threads to the start, so that all are there when the first transaction is due.
const LEAD_NS: i64 = 5_000_000;
/// How much later than asked the kernel may wake a thread that carries load.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Performs transactions on `sessions` until the segment's end, recording them in `tables`. `opener` opens connections that
/// broke, if that is asked for; one that is not answered within two seconds after the end is left behind, with its thread.
///
/// # Errors
/// When the system refuses threads or descriptors, or a table cannot be written.
pub fn run(
    sessions: Vec<Box<dyn Session>>,
    opener: &Arc<dyn Opener>,
    config: &Config,
    control: &Control,
    tables: Tables,
) -> Result<Outcomes, EngineError> {
    let threads = control.counts.len();
    // One lane more, for what is settled at the end.
    let recorder = Recorder::start(tables, config, threads + 1, Arc::clone(&control.record_failed))?;
    let initial_pids: Vec<u32> = sessions.iter().map(|session| session.server_process()).collect();
    let cpus = if config.pin_threads { dealt_out(threads) } else { Vec::new() };
    let shared = Shared::new(config, control, cpus, monotonic_ns() + LEAD_NS);
    let mut rest = recorder.lane(shared.started_ns);
    let joined = carry(sessions, opener, &shared, &recorder);
    let outcome = joined.map(|(workers, opening)| {
        let (mut total, mut ended) = (Tally::new(config.kinds), Ended::ConnectionsLost);
        for (tally, worker_ended) in workers {
            total.merge(tally);
            ended = ended.max(worker_ended);
        }
        let plan = config.schedule.open(config.first_index);
        let settled = plan.map(|plan| settle(&shared, &plan, ended, total.taken_below, &control.counts[0], &mut rest));
        (total, ended, settled, opening)
    });
    let dropped = rest.finish();
    let ended_ns = monotonic_ns();
    let recorded = recorder.close();
    let (mut total, ended, settled, opening) = outcome?;
    let late_pids = opening.map_or_else(Vec::new, |(reopener, ended)| reopener.close_late(&ended));
    total.reconnects += late_pids.len() as u64;
    total.backend_pids.extend(late_pids);
    total.records_dropped += dropped;
    total.backend_pids.splice(0..0, initial_pids);
    let rows = recorded.map_err(EngineError::Record)?;
    Ok(outcomes(shared, control, total, settled, ended, (ended_ns, rows)))
}

/// An opener that was told to end, and where it will be heard that it has.
type Opening = Option<(Arc<Reopener>, Receiver<()>)>;
type Joined = Result<(Vec<(Tally, Ended)>, Opening), EngineError>;

/// The workers, from their making to their end, and the opener beside them.
fn carry(
    sessions: Vec<Box<dyn Session>>,
    opener: &Arc<dyn Opener>,
    shared: &Shared<'_>,
    recorder: &Recorder,
) -> Joined {
    let threads = shared.control.counts.len();
    let (reopener, asks) = Reopener::new(threads, sessions.len())?;
    let opening = shared.config.reconnect.then(|| reopener.start(opener)).transpose()?;
    let asks = opening.is_some().then_some(asks);
    let mut dealt: Vec<Vec<(u32, Box<dyn Session>)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, session) in sessions.into_iter().enumerate() {
        dealt[number % threads].push((number as u32, session));
    }
    let joined = std::thread::scope(|scope| {
        let start = |(number, (hand, counts))| {
            let reopening = asks.clone().map(|asks| reopener.end_of(number, asks));
            let lane = recorder.lane(shared.started_ns);
            let cpu = shared.cpus.get(number).copied();
            let carry = move || one_thread(shared, cpu, counts, lane, hand, reopening);
            std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, carry)
        };
        let workers: Vec<_> = dealt.into_iter().zip(&shared.control.counts).enumerate().map(start).collect();
        let joined = workers.into_iter().map(|worker| worker?.join().map_err(|_| EngineError::Panicked)?);
        joined.collect::<Vec<Result<_, EngineError>>>()
    });
    drop(asks);
    reopener.end();
    Ok((joined.into_iter().collect::<Result<_, _>>()?, opening.map(|ended| (reopener, ended))))
}

fn one_thread(
    shared: &Shared<'_>,
    cpu: Option<usize>,
    counts: &Counts,
    lane: Lane,
    hand: Vec<(u32, Box<dyn Session>)>,
    reopening: Option<Reopening<'_>>,
) -> Result<(Tally, Ended), EngineError> {
    let mut fault = StopsAtFault { control: shared.control, armed: true };
    cpu.map_or(Ok(()), stay_on)?;
    rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS)).map_err(io::Error::from)?;
    let result = Worker::new(shared, counts, lane, hand, reopening)?.run()?;
    fault.armed = false;
    Ok(result)
}

/// A worker that ends by an error or a panic takes the segment with it: nothing that the others did from then on could be
/// used, and without an end of its own the segment would go on for ever.
struct StopsAtFault<'a> {
    control: &'a Control,
    armed: bool,
}

impl Drop for StopsAtFault<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.control.stop();
        }
    }
}

fn outcomes(
    shared: Shared<'_>,
    control: &Control,
    total: Tally,
    settled: Option<Settled>,
    ended: Ended,
    (ended_ns, recorded): (i64, u64),
) -> Outcomes {
    let config = shared.config;
    let taken = config.limit().min(shared.next_index.0.into_inner());
    let next_index = settled.map_or(taken, |settled| settled.next_index);
    let mut identity = control.identity();
    if let Some(settled) = settled {
        // From the plan alone, so that an index that was forgotten is found out.
        identity.planned = settled.planned.unwrap_or(next_index - config.first_index);
    }
    let all_below_index = Keep::new(config).all_below_index.min(next_index);
    let sample_one_in = if all_below_index == next_index { 1 } else { config.sample_one_in.max(1) };
    Outcomes {
        started_ns: shared.started_ns,
        ended_ns,
        next_index,
        ended,
        identity,
        planned_rate: settled.map(|settled| settled.planned_rate),
        by_kind: total.by_kind,
        latency_ns: total.latency_ns,
        lag_ns: total.lag_ns,
        errors: shared.errors.into_entries(),
        rows: Rows { recorded, all_below_index, sample_one_in },
        records_dropped: total.records_dropped,
        connections_lost: total.connections_lost,
        reconnects: total.reconnects,
        load_cpu_ns: total.load_cpu_ns,
        cpus: shared.cpus,
        backend_pids: total.backend_pids,
        reports: total.reports,
    }
}
