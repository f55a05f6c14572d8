//! What a segment amounts to.

use hdrhistogram::Histogram;
use plimsoll_record::{ByKind, ErrorEntry, Identity, Rows};
use plimsoll_session::SessionReport;

/// Why a segment ended. A later one weighs more where the workers' reasons differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Every connection was gone.
    ConnectionsLost,
    /// Its time was over.
    Seconds,
    /// Its number of transactions was reached.
    Transactions,
    /// [`crate::Control::stop`].
    Told,
    /// What was under way in a window did not end within the patience.
    Undrained,
    /// The record could not be written.
    RecordFailed,
}

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuNs {
    /// In user mode.
    pub user: i64,
    /// In the kernel.
    pub system: i64,
}

impl std::ops::AddAssign for CpuNs {
    fn add_assign(&mut self, more: Self) {
        self.user += more.user;
        self.system += more.system;
    }
}

impl std::ops::Sub for CpuNs {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self { user: self.user - less.user, system: self.system - less.system }
    }
}

/// What a segment amounts to.
#[derive(Debug)]
pub struct Outcomes {
    /// When the first transactions were due, or could be.
    pub started_ns: i64,
    /// When the last one had ended.
    pub ended_ns: i64,
    /// Index of the first transaction after the segment.
    pub next_index: u64,
    /// Indexes below that which no transaction has had: threads of a closed loop that block take some at a time.
    pub left_out: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Every transaction accounted for, or the caller must say so.
    pub identity: Identity,
    /// Open loops: the planned rate a second, the mean from the start to the end of the plan.
    pub planned_rate: Option<f64>,
    /// By kind, in the workload's order; those that were skipped before their kind was drawn are left out.
    pub by_kind: Vec<ByKind>,
    /// Planned-to-end latency of done transactions by kind.
    pub latency_ns: Vec<Histogram<u64>>,
    /// start - planned of those that were started.
    pub lag_ns: Histogram<u64>,
    /// Failures and losses by reason.
    pub errors: Vec<ErrorEntry>,
    /// Which transactions have a row.
    pub rows: Rows,
    /// Rows not written because the writer was behind.
    pub records_dropped: u64,
    /// Connections that broke.
    pub connections_lost: u32,
    /// Connections that were opened again.
    pub reconnects: u64,
    /// CPU time of the threads that carried the load.
    pub load_cpu_ns: CpuNs,
    /// The CPU that each of them stayed on; empty if the kernel placed them.
    pub cpus: Vec<usize>,
    /// The server's processes in the order of the connections, then those of connections opened again.
    pub backend_pids: Vec<u32>,
    /// What the sessions say.
    pub reports: Vec<SessionReport>,
}
