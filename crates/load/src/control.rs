//! How others watch and stop a segment while it runs, and open its windows.

use crate::clock::monotonic_ns;
use crate::gate::{Gate, WindowTimes};
use crate::outcomes::Ended;
use crate::recording::tally::Counts;
use crate::window::Window;
use plimsoll_record::Identity;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// How others watch and stop a segment, and open its windows.
#[derive(Debug)]
pub struct Control {
    stop_ns: AtomicI64,
    pub(crate) record_failed: Arc<AtomicBool>,
    pub(crate) counts: Vec<Counts>,
    /// Of a segment in windows.
    pub(crate) gate: Option<Gate>,
    /// A window did not drain.
    undrained: AtomicBool,
}

impl Control {
    /// For a segment of `threads` threads; connections are dealt out to them in turn.
    pub fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self::with_gate(threads, None))
    }

    /// For a segment that starts transactions only in windows ([`Control::open`]). `drained` is told when its threads are there, and
    /// of each window when nothing is under way any more, unless the segment ends with it; from one of its threads, which it must
    /// not keep waiting.
    pub fn windowed(threads: usize, drained: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::with_gate(threads, Some(Gate::new(threads.max(1), drained))))
    }

    fn with_gate(threads: usize, gate: Option<Gate>) -> Self {
        Self {
            stop_ns: AtomicI64::new(i64::MAX),
            record_failed: Arc::default(),
            counts: (0..threads.max(1)).map(|_| Counts::default()).collect(),
            gate,
            undrained: AtomicBool::new(false),
        }
    }

    /// Opens a window of `length_ns` and gives when. `None`, and nothing is opened, before all has drained, after a stop, and in a
    /// segment without windows.
    pub fn open(&self, length_ns: i64) -> Option<i64> {
        self.gate.as_ref()?.open(length_ns)
    }

    /// When the newest window opened, closed and had drained; `None` before it has, or the segment has ended.
    pub fn window(&self) -> Option<WindowTimes> {
        self.gate.as_ref()?.times()
    }

    /// No further transaction is to start; those under way finish. An open loop's plan ends now.
    pub fn stop(&self) {
        self.stop_ns.fetch_min(monotonic_ns(), Ordering::Relaxed);
        if let Some(gate) = &self.gate {
            gate.stop();
        }
    }

    /// What is under way in a window does not end: the segment does.
    pub(crate) fn give_up(&self) {
        self.undrained.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// The window that is open, or was last.
    pub(crate) fn newest_window(&self) -> Window {
        self.gate.as_ref().map_or(Window::ALWAYS, Gate::window)
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
        let why = || if self.undrained.load(Ordering::Relaxed) { Ended::Undrained } else { Ended::Told };
        (self.stop_ns() != i64::MAX).then(why)
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
