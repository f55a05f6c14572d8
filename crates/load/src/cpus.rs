//! Which CPU each load thread stays on.
//!
//! The fact that constrains it: waking a process on another CPU costs several times as much as on one's own, most of all in
//! a virtual machine, and the server's processes are drawn to the CPU that wakes them. Threads that wander bring the same
//! load into states whose throughput differs by a tenth, now the one and now the other.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The CPU of each of `threads` threads, if this process may use so many that each gets equally many threads. Empty
/// otherwise: then the kernel places them.
pub(crate) fn dealt_out(threads: usize) -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    dealt(&cpus, threads)
}

/// An uneven deal would leave some connections a slower thread than others have.
fn dealt(cpus: &[usize], threads: usize) -> Vec<usize> {
    let even = !cpus.is_empty() && threads.is_multiple_of(cpus.len());
    if even { cpus.iter().copied().cycle().take(threads).collect() } else { Vec::new() }
}

/// Keeps this thread on `cpu`.
pub(crate) fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_dealt_out_evenly_or_not_at_all() {
        assert_eq!(dealt(&[0, 1], 2), [0, 1]);
        assert_eq!(dealt(&[2, 5, 7], 6), [2, 5, 7, 2, 5, 7]);
        for (cpus, threads) in [(&[0, 1][..], 1), (&[0, 1], 3), (&[0, 1, 2, 3], 2), (&[], 2)] {
            assert!(dealt(cpus, threads).is_empty(), "{threads} threads on {cpus:?}");
        }
    }
}
