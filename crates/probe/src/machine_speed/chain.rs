//! A buffer whose every cache line names the next: following it, each step waits for the one before.
//!
//! The fact that constrains it: the order is one single cycle through all lines at random (Sattolo's algorithm), so that neither
//! a walk stays in a part of the buffer nor a prefetcher finds the next line before it is asked for.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::mm::{Advice, madvise};

/// Bytes that caches fetch at once.
const LINE_BYTES: usize = 64;
/// The same order on every machine, and in every run.
const SEED: u64 = 2001;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    next: u32,
}

/// The buffer.
#[derive(Debug)]
pub(super) struct Chain {
    lines: Vec<Line>,
}

impl Chain {
    /// Of so many bytes: whole lines, two or more.
    pub(super) fn of(bytes: usize) -> Self {
        let count = bytes / LINE_BYTES;
        let mut lines: Vec<Line> = Vec::with_capacity(count);
        keep_pages_small(&mut lines);
        lines.extend((0..count as u32).map(|next| Line { next }));
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(SEED);
        for last in (1..count).rev() {
            lines.swap(last, draws.random_range(0..last));
        }
        Self { lines }
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.lines.as_slice())
    }

    /// The line that is reached from line `at` by so many steps.
    #[inline(never)]
    pub(super) fn walk(&self, at: u32, steps: u32) -> u32 {
        (0..steps).fold(at, |at, _| self.lines[at as usize].next)
    }

    /// Lines from which `count` walks begin, equally far from each other: one that followed closely behind another would find
    /// in the cache what that had just brought there.
    pub(super) fn begins(&self, count: usize) -> Vec<u32> {
        let apart = (self.lines.len() / count.max(1)) as u32;
        std::iter::successors(Some(0), |at| Some(self.walk(*at, apart))).take(count).collect()
    }
}

/// Has the kernel back a buffer, before it is written, by pages of the usual size, now and later: one that it puts into huge
/// pages while a run goes on becomes faster, and the machine does not.
#[allow(unsafe_code)]
fn keep_pages_small(lines: &mut Vec<Line>) {
    let (page, room) = (rustix::param::page_size(), lines.spare_capacity_mut());
    let start = room.as_mut_ptr().cast::<u8>();
    // Whole pages of it alone: what else lies on the first and last is none of ours.
    let before = start.align_offset(page);
    let bytes = size_of_val(room).saturating_sub(before) / page * page;
    if bytes > 0 {
        // SAFETY: these bytes are of the buffer's, and the advice changes nothing that is in them. A kernel without huge pages
        // refuses it and need not be asked.
        let _ = unsafe { madvise(start.add(before).cast(), bytes, Advice::LinuxNoHugepage) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_single_cycle_through_all_lines() {
        for count in [2_u32, 3, 64, 1009, 131_072] {
            let chain = Chain::of(count as usize * LINE_BYTES);
            assert_eq!(chain.bytes(), count as usize * LINE_BYTES);
            let (mut met, mut at) = (vec![false; count as usize], 0);
            for _ in 0..count {
                assert!(!std::mem::replace(&mut met[at as usize], true), "line {at} of {count} twice");
                at = chain.walk(at, 1);
            }
            assert_eq!(at, 0, "{count} lines");
        }
    }

    #[test]
    fn the_order_is_random_and_the_same_each_time() {
        let (one, other) = (Chain::of(1 << 20), Chain::of(1 << 20));
        let next = |chain: &Chain| chain.lines.iter().map(|line| line.next).collect::<Vec<u32>>();
        assert_eq!(next(&one), next(&other));
        let beside = next(&one).iter().enumerate().filter(|(at, next)| next.abs_diff(*at as u32) <= 1).count();
        assert!(beside < 20, "{beside} lines are followed by a neighbour");
    }

    #[test]
    fn walks_begin_equally_far_from_each_other() {
        let chain = Chain::of(1000 * LINE_BYTES);
        let begins = chain.begins(4);
        for place in 0..4 {
            assert_eq!(chain.walk(begins[place], 250), begins[(place + 1) % 4]);
        }
        assert_eq!(chain.begins(1), [0]);
    }
}
