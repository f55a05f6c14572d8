//! One segment: what drives the sessions, the writer and the opener beside it, and the identity at the end.

use crate::clock::monotonic_ns;
use crate::config::{Config, EngineError};
use crate::control::Control;
use crate::cpus::dealt_out;
use crate::driver::Carried;
use crate::outcomes::{Ended, Outcomes};
use crate::recording::buckets::Buckets;
use crate::recording::keep::Keep;
use crate::recording::recorder::{Recorder, Tables};
use crate::recording::tally::Tally;
use crate::settle::{Settled, settle};
use crate::shared::Shared;
use crate::{blocking, completion, readiness};
use plimsoll_record::Rows;
use plimsoll_session::{BlockingOpener, BlockingSession, CompletionOpener, CompletionSession, Opener, Session};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// From the making of the threads to the start, so that all are there when the first transaction is due.
const LEAD_NS: i64 = 5_000_000;

/// Performs transactions on `sessions`, none of which ever blocks, until the segment's end, recording them in `tables`. `opener`
/// opens connections that broke, if that is asked for; one that is not answered within two seconds after the end is left behind,
/// with its thread.
///
/// # Errors
/// When the system refuses threads or descriptors, or a table cannot be written.
pub fn run(
    sessions: Vec<Box<dyn Session>>,
    opener: &Arc<dyn Opener>,
    config: &Config,
    control: &Arc<Control>,
    tables: Tables,
) -> Result<Outcomes, EngineError> {
    must_not_deal(config)?;
    let processes = sessions.iter().map(|session| session.server_process()).collect();
    segment(config, control, tables, processes, |shared, recorder| readiness::carry(sessions, opener, shared, recorder))
}

/// The same with sessions that block, each on a thread of its own: as many as `control` is for. One that has not come back when
/// patience is over is asked to hang up, if it knows how, and then left behind with its thread; its transaction is lost. Without an
/// `opener` a connection that broke is not opened again, whatever is asked for.
///
/// # Errors
/// When the system refuses threads, or a table cannot be written.
pub fn run_blocking(
    sessions: Vec<Box<dyn BlockingSession>>,
    opener: Option<&Arc<dyn BlockingOpener>>,
    config: &Config,
    control: &Arc<Control>,
    tables: Tables,
) -> Result<Outcomes, EngineError> {
    let processes = sessions.iter().map(|session| session.server_process()).collect();
    let (threads, wanted) = (control.counts.len(), sessions.len());
    let is_dealt = config.dealt.is_empty() || config.dealt.len() == wanted && config.schedule.open(0).is_none();
    if !is_dealt {
        let message = format!("what is dealt out to {} sessions is for {wanted} of a closed loop", config.dealt.len());
        return Err(refused(message));
    }
    if threads != wanted {
        let message = format!("{wanted} sessions that block want a thread each, and there are {threads}");
        return Err(refused(message));
    }
    let config = Config { pin_threads: false, ..config.clone() };
    segment(&config, control, tables, processes, |shared, recorder| blocking::carry(sessions, opener, shared, recorder))
}

/// The same with sessions whose operations the kernel performs and then tells of: many on a thread, which has an io_uring.
/// Operations that have not completed when patience is over are cancelled, and their transactions are lost. The CPU time of
/// threads that the kernel makes for operations which block in it is not in that of the load.
///
/// # Errors
/// When this machine has no io_uring or forbids it, the system refuses threads, or a table cannot be written.
pub fn run_completion(
    sessions: Vec<Box<dyn CompletionSession>>,
    opener: &Arc<dyn CompletionOpener>,
    config: &Config,
    control: &Arc<Control>,
    tables: Tables,
) -> Result<Outcomes, EngineError> {
    must_not_deal(config)?;
    let processes = sessions.iter().map(|session| session.server_process()).collect();
    segment(config, control, tables, processes, |shared, recorder| {
        completion::carry(sessions, opener, shared, recorder)
    })
}

/// Work is dealt out to sessions that block, and to no others.
fn must_not_deal(config: &Config) -> Result<(), EngineError> {
    let refused = || refused("work is dealt out to sessions that block, and to no others".to_owned());
    config.dealt.is_empty().then_some(()).ok_or_else(refused)
}

/// What a window did could not be told from counts of which all is planned from the start.
fn must_not_deal_in_windows(config: &Config, control: &Control) -> Result<(), EngineError> {
    let refused = || refused("work that is dealt out is performed without windows".to_owned());
    (config.dealt.is_empty() || control.gate.is_none()).then_some(()).ok_or_else(refused)
}

fn refused(message: String) -> EngineError {
    EngineError::System(std::io::Error::other(message))
}

/// What every segment is, whatever drives its sessions.
fn segment(
    config: &Config,
    control: &Arc<Control>,
    tables: Tables,
    processes: Vec<u32>,
    carry: impl FnOnce(&Arc<Shared>, &Recorder) -> Result<Carried, EngineError>,
) -> Result<Outcomes, EngineError> {
    let threads = control.counts.len();
    // One sink more, for what is settled at the end.
    must_not_deal_in_windows(config, control)?;
    let recorder = Recorder::start(tables, config, threads + 1, Arc::clone(&control.record_failed))?;
    let cpus = if config.pin_threads { dealt_out(threads) } else { Vec::new() };
    let shared = Arc::new(Shared::new(config, control, cpus, monotonic_ns() + LEAD_NS));
    if let Some(gate) = &control.gate {
        gate.begin(shared.started_ns);
    }
    let mut rest = recorder.sink(shared.started_ns);
    let outcome = carry(&shared, &recorder).map(|Carried { threads, opening }| {
        let (mut total, mut ended) = (Tally::new(config.kinds), Ended::ConnectionsLost);
        for (tally, thread_ended) in threads {
            total.merge(tally);
            ended = ended.max(thread_ended);
        }
        let plan = config.schedule.open(config.first_index);
        let settled = plan.map(|plan| settle(&shared, &plan, ended, total.taken_below, &control.counts[0], &mut rest));
        (total, ended, settled, opening)
    });
    let dropped = rest.finish();
    let ended_ns = monotonic_ns();
    if let Some(gate) = &control.gate {
        gate.end(shared.ending_since_ns(&gate.window()), ended_ns);
    }
    let recorded = recorder.close();
    let (mut total, ended, settled, opening) = outcome?;
    let late_pids = opening.map_or_else(Vec::new, |close_late| close_late());
    total.reconnects += late_pids.len() as u64;
    total.backend_pids.extend(late_pids);
    total.records_dropped += dropped;
    total.backend_pids.splice(0..0, processes);
    let rows = recorded.map_err(EngineError::Record)?;
    Ok(outcomes(&shared, total, settled, ended, (ended_ns, rows)))
}

fn outcomes(
    shared: &Shared,
    total: Tally,
    settled: Option<Settled>,
    ended: Ended,
    (ended_ns, recorded): (i64, u64),
) -> Outcomes {
    let (config, control) = (&shared.config, &shared.control);
    let taken = config.limit().min(shared.next_index.0.load(Ordering::Relaxed));
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
        left_out: total.left_out,
        ended,
        identity,
        planned_rate: settled.map(|settled| settled.planned_rate),
        by_kind: total.by_kind,
        latency_ns: total.latency_ns.iter().map(Buckets::histogram).collect(),
        lag_ns: total.lag_ns.histogram(),
        errors: shared.errors.take(),
        rows: Rows { recorded, all_below_index, sample_one_in },
        records_dropped: total.records_dropped,
        connections_lost: total.connections_lost,
        reconnects: total.reconnects,
        load_cpu_ns: total.load_cpu_ns,
        cpus: shared.cpus.clone(),
        backend_pids: total.backend_pids,
        reports: total.reports,
    }
}
