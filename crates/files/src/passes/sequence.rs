//! In which order a pass goes through the records of a file: each record has one place in it.
//!
//! The fact that constrains it: a pass may be stopped before its end, and then what it has done is a prefix of its
//! order. So from a record its place has to be told, too.

use plimsoll_keys::Permutation;
use serde::{Deserialize, Serialize};

/// Records from one that is read to the next, of a strided pass. (IOzone's.)
const STRIDE: u64 = 17;

/// How a pass goes through a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// From the first record to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// Every 17th; then those one further on; and so on.
    Stride,
    /// As the permutation of this number has them.
    Random {
        /// Tells permutations of a seed apart.
        table: u64,
    },
}

/// An order of so many records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    order: Order,
    records: u64,
    permutation: Permutation,
}

impl Sequence {
    /// The order of `records` records under `seed`.
    pub(crate) fn new(order: Order, seed: u64, records: u64) -> Self {
        let table = if let Order::Random { table } = order { table } else { 0 };
        Self { order, records, permutation: Permutation::new(seed, table, records) }
    }

    /// The record at a place of the order, both counted from 0.
    #[inline]
    pub(crate) fn record(&self, place: u64) -> u64 {
        match self.order {
            Order::Forward => place,
            Order::Backward => self.records - 1 - place,
            Order::Random { .. } => self.permutation.place(place),
            Order::Stride => {
                let (each, longer) = (self.records / STRIDE, self.records % STRIDE);
                let in_longer = longer * (each + 1);
                let (column, row) = if place < in_longer {
                    (place / (each + 1), place % (each + 1))
                } else {
                    (longer + (place - in_longer) / each, (place - in_longer) % each)
                };
                column + STRIDE * row
            }
        }
    }

    /// The place of a record: the inverse of [`Sequence::record`].
    #[inline]
    pub(crate) fn place(&self, record: u64) -> u64 {
        match self.order {
            Order::Forward => record,
            Order::Backward => self.records - 1 - record,
            Order::Random { .. } => self.permutation.rank(record),
            Order::Stride => {
                let (column, row) = (record % STRIDE, record / STRIDE);
                column * (self.records / STRIDE) + column.min(self.records % STRIDE) + row
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_place_in_every_order() {
        for order in [Order::Forward, Order::Backward, Order::Stride, Order::Random { table: 3 }] {
            for records in (1..70).chain([1_000]) {
                let sequence = Sequence::new(order, 5, records);
                let mut seen: Vec<u64> = (0..records).map(|place| sequence.record(place)).collect();
                assert!(
                    (0..).zip(&seen).all(|(place, &record)| sequence.place(record) == place),
                    "{order:?} {records}"
                );
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..records), "{order:?} of {records}");
            }
        }
    }

    #[test]
    fn orders_are_those_that_they_are_called() {
        let of = |order, records: u64| -> Vec<u64> {
            let sequence = Sequence::new(order, 5, records);
            (0..records.min(5)).map(|place| sequence.record(place)).collect()
        };
        assert_eq!(of(Order::Backward, 9), [8, 7, 6, 5, 4]);
        assert_eq!(of(Order::Stride, 50), [0, 17, 34, 1, 18]);
        assert_ne!(of(Order::Random { table: 1 }, 1_000), of(Order::Random { table: 2 }, 1_000));
    }
}
