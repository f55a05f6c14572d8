//! Open loops: the time at which an operation is due, from its index alone.
//!
//! The fact that constrains it: several threads walk the plan, each along the indexes that it takes, and all must see the
//! same times to the last bit. The distances of a Poisson process therefore belong to indexes, and every walker adds up all
//! of them, its own and the others', in the same order.

use crate::draw::{Stream, exponential};
use crate::rate::Rate;
use serde::{Deserialize, Serialize};

/// How arrivals lie around the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent of each other: exponential distances.
    #[default]
    Poisson,
    /// Equal distances.
    Constant,
}

/// The plan of an open loop from one first index on. A clone is a walker of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    rate: Rate,
    arrivals: Arrivals,
    seed: u64,
    first_index: u64,
    /// The first index whose distance is not yet in `sum`.
    next: u64,
    /// The arrival times at rate 1 up to `next`.
    sum: f64,
    hint: usize,
}

impl Open {
    pub(crate) fn new(rate: Rate, arrivals: Arrivals, seed: u64, first_index: u64) -> Self {
        Self { rate, arrivals, seed, first_index, next: first_index, sum: 0.0, hint: 0 }
    }

    /// The time in nanoseconds after the segment's start at which `index` is due; a pure function of the schedule, the
    /// first index and `index`. Indexes asked for in rising order cost one draw each index passed; a lower index than the
    /// one before costs a walk from the beginning.
    ///
    /// # Panics
    /// When `index` lies before the first index.
    #[inline]
    pub fn due_ns(&mut self, index: u64) -> i64 {
        assert!(index >= self.first_index, "an index before the first of the segment");
        if index.saturating_add(1) < self.next {
            (self.next, self.sum, self.hint) = (self.first_index, 0.0, 0);
        }
        let unit = match self.arrivals {
            Arrivals::Constant => (index - self.first_index) as f64,
            Arrivals::Poisson => {
                while self.next <= index {
                    self.sum += exponential(self.seed, Stream::Arrival, self.next);
                    self.next += 1;
                }
                self.sum
            }
        };
        if self.arrivals == Arrivals::Constant {
            self.next = index.saturating_add(1);
        }
        self.rate.time_ns(unit, &mut self.hint).round() as i64
    }

    /// How many operations are due before `duration_ns`: exactly those for which [`Open::due_ns`] is less. Costs a draw each.
    pub fn planned_within(&self, duration_ns: i64) -> u64 {
        let mut walker = Self { next: self.first_index, sum: 0.0, hint: 0, ..self.clone() };
        match self.arrivals {
            Arrivals::Poisson => {
                let mut count = 0;
                while walker.due_ns(self.first_index + count) < duration_ns {
                    count += 1;
                }
                count
            }
            Arrivals::Constant => {
                let guess = self.rate.expected(duration_ns.max(0) as f64) as u64;
                let (mut low, mut high) = (guess.saturating_sub(2), guess + 3);
                while low < high {
                    let middle = low + (high - low) / 2;
                    // Not in rising order: a fresh walker each, which costs nothing with equal distances.
                    walker.hint = 0;
                    walker.next = self.first_index;
                    if walker.due_ns(self.first_index + middle) < duration_ns {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                low
            }
        }
    }

    /// The planned rate a second, the mean over the first `duration_ns`; 0 for no time.
    pub fn mean_rate(&self, duration_ns: i64) -> f64 {
        if duration_ns <= 0 {
            return 0.0;
        }
        self.rate.expected(duration_ns as f64) / (duration_ns as f64 / 1e9)
    }
}
