//! A buffer whose every cache line names the next: following it, each step waits for the one before.
//!
//! The fact that constrains it: the order is one single cycle through all lines at random (Sattolo's algorithm), so that neither
//! a walk stays in a part of the buffer nor a prefetcher finds the next line before it is asked for.

use super::pages::{self, Backing};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

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
    /// The cycle; before it what lies before the first page that it fills.
    lines: Vec<Line>,
    before: usize,
    page_bytes: usize,
}

impl Chain {
    /// Of so many bytes: whole lines, two or more. It lies on huge pages, or on none.
    pub(super) fn of(bytes: usize) -> Self {
        let huge = pages::huge_page_bytes().filter(|page| bytes >= *page && bytes.is_multiple_of(*page));
        let on_huge = huge.map(|page| Self::on(bytes, page, Backing::Huge));
        let is_backed = |chain: &Self| pages::huge_bytes(chain.cycle()).is_some_and(|backed| backed >= bytes);
        on_huge.filter(is_backed).unwrap_or_else(|| Self::on(bytes, rustix::param::page_size(), Backing::Small))
    }

    fn on(bytes: usize, page_bytes: usize, backing: Backing) -> Self {
        let (count, in_page) = (bytes / LINE_BYTES, page_bytes / LINE_BYTES);
        let mut lines: Vec<Line> = Vec::with_capacity(count + in_page);
        let room = lines.spare_capacity_mut();
        let before = room.as_ptr().align_offset(page_bytes);
        // Whole pages of it alone: what else lies on the last is none of ours.
        let filled = before..before + count / in_page * in_page;
        pages::ask(&mut room[filled.clone()], backing);
        lines.resize(before, Line { next: 0 });
        lines.extend((0..count as u32).map(|next| Line { next }));
        if backing == Backing::Huge {
            pages::collapse(&mut lines[filled]);
        }
        let (cycle, mut draws) = (&mut lines[before..], Xoshiro256PlusPlus::seed_from_u64(SEED));
        for last in (1..count).rev() {
            cycle.swap(last, draws.random_range(0..last));
        }
        Self { lines, before, page_bytes }
    }

    fn cycle(&self) -> &[Line] {
        &self.lines[self.before..]
    }

    /// Memory that its lines take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.cycle())
    }

    /// Of each page that it lies on.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The line that is reached from line `at` by so many steps.
    #[inline(never)]
    pub(super) fn walk(&self, at: u32, steps: u32) -> u32 {
        let cycle = self.cycle();
        (0..steps).fold(at, |at, _| cycle[at as usize].next)
    }

    /// Lines from which `count` walks begin, equally far from each other: one that followed closely behind another would find
    /// in the cache what that had just brought there.
    pub(super) fn begins(&self, count: usize) -> Vec<u32> {
        let apart = (self.cycle().len() / count.max(1)) as u32;
        std::iter::successors(Some(0), |at| Some(self.walk(*at, apart))).take(count).collect()
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
        let next = |chain: &Chain| chain.cycle().iter().map(|line| line.next).collect::<Vec<u32>>();
        assert_eq!(next(&one), next(&other));
        let beside = next(&one).iter().enumerate().filter(|(at, next)| next.abs_diff(*at as u32) <= 1).count();
        assert!(beside < 20, "{beside} lines are followed by a neighbour");
    }

    #[test]
    fn it_lies_on_huge_pages_or_on_none() {
        for (bytes, page) in [(8 << 20, pages::huge_page_bytes()), ((8 << 20) + 4096, None)] {
            let chain = Chain::of(bytes);
            let huge = pages::huge_bytes(chain.cycle()).unwrap_or(0);
            let is_on_huge = Some(chain.page_bytes()) == page;
            assert_eq!(huge, if is_on_huge { bytes } else { 0 }, "pages of {} bytes", chain.page_bytes());
            assert!(is_on_huge || chain.page_bytes() == rustix::param::page_size());
            assert_eq!((chain.bytes(), chain.cycle().as_ptr().addr() % chain.page_bytes()), (bytes, 0));
        }
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
