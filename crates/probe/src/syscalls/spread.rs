//! How far what slices of time say of calls may be from what all of the time would have said.

use std::collections::BTreeMap;

/// Class and kind.
pub(super) type Place = (usize, usize);

/// Sums over slices: a ratio of two sums needs no more for its standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    slices: u32,
    seconds: f64,
    seconds_squared: f64,
    /// Calls, calls squared, and calls times seconds.
    sums: BTreeMap<Place, [f64; 3]>,
    /// Calls counted by the end of the last slice.
    until_now: BTreeMap<Place, i64>,
}

impl Spread {
    /// One slice more: what was counted by its end, and how long it was.
    pub(super) fn add(&mut self, counted: BTreeMap<Place, i64>, seconds: f64) {
        self.slices += 1;
        self.seconds += seconds;
        self.seconds_squared += seconds * seconds;
        for (place, count) in &counted {
            let calls = (count - self.until_now.get(place).unwrap_or(&0)) as f64;
            let sums = self.sums.entry(*place).or_default();
            sums[0] += calls;
            sums[1] += calls * calls;
            sums[2] += calls * seconds;
        }
        self.until_now = counted;
    }

    /// From here on; what was counted so far is known.
    pub(super) fn restart(&mut self) {
        *self = Self { until_now: std::mem::take(&mut self.until_now), ..Self::default() };
    }

    /// The standard error of the calls that those in the slices stand for in all of the time, `share` of which they are:
    /// that of a ratio estimator under simple random sampling of slices (Cochran, Sampling Techniques, 6.4). None of fewer
    /// than two slices.
    pub(super) fn standard_error(&self, place: Place, share: f64) -> Option<f64> {
        if self.slices < 2 || self.seconds <= 0.0 || share <= 0.0 {
            return None;
        }
        let [calls, squared, by_time] = self.sums.get(&place).copied().unwrap_or_default();
        let rate = calls / self.seconds;
        let residual = (squared - 2.0 * rate * by_time + rate * rate * self.seconds_squared).max(0.0);
        let slices = f64::from(self.slices);
        Some((residual * slices / (slices - 1.0) * (1.0 - share).max(0.0)).sqrt() / share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = (1, 2);

    fn spread(calls: &[i64]) -> Spread {
        let (mut spread, mut all) = (Spread::default(), 0);
        for count in calls {
            all += count;
            spread.add(BTreeMap::from([(PLACE, all)]), 0.1);
        }
        spread
    }

    #[test]
    fn the_error_is_that_of_the_mean_of_slices() {
        // Four slices of 8, 12, 8 and 12 calls in an eighth of the time: residuals of 2 each.
        let error = spread(&[8, 12, 8, 12]).standard_error(PLACE, 0.125).expect("an error");
        let by_hand = (16.0_f64 * 4.0 / 3.0 * 0.875).sqrt() / 0.125;
        assert!((error - by_hand).abs() < 1e-9, "{error} {by_hand}");
    }

    #[test]
    fn equal_slices_have_no_error_and_one_says_nothing() {
        assert!(spread(&[9, 9, 9]).standard_error(PLACE, 0.2).expect("an error") < 1e-6);
        assert_eq!(spread(&[9]).standard_error(PLACE, 0.2), None);
    }

    #[test]
    fn what_was_counted_before_it_starts_again_is_in_no_slice() {
        let mut spread = spread(&[100, 3]);
        spread.restart();
        spread.add(BTreeMap::from([(PLACE, 108)]), 0.1);
        spread.add(BTreeMap::from([(PLACE, 113)]), 0.1);
        assert!(spread.standard_error(PLACE, 0.5).expect("an error") < 1e-6);
    }
}
