//! Addressed random words: 64 bits for each (seed, table, key, field).
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) is a counter behind a mixing function, so its n-th output can be had
//! without the ones before it.

use rand::SeedableRng;
use rand_xoshiro::SplitMix64;

/// The counter's step in SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What SplitMix64 gives next in `state`. Written out, for a load mixes several times an operation, and what another crate has is
/// called and not inlined.
#[inline]
#[must_use]
pub const fn mixed(state: u64) -> u64 {
    let mut word = state.wrapping_add(STEP);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The words of one row, or of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    base: u64,
}

impl Words {
    /// The words of `key` in `table` (any number that tells tables apart) under `seed`.
    #[inline]
    pub fn new(seed: u64, table: u64, key: u64) -> Self {
        let table_base = mixed(seed ^ mixed(table));
        Self { base: mixed(table_base.wrapping_add(key)) }
    }

    /// 64 random bits for `field`.
    #[inline]
    pub fn word(&self, field: u64) -> u64 {
        mixed(self.base.wrapping_add(field.wrapping_mul(STEP)))
    }

    /// A number from 0 up to and without `bound` (1 or more). Multiplies high, so the bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&self, field: u64, bound: u64) -> u64 {
        ((u128::from(self.word(field)) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `low..=high`.
    #[inline]
    pub fn between(&self, field: u64, low: i64, high: i64) -> i64 {
        low + self.below(field, (high - low) as u64 + 1) as i64
    }

    /// A generator whose stream belongs to `field`, for distributions that draw an unknown number of words.
    pub fn stream(&self, field: u64) -> SplitMix64 {
        SplitMix64::seed_from_u64(self.word(field))
    }
}

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzaeiors";

/// Fills `text` with lower-case letters of `word`, 5 bits each: at most 12 letters from one word.
#[inline]
pub fn word_text(word: u64, text: &mut [u8]) {
    assert!(text.len() <= 12, "a word holds twelve letters");
    let mut rest = word;
    for letter in text {
        *letter = LETTERS[(rest & 31) as usize];
        rest >>= 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_move() {
        // The data of every stored data set hangs on these; a change needs a new format of the data set.
        let words = Words::new(42, 3, 7);
        assert_eq!([words.word(0), words.word(1)], [15_373_712_907_993_273_189, 5_978_822_102_260_812_547]);
    }

    #[test]
    fn mixing_is_that_of_the_generator() {
        use rand::Rng;
        for state in (0..70).map(|bits| u64::MAX.checked_shl(bits).unwrap_or(7)).chain([0, 1, 42, STEP]) {
            assert_eq!(mixed(state), SplitMix64::seed_from_u64(state).next_u64(), "{state:x}");
        }
    }

    #[test]
    fn every_part_of_the_address_matters() {
        let word = Words::new(1, 2, 3).word(4);
        let others = [Words::new(0, 2, 3).word(4), Words::new(1, 1, 3).word(4), Words::new(1, 2, 4).word(4)];
        assert!(others.iter().all(|&other| other != word));
        assert_ne!(Words::new(1, 2, 3).word(5), word);
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let seen: std::collections::BTreeSet<i64> =
            (0..1000).map(|key| Words::new(5, 0, key).between(0, -3, 3)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (-3..=3).collect::<Vec<_>>());
    }

    #[test]
    fn below_is_even() {
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|key| counts[Words::new(9, 1, key).below(2, 10) as usize] += 1);
        // Ten thousand each; the standard deviation is 95.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
