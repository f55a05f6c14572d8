//! What a segment is to do, and how it may fail.

use plimsoll_schedule::Schedule;
use std::io;

/// What a segment is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Index of the first transaction.
    pub first_index: u64,
    /// No more transactions than this.
    pub transactions: Option<u64>,
    /// Closed loop: no new transaction later than this after the start. Open loop: the plan holds what is due before this.
    /// In nanoseconds; of windows only the time in which they are open counts.
    pub duration_ns: Option<i64>,
    /// When transactions are due.
    pub schedule: Schedule,
    /// How many kinds the workload has.
    pub kinds: usize,
    /// How long transactions under way may go on after the end, or that of a window, and an open loop's backlog be worked off, in
    /// nanoseconds; then they are abandoned, the rest of the backlog is skipped, and the segment is over.
    pub patience_ns: i64,
    /// Whether connections that break are opened again.
    pub reconnect: bool,
    /// So many transactions, the first, have a row each.
    pub rows_max: u64,
    /// Of those beyond `rows_max` one in so many has a row, chosen by the schedule's seed and the index.
    pub sample_one_in: u64,
    /// Whether each thread stays on one CPU, where the CPUs can be dealt out evenly.
    pub pin_threads: bool,
    /// Of sessions that block: whether each thread has a table of descriptors of its own, as a process has, from before its first
    /// transaction on. What sessions have open by then is in it; what they open they close on the same thread.
    pub own_descriptors: bool,
    /// What each connection performs, where that is settled beforehand: the kinds of its transactions, in their order. Indexes
    /// follow one another, connection after connection. Only in a closed loop of sessions that block. Empty: who is free takes
    /// the next index.
    pub dealt: Vec<Vec<u8>>,
}

impl Config {
    /// The first index that is not to be taken.
    pub(crate) fn limit(&self) -> u64 {
        self.transactions.map_or(u64::MAX, |count| self.first_index.saturating_add(count))
    }

    /// The first index of what each connection performs, and the first one after all of them.
    pub(crate) fn dealt_from(&self) -> Vec<u64> {
        let mut next = self.first_index;
        let mut from = vec![next];
        for kinds in &self.dealt {
            next += kinds.len() as u64;
            from.push(next);
        }
        from
    }

    /// A closed loop without any bound.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self {
            first_index: 0,
            transactions: None,
            duration_ns: None,
            schedule: Schedule::default(),
            kinds: 1,
            patience_ns: 0,
            reconnect: false,
            rows_max: u64::MAX,
            sample_one_in: 1,
            pin_threads: false,
            own_descriptors: false,
            dealt: Vec::new(),
        }
    }
}

/// The segment could not be run or recorded.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Threads or descriptors.
    #[error("the engine cannot wait for its connections: {0}")]
    System(#[from] io::Error),
    /// The tables.
    #[error("transactions.npy, latency_seconds.npy or lag_seconds.npy cannot be written: {0}")]
    Record(io::Error),
    /// A worker panicked.
    #[error("a worker panicked (a bug in Plimsoll)")]
    Panicked,
}
