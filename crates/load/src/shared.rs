//! What the workers of a segment share: the counter of indexes, how the segment ends, and reasons of failure.
//!
//! Times of the plan are those at which something would be due if the gate had never been closed: the clock's own without windows.

use crate::config::Config;
use crate::control::Control;
use crate::outcomes::Ended;
use crate::recording::tally::Errors;
use crate::window::Window;
use plimsoll_schedule::Open;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An index that was taken from the plan of an open loop and not yet begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) index: u64,
    /// On the plan's clock until it is begun.
    pub(crate) due_ns: i64,
}

/// The counter alone in its cache lines: every start writes it, or one in [`AHEAD`].
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct NextIndex(pub(crate) AtomicU64);

/// So many indexes a thread takes at once where it may.
const AHEAD: u64 = 64;

/// Indexes that one thread has taken from the counter and not yet begun: threads whose operations take less than a microsecond
/// would wait for one another at it.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Range<u64>);

impl Ahead {
    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        self.0.end.saturating_sub(self.0.start)
    }
}

/// Claims that lost their connection before they were begun, for whoever has one.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    count: AtomicUsize,
    claims: Mutex<Vec<Claim>>,
}

impl Returned {
    pub(crate) fn give(&self, claim: Claim) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.push(claim);
        self.count.store(claims.len(), Ordering::Release);
    }

    /// The one due first. Locks only if there is one.
    pub(crate) fn take(&self) -> Option<Claim> {
        if self.is_empty() {
            return None;
        }
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (0..claims.len()).min_by_key(|&place| claims[place])?;
        let claim = claims.swap_remove(place);
        self.count.store(claims.len(), Ordering::Release);
        Some(claim)
    }

    /// Leaves `claim` here and gives the one due first, if that is due earlier; else `claim` itself.
    pub(crate) fn exchange(&self, claim: Claim) -> Claim {
        if self.is_empty() {
            return claim;
        }
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        match claims.iter_mut().min().filter(|first| **first < claim) {
            Some(first) => std::mem::replace(first, claim),
            None => claim,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) control: Arc<Control>,
    pub(crate) next_index: NextIndex,
    pub(crate) returned: Returned,
    pub(crate) errors: Errors,
    /// Of each worker; empty if the kernel places them.
    pub(crate) cpus: Vec<usize>,
    /// So many indexes a thread takes at once in a closed loop.
    ahead: u64,
    pub(crate) started_ns: i64,
    /// When the segment's time is over on the plan's clock; the largest time if it has no bound.
    pub(crate) end_ns: i64,
    /// When the last index was taken, or is due if it was taken ahead of its time, on the plan's clock; the largest time before that.
    last_ns: AtomicI64,
}

impl Shared {
    pub(crate) fn new(config: &Config, control: &Arc<Control>, cpus: Vec<usize>, started_ns: i64) -> Self {
        // What a thread has not begun by the end is left out of the segment. Of so many transactions, or of a window, none may be.
        let may_leave_out = config.transactions.is_none() && control.gate.is_none();
        Self {
            config: config.clone(),
            control: Arc::clone(control),
            next_index: NextIndex(AtomicU64::new(config.dealt_from().last().copied().unwrap_or(config.first_index))),
            returned: Returned::default(),
            errors: Errors::default(),
            cpus,
            ahead: if may_leave_out { AHEAD } else { 1 },
            started_ns,
            end_ns: config.duration_ns.map_or(i64::MAX, |duration| started_ns.saturating_add(duration)),
            last_ns: AtomicI64::new(i64::MAX),
        }
    }

    fn take_index(&self) -> Option<u64> {
        let index = self.next_index.0.fetch_add(1, Ordering::Relaxed);
        (index < self.config.limit()).then_some(index)
    }

    #[cold]
    fn no_more(&self, last_ns: i64) -> Ended {
        self.last_ns.fetch_min(last_ns, Ordering::Relaxed);
        Ended::Transactions
    }

    /// The next index of a closed loop, or the reason why there is none; `now_ns` on the plan's clock.
    #[inline]
    pub(crate) fn next_index(&self, now_ns: i64) -> Result<u64, Ended> {
        self.take_index().ok_or_else(|| self.no_more(now_ns))
    }

    /// The same of a thread that keeps the next ones `ahead`.
    #[inline]
    pub(crate) fn next_index_of(&self, ahead: &mut Ahead, now_ns: i64) -> Result<u64, Ended> {
        if ahead.left() == 0 {
            let first = self.next_index.0.fetch_add(self.ahead, Ordering::Relaxed);
            ahead.0 = first..first.saturating_add(self.ahead).min(self.config.limit());
        }
        ahead.0.next().ok_or_else(|| self.no_more(now_ns))
    }

    /// Whether every index was taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.next_index.0.load(Ordering::Relaxed) >= self.config.limit()
    }

    /// The next operation of an open loop, ahead of its time; or the reason why there is none. `now_ns` on the plan's clock.
    #[inline]
    pub(crate) fn claim(&self, plan: &mut Open, now_ns: i64) -> Result<Claim, Ended> {
        if let Some(claim) = self.returned.take() {
            return Ok(claim);
        }
        let Some(index) = self.take_index() else {
            // The last one may be with another worker that waits for its time: patience begins then, not before.
            let last = self.config.limit() - 1;
            let due_ns = if last < self.config.first_index { 0 } else { plan.due_ns(last) };
            return Err(self.no_more(self.started_ns.saturating_add(due_ns).max(now_ns)));
        };
        let due_ns = self.started_ns.saturating_add(plan.due_ns(index));
        if due_ns < self.end_ns { Ok(Claim { index, due_ns }) } else { Err(Ended::Seconds) }
    }

    /// Whether the segment was stopped from outside or for want of a record.
    #[inline]
    pub(crate) fn stopped(&self) -> Option<Ended> {
        self.control.stopped()
    }

    /// Before any window of a segment in windows.
    pub(crate) fn first_window(&self) -> Window {
        self.control.gate.as_ref().map_or(Window::ALWAYS, |_| Window::none_yet(self.started_ns))
    }

    /// From when on patience is counted; the largest time if the segment has not begun to end, nor will in this window.
    pub(crate) fn ending_since_ns(&self, window: &Window) -> i64 {
        let plan_ns = self.end_ns.min(self.last_ns.load(Ordering::Relaxed));
        window.known_ns(plan_ns).min(self.control.stop_ns())
    }
}
