//! Keying and think times (clause 5.2.5): a user keys a transaction in, waits for it, and thinks.
//!
//! Keying takes the same time always, thinking an exponentially distributed one, cut at ten times the mean. Both belong to
//! the kind: the think time to the one that was performed, the keying time to the one that comes. The response time counts from
//! the end of keying.

use super::deck::Kind;
use plimsoll_keys::Words;

/// Seconds, in the order of [`Kind::ALL`].
const KEYING_S: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
const THINKING_S_MEAN: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// Longer think times are cut to so many means.
const THINKING_MEANS_MAX: f64 = 10.0;
const NS_PER_SECOND: f64 = 1e9;

/// The times of users, all multiplied by one factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pacing {
    scale: f64,
}

impl Pacing {
    pub(super) fn new(scale: f64) -> Self {
        Self { scale }
    }

    /// The factor.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// How long a transaction of `kind` is keyed in, in nanoseconds.
    pub(super) fn keying_ns(&self, kind: Kind) -> i64 {
        self.ns(KEYING_S[kind as usize])
    }

    /// How long the user thinks after one of `kind`, in nanoseconds; `field` of `words` decides.
    pub(super) fn thinking_ns(&self, kind: Kind, words: &Words, field: u64) -> i64 {
        let fraction = ((words.word(field) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.ns(THINKING_S_MEAN[kind as usize] * (-fraction.ln()).min(THINKING_MEANS_MAX))
    }

    fn ns(&self, seconds: f64) -> i64 {
        (seconds * self.scale * NS_PER_SECOND).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_exponential_and_cut() {
        let pacing = Pacing::new(1.0);
        for kind in Kind::ALL {
            let mean_s = THINKING_S_MEAN[kind as usize];
            let draw = |index| pacing.thinking_ns(kind, &Words::new(5, 9, index), 1) as f64 / NS_PER_SECOND / mean_s;
            let mut times: Vec<f64> = (0..200_000).map(draw).collect();
            times.sort_by(f64::total_cmp);
            // Less than 1 by e^-10 for the cut; the standard deviation of the mean of so many is 0.0022.
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "{mean}");
            for share in [0.1, 0.5, 0.9, 0.99] {
                let (found, expected) = (times[(share * times.len() as f64) as usize], -f64::ln(1.0 - share));
                assert!((found / expected - 1.0).abs() < 0.03, "{share}: {found} instead of {expected}");
            }
            assert_eq!(times.last().copied(), Some(THINKING_MEANS_MAX), "200,000 e^-10 is nine");
        }
    }

    #[test]
    fn keying_has_the_times_of_the_specification() {
        let seconds = |scale| Kind::ALL.map(|kind| Pacing::new(scale).keying_ns(kind));
        assert_eq!(seconds(1.0), [18, 3, 2, 2, 2].map(|s| s * 1_000_000_000));
        assert_eq!(seconds(0.001), [18, 3, 2, 2, 2].map(|ms| ms * 1_000_000));
    }

    #[test]
    fn a_deck_takes_476_seconds() {
        let seconds = |kind: Kind| KEYING_S[kind as usize] + THINKING_S_MEAN[kind as usize];
        let deck = 10.0 * seconds(Kind::NewOrder) + 10.0 * seconds(Kind::Payment);
        assert_eq!(deck + Kind::ALL[2..].iter().copied().map(seconds).sum::<f64>(), 476.0);
    }
}
