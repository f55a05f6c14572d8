//! Times counted in the buckets of an HdrHistogram.
//!
//! The fact that constrains it: the thread that drives a transaction counts it in four of them. The crate's own histogram looks after
//! extremes and its own growth with each value, for 80 instructions; the bucket alone takes 15 (benches/instructions.py). So
//! values are counted here, and read from a histogram that is made of the counts.

use hdrhistogram::{Counter, Histogram};

/// Times above this (an hour) are counted as this; the exact time is in the transaction's row.
const NS_MAX: u64 = 3_600_000_000_000;

/// Counts from 0 to an hour. Up to 2^(HALF + 1) each value has a bucket of its own; above it each power of two has 2^HALF, as in a
/// histogram of three significant digits (HALF = 10) or two (7).
#[derive(Debug)]
pub(crate) struct Buckets<C, const HALF: u32> {
    counts: Box<[C]>,
    is_empty: bool,
}

/// Of a whole segment.
pub(crate) type Fine = Buckets<u64, 10>;
/// Of a second.
pub(crate) type Coarse = Buckets<u32, 7>;

impl<C: Counter, const HALF: u32> Buckets<C, HALF> {
    const OWN: u64 = 2 << HALF;

    pub(crate) fn new() -> Self {
        Self { counts: vec![C::zero(); Self::place(NS_MAX) + 1].into(), is_empty: true }
    }

    /// The bucket of a value.
    #[inline]
    fn place(value: u64) -> usize {
        let shift = (u64::BITS - HALF - 1) - (value | (Self::OWN - 1)).leading_zeros();
        ((shift as usize) << HALF) + (value >> shift) as usize
    }

    /// The lowest value of a bucket.
    fn lowest(place: usize) -> u64 {
        let shift = (place >> HALF).saturating_sub(1);
        ((place - (shift << HALF)) as u64) << shift
    }

    /// Counts a value.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let count = &mut self.counts[Self::place(value.min(NS_MAX))];
        *count = count.saturating_add(C::one());
        self.is_empty = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Adds what another has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !other.is_empty {
            self.is_empty = false;
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine = mine.saturating_add(*theirs);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        if !std::mem::replace(&mut self.is_empty, true) {
            self.counts.fill(C::zero());
        }
    }

    /// A histogram of the same buckets, with what was counted.
    pub(crate) fn histogram(&self) -> Histogram<C> {
        let digits = if HALF == 10 { 3 } else { 2 };
        let mut histogram = Histogram::new_with_bounds(1, NS_MAX, digits).expect("bounds and digits are constants");
        if !self.is_empty {
            for (place, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > C::zero()) {
                histogram.saturating_record_n(Self::lowest(place), count);
            }
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of every size, on both sides of each power of two.
    fn values() -> impl Iterator<Item = u64> {
        let around = |power: u32| [0, 1, 2, 3, 5, 1_000_003].map(move |off| (1_u64 << power).saturating_sub(2) + off);
        (0..43).flat_map(around).filter(|&value| value <= NS_MAX)
    }

    fn compare<C: Counter, const HALF: u32>(digits: u8) {
        let (mut counted, mut known) = (Buckets::<C, HALF>::new(), Histogram::<C>::new(digits).unwrap());
        known.auto(true);
        for (times, value) in values().enumerate() {
            for _ in 0..=times % 3 {
                counted.add(value);
                known.record(value).unwrap();
            }
        }
        let seen = counted.histogram();
        assert_eq!(seen.len(), known.len());
        let buckets = |histogram: &Histogram<C>| -> Vec<_> {
            let of = |bucket: hdrhistogram::iterators::IterationValue<C>| {
                let value = bucket.value_iterated_to();
                (histogram.lowest_equivalent(value), histogram.next_non_equivalent(value), bucket.count_at_value())
            };
            histogram.iter_recorded().map(of).collect()
        };
        assert_eq!(buckets(&seen), buckets(&known));
        for quantile in [0.0, 0.01, 0.5, 0.9, 0.999, 1.0] {
            assert_eq!(seen.value_at_quantile(quantile), known.value_at_quantile(quantile));
        }
        assert_eq!((seen.max(), seen.min()), (known.max(), known.min()));
    }

    #[test]
    fn buckets_are_those_of_the_histogram() {
        compare::<u64, 10>(3);
        compare::<u32, 7>(2);
    }

    #[test]
    fn what_is_longer_than_an_hour_counts_as_one() {
        let mut counted = Fine::new();
        [NS_MAX, NS_MAX + 1, u64::MAX].into_iter().for_each(|value| counted.add(value));
        let seen = counted.histogram();
        assert_eq!((seen.len(), seen.max()), (3, seen.highest_equivalent(NS_MAX)));
    }

    #[test]
    fn counts_add_up_and_are_cleared() {
        let (mut one, mut other) = (Coarse::new(), Coarse::new());
        assert!(one.is_empty() && one.histogram().is_empty());
        other.add(70_000);
        one.merge(&other);
        other.clear();
        one.merge(&other);
        one.add(5);
        assert!(other.is_empty() && other.histogram().is_empty());
        assert_eq!((one.is_empty(), one.histogram().len()), (false, 2));
    }
}
