//! How others watch and stop a segment while it runs.

use crate::clock::monotonic_ns;
use crate::outcomes::Ended;
use crate::tally::Counts;
use plimsoll_record::Identity;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// How others watch and stop a segment.
#[derive(Debug)]
pub struct Control {
    stop_ns: AtomicI64,
    pub(crate) record_failed: Arc<AtomicBool>,
    pub(crate) counts: Vec<Counts>,
}

impl Control {
    /// For a segment of `threads` threads; connections are dealt out to them in turn.
    pub fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            stop_ns: AtomicI64::new(i64::MAX),
            record_failed: Arc::default(),
            counts: (0..threads.max(1)).map(|_| Counts::default()).collect(),
        })
    }

    /// No further transaction is to start; those under way finish. An open loop's plan ends now.
    pub fn stop(&self) {
        self.stop_ns.fetch_min(monotonic_ns(), Ordering::Relaxed);
    }

    /// When the segment was stopped; the largest time if it was not.
    pub(crate) fn stop_ns(&self) -> i64 {
        self.stop_ns.load(Ordering::Relaxed)
    }

    /// Whether the segment was stopped, and why.
    #[inline]
    pub(crate) fn stopped(&self) -> Option<Ended> {
        if self.record_failed.load(Ordering::Relaxed) {
            self.stop();
            return Some(Ended::RecordFailed);
        }
        (self.stop_ns() != i64::MAX).then_some(Ended::Told)
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
