//! A seeded bijection of 0..n, so that the hot ranks of a skewed choice are scattered over the key space.
//!
//! Four rounds of a balanced Feistel network over the smallest even number of bits that holds n; values outside 0..n are
//! mapped again until they fall inside (cycle walking: Black and Rogaway, CT-RSA 2002), fewer than four times on average.

use crate::Words;

const ROUNDS: u64 = 4;

/// A bijection of 0..n.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    words: Words,
    size: u64,
    half_bits: u32,
}

impl Permutation {
    /// The bijection of 0..`size` that belongs to (`seed`, `table`).
    pub fn new(seed: u64, table: u64, size: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        Self { words: Words::new(seed, table, u64::MAX), size, half_bits: bits.div_ceil(2).max(1) }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let mixed = self.words.word((round << 32) | right) & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }

    fn round_trip_back(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in (0..ROUNDS).rev() {
            let mixed = self.words.word((round << 32) | left) & mask;
            (left, right) = (right ^ mixed, left);
        }
        (left << self.half_bits) | right
    }

    /// What is put at `place` (below the size): the inverse of [`Permutation::place`].
    pub fn rank(&self, place: u64) -> u64 {
        assert!(place < self.size);
        let mut value = self.round_trip_back(place);
        while value >= self.size {
            value = self.round_trip_back(value);
        }
        value
    }

    /// Where `rank` (below the size) is put.
    pub fn place(&self, rank: u64) -> u64 {
        assert!(rank < self.size);
        let mut value = self.round_trip(rank);
        while value >= self.size {
            value = self.round_trip(value);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_bijection_at_every_size() {
        for size in (1..70).chain([1000, 4096, 4097]) {
            let permutation = Permutation::new(11, 2, size);
            let mut places: Vec<u64> = (0..size).map(|rank| permutation.place(rank)).collect();
            assert!((0..).zip(&places).all(|(rank, &place)| permutation.rank(place) == rank), "and back again");
            places.sort_unstable();
            assert_eq!(places, (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_in_rank_are_not_neighbours_in_place() {
        let permutation = Permutation::new(3, 0, 1_000_000);
        let near = (0..999).filter(|&r| permutation.place(r).abs_diff(permutation.place(r + 1)) < 1000).count();
        assert!(near < 20, "expected about 2 of 999, found {near}");
    }
}
