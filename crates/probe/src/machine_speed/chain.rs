//! A buffer whose every cache line names the next: following it, each step waits for the one before.
//!
//! The fact that constrains it: the order is one single cycle through all lines at random (Sattolo's algorithm), so that neither
//! a walk stays in a part of the buffer nor a prefetcher finds the next line before it is asked for.

use super::pages::{self, AnonymousMapping, Backing};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::io::Errno;

/// Bytes that caches fetch at once.
const LINE_BYTES: usize = 64;
/// The same order on every machine, and in every run.
const SEED: u64 = 2001;

/// Numbers for which a line has room; the first names the next line.
const WORDS: usize = LINE_BYTES / size_of::<u32>();

/// The buffer.
#[derive(Debug)]
pub(super) struct Chain {
    mapping: AnonymousMapping,
    lines: usize,
    page_bytes: usize,
}

impl Chain {
    /// Of so many bytes: whole lines, two or more. It lies on huge pages, or on none.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn of(bytes: usize) -> Result<Self, Errno> {
        let huge = pages::huge_page_bytes().filter(|page| bytes >= *page && bytes.is_multiple_of(*page));
        if let Some(page_bytes) = huge {
            let chain = Self::on(bytes, page_bytes, Backing::Huge)?;
            if chain.mapping.huge_bytes().is_some_and(|backed| backed >= bytes) {
                return Ok(chain);
            }
        }
        Self::on(bytes, rustix::param::page_size(), Backing::Small)
    }

    fn on(bytes: usize, page_bytes: usize, backing: Backing) -> Result<Self, Errno> {
        let lines = bytes / LINE_BYTES;
        let mut mapping = AnonymousMapping::of(bytes, page_bytes, backing)?;
        for line in 0..lines {
            mapping.words_mut()[line * WORDS] = line as u32;
        }
        if backing == Backing::Huge {
            mapping.collapse();
        }
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(SEED);
        for last in (1..lines).rev() {
            mapping.words_mut().swap(last * WORDS, draws.random_range(0..last) * WORDS);
        }
        Ok(Self { mapping, lines, page_bytes })
    }

    /// Memory that its lines take.
    pub(super) fn bytes(&self) -> usize {
        self.lines * LINE_BYTES
    }

    /// Of each page that it lies on.
    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The line that is reached from line `at` by so many steps.
    #[inline(never)]
    pub(super) fn walk(&self, at: u32, steps: u32) -> u32 {
        let words = self.mapping.words();
        (0..steps).fold(at, |at, _| words[at as usize * WORDS])
    }

    /// Lines from which `count` walks begin, equally far from each other: one that followed closely behind another would find
    /// in the cache what that had just brought there.
    pub(super) fn begins(&self, count: usize) -> Vec<u32> {
        let apart = (self.lines / count.max(1)) as u32;
        std::iter::successors(Some(0), |at| Some(self.walk(*at, apart))).take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_single_cycle_through_all_lines() {
        for count in [2_u32, 3, 64, 1009, 131_072] {
            let chain = Chain::of(count as usize * LINE_BYTES).unwrap();
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
        let (one, other) = (Chain::of(1 << 20).unwrap(), Chain::of(1 << 20).unwrap());
        let next = |chain: &Chain| (0..chain.lines as u32).map(|at| chain.walk(at, 1)).collect::<Vec<u32>>();
        assert_eq!(next(&one), next(&other));
        let beside = next(&one).iter().enumerate().filter(|(at, next)| next.abs_diff(*at as u32) <= 1).count();
        assert!(beside < 20, "{beside} lines are followed by a neighbour");
    }

    #[test]
    fn it_lies_on_huge_pages_or_on_none() {
        // Again after another that had huge pages is gone.
        for _ in 0..3 {
            lies_on_huge_pages_or_on_none();
        }
    }

    fn lies_on_huge_pages_or_on_none() {
        for (bytes, page) in [(8 << 20, pages::huge_page_bytes()), ((8 << 20) + 4096, None)] {
            let chain = Chain::of(bytes).unwrap();
            let huge = chain.mapping.huge_bytes().unwrap_or(0);
            let is_on_huge = Some(chain.page_bytes()) == page;
            assert_eq!(huge, if is_on_huge { bytes } else { 0 }, "pages of {} bytes", chain.page_bytes());
            assert!(is_on_huge || chain.page_bytes() == rustix::param::page_size());
            assert_eq!((chain.bytes(), chain.mapping.words().as_ptr().addr() % chain.page_bytes()), (bytes, 0));
        }
    }

    #[test]
    fn walks_begin_equally_far_from_each_other() {
        let chain = Chain::of(1000 * LINE_BYTES).unwrap();
        let begins = chain.begins(4);
        for place in 0..4 {
            assert_eq!(chain.walk(begins[place], 250), begins[(place + 1) % 4]);
        }
        assert_eq!(chain.begins(1), [0]);
    }
}
