//! Which slices of time are watched, to keep within a budget.
//!
//! The fact that constrains it: a transaction that is under way when a slice ends belongs to it, or the slow ones would be
//! recorded less often than the fast ones. So a slice is closed only when those have ended.

use super::target::{Aim, Phase};
use crate::Refusal;
use crate::bpf::Switch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const SLICE_NS: i64 = 50_000_000;
/// A slice is closed after so long whatever is under way; that is counted.
const PATIENCE_NS: i64 = 10_000_000_000;

/// Slice after slice.
#[derive(Debug)]
pub(crate) struct Slices {
    phase: Phase,
    since_ns: i64,
    /// For how long it stays closed.
    pause_ns: i64,
    /// Of the present slice.
    one_in: u32,
    /// Busy backends when nothing was under way.
    idle: i64,
    cut: u64,
    /// Open, in the slices before the present one.
    opened_ns: i64,
    draws: u64,
}

impl Slices {
    pub(crate) fn new(now_ns: i64) -> Self {
        let draws = now_ns as u64;
        Self { phase: Phase::Opened, since_ns: now_ns, pause_ns: 0, one_in: 1, idle: 0, cut: 0, opened_ns: 0, draws }
    }

    /// Evenly distributed below `bound` (splitmix64): slices in step with the load would show a part of it only.
    fn draw(&mut self, bound: i64) -> i64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.draws ^ (self.draws >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * bound as u128) >> 64) as i64
    }

    /// Goes on to the next phase if it is time, for one of `one_in` slices to be watched; `busy` backends have work.
    fn step(&mut self, now_ns: i64, one_in: u32, busy: i64) -> Option<Phase> {
        let lasted = now_ns - self.since_ns;
        let next = match self.phase {
            Phase::Opened => (one_in > 1 && lasted >= SLICE_NS).then_some(Phase::Closing),
            Phase::Closing => (busy <= self.idle || lasted >= PATIENCE_NS).then_some(Phase::Closed),
            Phase::Closed => (lasted >= self.pause_ns).then_some(Phase::Opened),
        }?;
        match next {
            Phase::Opened => (self.one_in, self.idle) = (one_in, busy),
            Phase::Closing => self.opened_ns += lasted,
            Phase::Closed => {
                self.cut += (busy - self.idle).max(0) as u64;
                // Half to one and a half times the mean: a short segment is not left with its first slice alone.
                let mean = i64::from(one_in - 1) * SLICE_NS;
                self.pause_ns = (mean / 2 + self.draw(mean + 1) - lasted).max(0);
            }
        }
        (self.phase, self.since_ns) = (next, now_ns);
        Some(next)
    }

    /// Transactions that were under way when the patience ended.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// For how long transactions that began were followed.
    pub(crate) fn opened_ns(&self, now_ns: i64) -> i64 {
        self.opened_ns + if self.phase == Phase::Opened { now_ns - self.since_ns } else { 0 }
    }

    /// Whether the next step may come soon.
    pub(crate) fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }
}

/// The slices of a server, and the clock's slew.
pub(crate) struct Watching {
    pub(crate) aim: Aim,
    /// The programs that run often, where they may be switched off.
    pub(crate) often: Option<Switch>,
    pub(crate) slices: Slices,
    /// What is wanted.
    pub(crate) one_in: Arc<AtomicU32>,
}

impl Watching {
    /// Whether what was seen of a process in `slice` is still so.
    pub(crate) fn follows(&self, slice: u32) -> bool {
        self.often.is_none() || (self.slices.phase != Phase::Closed && self.aim.slice() == slice)
    }

    /// Tells the programs what has changed; `busy` asks how many backends have work.
    pub(crate) fn go_on(&mut self, now_ns: i64, busy: impl FnOnce() -> i64) -> Result<(), Refusal> {
        let one_in = self.one_in.load(Ordering::Relaxed);
        // Most of the time nobody has to be asked.
        let busy = if one_in > 1 { busy() } else { 0 };
        match self.slices.step(now_ns, one_in, busy) {
            None => self.aim.keep(),
            Some(Phase::Opened) => {
                self.aim.open(self.slices.one_in)?;
                self.often.as_mut().map_or(Ok(()), Switch::on)
            }
            Some(Phase::Closing) => self.aim.close_at(now_ns),
            Some(Phase::Closed) => {
                self.often.as_mut().map(Switch::off);
                self.aim.close()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_time_is_watched_until_that_is_too_much() {
        let mut slices = Slices::new(0);
        assert_eq!(slices.step(10 * SLICE_NS, 1, 3), None);
        assert_eq!(slices.opened_ns(10 * SLICE_NS), 10 * SLICE_NS);
        assert_eq!(slices.step(11 * SLICE_NS, 4, 3), Some(Phase::Closing));
        assert_eq!(slices.step(11 * SLICE_NS + 1, 4, 1), None, "one is under way");
        assert_eq!(slices.step(11 * SLICE_NS + 2, 4, 0), Some(Phase::Closed));
        assert_eq!(slices.opened_ns(20 * SLICE_NS), 11 * SLICE_NS, "nothing that began since was followed");
    }

    #[test]
    fn one_slice_in_so_many_is_watched_on_average() {
        let (mut slices, mut now, mut open) = (Slices::new(0), 0, 0);
        let step = SLICE_NS / 10;
        for _ in 0..200_000 {
            now += step;
            slices.step(now, 8, 0);
            open += i64::from(slices.phase == Phase::Opened);
        }
        let share = open as f64 / 200_000.0;
        assert!((share - 0.125).abs() < 0.01, "{share}");
    }

    #[test]
    fn no_pause_is_longer_than_one_and_a_half_times_the_mean() {
        let (mut slices, mut closed_at, mut longest, mut shortest) = (Slices::new(0), 0, 0, i64::MAX);
        for tick in 0..1_000_000 {
            let now = tick * SLICE_NS / 10;
            match slices.step(now, 64, 0) {
                Some(Phase::Closed) => closed_at = now,
                Some(Phase::Opened) => {
                    (longest, shortest) = (longest.max(now - closed_at), shortest.min(now - closed_at))
                }
                _ => {}
            }
        }
        let mean = 63 * SLICE_NS;
        assert!(longest <= mean * 3 / 2 + SLICE_NS && longest > mean * 5 / 4, "{longest}");
        assert!(shortest >= mean / 2 - SLICE_NS && shortest < mean * 3 / 4, "{shortest}");
    }

    #[test]
    fn what_never_ends_is_cut_and_counted() {
        let mut slices = Slices::new(0);
        slices.step(SLICE_NS, 2, 2);
        assert_eq!(slices.step(SLICE_NS + PATIENCE_NS - 1, 2, 2), None);
        assert_eq!(slices.step(SLICE_NS + PATIENCE_NS, 2, 2), Some(Phase::Closed));
        assert_eq!(slices.cut(), 2);
        let opens = (0..100).map(|tick| slices.step(2 * PATIENCE_NS + tick * SLICE_NS, 2, 2)).find_map(|phase| phase);
        assert_eq!(opens, Some(Phase::Opened));
        slices.step(3 * PATIENCE_NS, 2, 4);
        assert_eq!(slices.step(3 * PATIENCE_NS + 1, 2, 2), Some(Phase::Closed), "they are not waited for again");
    }
}
