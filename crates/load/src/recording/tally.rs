//! What a worker counts for itself, merged when the segment ends.

use crate::outcomes::CpuNs;
use crate::recording::buckets::Fine;
use plimsoll_record::{ByKind, ErrorEntry, Identity, Outcome, Transaction};
use plimsoll_session::{Failure, SessionReport};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// `error` of a row has 16 bits; later reasons are counted with the last.
const ERRORS_MAX: usize = u16::MAX as usize;

/// Counters that others may read while one worker writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counts {
    planned: AtomicU64,
    outcomes: [AtomicU64; 4],
}

impl Counts {
    /// The counts so far; `planned` includes transactions under way.
    pub fn identity(&self) -> Identity {
        let [done, failed, skipped, lost] = [0, 1, 2, 3].map(|place| self.outcomes[place].load(Ordering::Relaxed));
        Identity { planned: self.planned.load(Ordering::Relaxed), done, failed, skipped, lost }
    }

    // Only one thread writes, so a load and a store do, without a locked instruction.
    pub(crate) fn took_one(&self) {
        self.took(1);
    }

    pub(crate) fn took(&self, number: u64) {
        self.planned.store(self.planned.load(Ordering::Relaxed) + number, Ordering::Relaxed);
    }

    pub(crate) fn ended_one(&self, outcome: Outcome) {
        let count = &self.outcomes[outcome as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Reasons of failure, shared by the workers; only failures lock it.
#[derive(Debug, Default)]
pub(crate) struct Errors(Mutex<Vec<ErrorEntry>>);

impl Errors {
    /// The place of `failure`, from 1.
    pub(crate) fn place(&self, failure: &Failure) -> u16 {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|entry| entry.sqlstate == failure.code);
        let place = known.unwrap_or_else(|| {
            if entries.len() < ERRORS_MAX {
                let (sqlstate, message) = (failure.code.clone(), failure.message.clone());
                entries.push(ErrorEntry { sqlstate, message, count: 0 });
            }
            entries.len() - 1
        });
        entries[place].count += 1;
        (place + 1) as u16
    }

    pub(crate) fn take(&self) -> Vec<ErrorEntry> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One worker's results.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) by_kind: Vec<ByKind>,
    pub(crate) latency_ns: Vec<Fine>,
    pub(crate) lag_ns: Fine,
    /// Every index that was begun or skipped is below this; 0 if there was none.
    pub(crate) taken_below: u64,
    /// Indexes that were taken and not begun, and belong to no plan.
    pub(crate) left_out: u64,
    pub(crate) records_dropped: u64,
    pub(crate) connections_lost: u32,
    pub(crate) reconnects: u64,
    pub(crate) load_cpu_ns: CpuNs,
    /// The server's processes of connections that were opened again.
    pub(crate) backend_pids: Vec<u32>,
    pub(crate) reports: Vec<SessionReport>,
}

impl Tally {
    pub(crate) fn new(kinds: usize) -> Self {
        Self {
            by_kind: vec![ByKind::default(); kinds],
            latency_ns: (0..kinds).map(|_| Fine::new()).collect(),
            lag_ns: Fine::new(),
            taken_below: 0,
            left_out: 0,
            records_dropped: 0,
            connections_lost: 0,
            reconnects: 0,
            load_cpu_ns: CpuNs::default(),
            backend_pids: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// Remembers an index that was begun or skipped.
    #[inline]
    pub(crate) fn took(&mut self, index: u64) {
        self.taken_below = self.taken_below.max(index + 1);
    }

    /// Counts a transaction that was never begun, and whose kind is known all the same.
    pub(crate) fn skip(&mut self, row: &Transaction) {
        self.took(row.index);
        self.by_kind[usize::from(row.kind)].skipped += 1;
    }

    /// Counts a transaction that was begun.
    #[inline]
    pub(crate) fn add(&mut self, row: &Transaction) {
        self.took(row.index);
        let kind = &mut self.by_kind[usize::from(row.kind)];
        kind.statements += u64::from(row.statements);
        kind.retries += u64::from(row.retries);
        match row.outcome {
            Outcome::Done => {
                kind.done += 1;
                self.latency_ns[usize::from(row.kind)].add(latency_ns(row));
            }
            Outcome::Failed => kind.failed += 1,
            Outcome::Skipped => kind.skipped += 1,
            Outcome::Lost => kind.lost += 1,
        }
        self.lag_ns.add(lag_ns(row));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.by_kind.iter_mut().zip(&other.by_kind) {
            mine.done += theirs.done;
            mine.failed += theirs.failed;
            mine.skipped += theirs.skipped;
            mine.lost += theirs.lost;
            mine.statements += theirs.statements;
            mine.retries += theirs.retries;
        }
        for (mine, theirs) in self.latency_ns.iter_mut().zip(&other.latency_ns) {
            mine.merge(theirs);
        }
        self.lag_ns.merge(&other.lag_ns);
        self.taken_below = self.taken_below.max(other.taken_below);
        self.left_out += other.left_out;
        self.records_dropped += other.records_dropped;
        self.connections_lost += other.connections_lost;
        self.reconnects += other.reconnects;
        self.load_cpu_ns += other.load_cpu_ns;
        self.backend_pids.extend(other.backend_pids);
        self.reports.extend(other.reports);
    }
}

/// From the planned start to the end.
#[inline]
pub(crate) fn latency_ns(row: &Transaction) -> u64 {
    (row.end_ns - row.planned_ns).max(1) as u64
}

/// From the planned start to the start.
#[inline]
pub(crate) fn lag_ns(row: &Transaction) -> u64 {
    (row.start_ns - row.planned_ns).max(0) as u64
}
