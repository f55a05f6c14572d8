//! One segment: workers on threads, the writer beside them, and the identity at the end.

use crate::clock::monotonic_ns;
use crate::recorder::Recorder;
use crate::tally::{Counts, Errors, Tally};
use crate::worker::{Shared, Worker};
use hdrhistogram::Histogram;
use plimsoll_record::{ByKind, ErrorEntry, Identity, TransactionWriter};
use plimsoll_schedule::Schedule;
use plimsoll_workload::{Session, SessionReport};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a segment is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Index of the first transaction.
    pub first_index: u64,
    /// No more transactions than this.
    pub transactions: Option<u64>,
    /// No new transaction later than this after the start, in nanoseconds.
    pub duration_ns: Option<i64>,
    /// When transactions are due.
    pub schedule: Schedule,
    /// How many kinds the workload has.
    pub kinds: usize,
    /// How long transactions under way may go on after the end, in nanoseconds; then they are abandoned.
    pub patience_ns: i64,
}

/// How others watch and stop a segment.
#[derive(Debug)]
pub struct Control {
    told_to_stop: AtomicBool,
    record_failed: Arc<AtomicBool>,
    counts: Vec<Counts>,
}

impl Control {
    /// For a segment of `threads` threads; connections are dealt out to them in turn.
    pub fn new(threads: usize) -> Self {
        Self {
            told_to_stop: AtomicBool::new(false),
            record_failed: Arc::default(),
            counts: (0..threads.max(1)).map(|_| Counts::default()).collect(),
        }
    }

    /// No further transaction is to start; those under way finish.
    pub fn stop(&self) {
        self.told_to_stop.store(true, Ordering::Relaxed);
    }

    /// The counts of all workers so far.
    pub fn identity(&self) -> Identity {
        self.counts.iter().map(Counts::identity).fold(Identity::default(), |a, b| Identity {
            planned: a.planned + b.planned,
            done: a.done + b.done,
            failed: a.failed + b.failed,
            skipped: a.skipped + b.skipped,
            lost: a.lost + b.lost,
        })
    }
}

/// Why a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    Seconds,
    /// Its number of transactions was reached.
    Transactions,
    /// [`Control::stop`].
    Told,
    /// Every connection was gone.
    ConnectionsLost,
    /// The record could not be written.
    RecordFailed,
}

/// What a segment amounts to.
#[derive(Debug)]
pub struct Outcomes {
    /// When the first transactions were due.
    pub started_ns: i64,
    /// When the last one had ended.
    pub ended_ns: i64,
    /// Index of the first transaction after the segment.
    pub next_index: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Every transaction accounted for, or the caller must say so.
    pub identity: Identity,
    /// By kind, in the workload's order.
    pub by_kind: Vec<ByKind>,
    /// Planned-to-end latency of done transactions by kind.
    pub latency_ns: Vec<Histogram<u64>>,
    /// start - planned.
    pub lag_ns: Histogram<u64>,
    /// Failures and losses by reason.
    pub errors: Vec<ErrorEntry>,
    /// Rows not written because the writer was behind.
    pub records_dropped: u64,
    /// Connections that broke.
    pub connections_lost: u32,
    /// What the sessions say.
    pub reports: Vec<SessionReport>,
}

/// The segment could not be run or recorded.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Threads or descriptors.
    #[error("the engine cannot wait for its connections: {0}")]
    System(#[from] io::Error),
    /// The table of transactions.
    #[error("transactions.npy cannot be written: {0}")]
    Record(io::Error),
    /// A worker panicked.
    #[error("a worker panicked (a fault of Plimsoll)")]
    Panicked,
}

/// Performs transactions on `sessions` until the segment's end, recording each in `table`.
///
/// # Errors
/// When the system refuses threads or descriptors, or the table cannot be written.
pub fn run<S: Session>(
    sessions: Vec<S>,
    config: &Config,
    control: &Control,
    table: TransactionWriter,
) -> Result<Outcomes, EngineError> {
    let recorder = Recorder::start(table, Arc::clone(&control.record_failed))?;
    let threads = control.counts.len();
    let mut dealt: Vec<Vec<(u32, S)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, session) in sessions.into_iter().enumerate() {
        dealt[number % threads].push((number as u32, session));
    }
    let started_ns = monotonic_ns();
    let shared = Shared {
        config,
        next_index: AtomicU64::new(config.first_index),
        told_to_stop: &control.told_to_stop,
        record_failed: &control.record_failed,
        errors: Errors::default(),
        started_ns,
    };
    let tallies = std::thread::scope(|scope| {
        let start = |(hand, counts)| {
            let (shared, lane) = (&shared, recorder.lane());
            std::thread::Builder::new()
                .name("load".to_owned())
                .spawn_scoped(scope, move || Worker::new(shared, counts, lane, hand)?.run())
        };
        let workers: Vec<_> = dealt.into_iter().zip(&control.counts).map(start).collect();
        let joined = workers.into_iter().map(|worker| worker?.join().map_err(|_| EngineError::Panicked)?);
        joined.collect::<Result<Vec<_>, EngineError>>()
    });
    let ended_ns = monotonic_ns();
    let recorded = recorder.close();
    let (mut total, mut ended) = (Tally::new(config.kinds), Ended::ConnectionsLost);
    for (tally, worker_ended) in tallies? {
        total.merge(tally);
        // A worker without connections ends at once; what ended the others is the reason.
        ended = if ended == Ended::ConnectionsLost { worker_ended } else { ended };
    }
    recorded.map_err(EngineError::Record)?;
    let Shared { next_index, errors, .. } = shared;
    Ok(Outcomes {
        started_ns,
        ended_ns,
        next_index: config.limit().min(next_index.into_inner()),
        ended,
        identity: control.identity(),
        by_kind: total.by_kind,
        latency_ns: total.latency_ns,
        lag_ns: total.lag_ns,
        errors: errors.into_entries(),
        records_dropped: total.records_dropped,
        connections_lost: total.connections_lost,
        reports: total.reports,
    })
}

impl Config {
    /// The first index that is not to be taken.
    pub(crate) fn limit(&self) -> u64 {
        self.transactions.map_or(u64::MAX, |count| self.first_index.saturating_add(count))
    }
}
