//! The three pieces of work that are timed: a chain of multiplications, many additions side by side, and steps through memory.
//!
//! The fact that constrains it: how much each does is a constant, the same on every machine, so that figures of two runs compare.
//! It is chosen for about 50 us on a machine of 2020 and later. And the compiler must neither leave out nor shorten any of it:
//! what goes in and what comes out is hidden from it, and the self-test looks whether twice the work takes twice as long.

use super::chain::Chain;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Multiplications one after another, each with an exclusive or, so that no two of them are made one.
pub(super) const MULTIPLICATIONS: u32 = 48_000;
/// Additions in all of the chains side by side, each with an exclusive or and a rotation.
pub(super) const ADDITIONS: u32 = 400_000;
/// Steps through the buffer.
pub(super) const MEMORY_STEPS: u32 = 1_500;
/// The buffer: more than a core has for itself, and a part of what cores share.
pub(super) const MEMORY_BYTES: usize = 8 << 20;

/// By how many bits each chain of additions rotates. As many chains as registers hold; the numbers differ, or the compiler would
/// put two chains into one register of vectors.
const ROTATIONS: [u32; 8] = [5, 7, 11, 13, 17, 19, 23, 29];
const FACTOR: u64 = 0xd134_2543_de82_ef95;
const TERM: u64 = 0x9e37_79b9_7f4a_7c15;

/// CPU time of this thread: what it was kept off the CPU for does not count.
pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time that it takes.
pub(super) fn timed(piece: impl FnOnce()) -> u64 {
    let before = thread_cpu_ns();
    piece();
    thread_cpu_ns() - before
}

/// As fast as the clock of the core, whatever else is done in it.
#[inline(never)]
pub(super) fn multiply(multiplications: u32) {
    let (mut number, factor, term) = black_box((1, FACTOR, TERM));
    for _ in 0..multiplications {
        number = (number ^ term).wrapping_mul(factor);
    }
    black_box(number);
}

/// As fast as the core has units free: slower where it has another thread to serve.
#[inline(never)]
pub(super) fn add(additions: u32) {
    let (mut numbers, factor, term) = black_box(([1_u64, 2, 3, 4, 5, 6, 7, 8], FACTOR, TERM));
    for _ in 0..additions / ROTATIONS.len() as u32 {
        for (number, bits) in numbers.iter_mut().zip(ROTATIONS) {
            *number = (number.wrapping_add(factor) ^ term).rotate_left(bits);
        }
    }
    black_box(numbers);
}

/// As fast as lines come that the core itself has not kept; goes on from line `at`.
pub(super) fn step(chain: &Chain, at: &mut u32, steps: u32) {
    *at = black_box(chain.walk(black_box(*at), steps));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_within_the_first_cache_are_several_times_cheaper() {
        let least = |bytes: usize| {
            let (chain, mut at) = (Chain::of(bytes).unwrap(), 0);
            // The least of many is of a time in which nothing else was on the core.
            (0..200).map(|_| timed(|| step(&chain, &mut at, MEMORY_STEPS))).min().unwrap()
        };
        let (near, far) = (least(16 << 10), least(MEMORY_BYTES));
        assert!(near * 2 < far, "{near} ns against {far} ns");
    }
}
