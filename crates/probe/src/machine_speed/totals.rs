//! What one CPU has done since the probe was opened: its thread adds to it once a beat, whoever samples reads it.
//!
//! The fact that constrains it: the numbers are of the same beats, all of them, and whoever samples waits for nobody. Where the
//! thread was interrupted while it added, the sample has the beat before.

use std::sync::{Mutex, PoisonError, TryLockError};

/// Sums since the probe was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) beats: u64,
    pub(super) multiply_ns: u64,
    pub(super) add_ns: u64,
    pub(super) memory_ns: u64,
    /// Beats that were due and are not in these sums: the thread came too late, or was not on its CPU.
    pub(super) missed: u64,
    /// CPU time of the thread, whatever it did.
    pub(super) cpu_ns: u64,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Self) {
        self.beats += other.beats;
        self.multiply_ns += other.multiply_ns;
        self.add_ns += other.add_ns;
        self.memory_ns += other.memory_ns;
        self.missed += other.missed;
        self.cpu_ns += other.cpu_ns;
    }
}

/// The sums of one CPU, between its thread and whoever samples.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Totals>);

impl Shared {
    pub(super) fn add(&self, beat: &Totals) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(beat);
    }

    /// What they are; None while they are being added to.
    pub(super) fn now(&self) -> Option<Totals> {
        match self.0.try_lock() {
            Ok(totals) => Some(*totals),
            Err(TryLockError::Poisoned(totals)) => Some(*totals.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_is_read_is_of_the_same_beats() {
        let beat = Totals { beats: 1, multiply_ns: 3, add_ns: 5, memory_ns: 7, missed: 2, cpu_ns: 11 };
        let (shared, ended) = (Shared::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    shared.add(&beat);
                }
            });
            for found in (0..20_000).filter_map(|_| shared.now()) {
                let n = found.beats;
                let expected = Totals {
                    beats: n,
                    multiply_ns: 3 * n,
                    add_ns: 5 * n,
                    memory_ns: 7 * n,
                    missed: 2 * n,
                    cpu_ns: 11 * n,
                };
                assert_eq!(found, expected);
            }
            ended.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn nobody_waits_for_who_is_adding() {
        let shared = Shared::default();
        let adding = shared.0.lock().unwrap();
        assert_eq!(shared.now(), None);
        drop(adding);
        assert_eq!(shared.now(), Some(Totals::default()));
    }
}
