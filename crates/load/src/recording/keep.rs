//! Which transactions get a row.

use crate::config::Config;
use plimsoll_schedule::{Stream, draw};

/// Tells multiples of a number without a division, which each operation without a row would pay for: of n = d 2^k with d odd, those
/// are the words whose product with the inverse of d, turned by k bits, is no more than there are multiples of n above 0 (Granlund
/// and Montgomery, PLDI 1994, section 9).
#[derive(Clone, Copy, Debug)]
struct Multiples {
    inverse: u64,
    turn: u32,
    most: u64,
}

impl Multiples {
    /// Those of `number`, 1 or more.
    fn of(number: u64) -> Self {
        let turn = number.trailing_zeros();
        let odd = number >> turn;
        // An odd number is its own inverse to three bits; each step doubles them (Newton).
        let inverse =
            (0..5).fold(odd, |inverse: u64, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))));
        Self { inverse, turn, most: u64::MAX / number }
    }

    #[inline]
    fn have(&self, word: u64) -> bool {
        word.wrapping_mul(self.inverse).rotate_right(self.turn) <= self.most
    }
}

/// Which transactions get a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    pub(crate) all_below_index: u64,
    sampled: Multiples,
    seed: u64,
}

impl Keep {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            all_below_index: config.first_index.saturating_add(config.rows_max),
            sampled: Multiples::of(config.sample_one_in.max(1)),
            seed: config.schedule.seed(),
        }
    }

    #[inline]
    pub(crate) fn keeps(&self, index: u64) -> bool {
        index < self.all_below_index || self.sampled.have(draw(self.seed, Stream::Sample, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_those_that_division_finds() {
        let of = (1..200).chain([1_000, 1 << 20, 3 << 40, 10_000_019, u64::MAX / 3, u64::MAX / 2 + 1, u64::MAX]);
        for number in of {
            let multiples = Multiples::of(number);
            let around = |word: u64| [word.wrapping_sub(1), word, word.wrapping_add(1)];
            let times = (0..1_000).map(|times: u64| times.wrapping_mul(number));
            let last = (0..3).map(|back| (u64::MAX / number).saturating_sub(back) * number);
            let drawn = (0..1_000).map(|index| draw(number, Stream::Sample, index));
            for word in times.chain(last).flat_map(around).chain(drawn) {
                assert_eq!(multiples.have(word), word.is_multiple_of(number), "{word} of {number}");
            }
        }
    }

    #[test]
    fn samples_are_drawn_by_seed_and_index() {
        let keep = Keep::new(&Config { first_index: 100, rows_max: 50, sample_one_in: 10, ..Config::plain() });
        assert!((100..150).all(|index| keep.keeps(index)));
        let kept = (150..100_150).filter(|&index| keep.keeps(index)).count();
        assert!((9_600..10_400).contains(&kept), "{kept}");
    }
}
