//! Draws from the seed, one after the other.

use plimsoll_keys::Words;

/// A walk's own draws.
pub(super) struct Draw {
    words: Words,
    drawn: u64,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self { words: Words::new(seed, u64::MAX - 1, 0), drawn: 0 }
    }

    /// A number from 0 up to and without `bound`, which is at least 1.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        self.words.below(self.drawn, bound as u64) as usize
    }

    /// One of `all`, which are not none.
    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Any order of `all`.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}
