//! Keying and think times (clause 5.2.5): a user keys a transaction in, waits for it, and thinks.
//!
//! Keying takes the same time always, thinking an exponentially distributed one, cut at ten times the mean. Both belong to
//! the kind: the think time to the one that was performed, the keying time to the one that comes. The response time counts from
//! the end of keying.
//!
//! A segment meets its users in the middle of their work. If they all began with it, the first New-Orders would come after 18
//! seconds, and ten minutes would lack 1 % of theirs.

use super::deck::{Deck, Kind, Mix};
use plimsoll_keys::Words;

/// Seconds, in the order of [`Kind::ALL`].
const KEYING_S: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
const THINKING_S_MEAN: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// Longer think times are cut to so many means.
const THINKING_MEANS_MAX: f64 = 10.0;
const NS_PER_SECOND: f64 = 1e9;

/// What 23 cards take on average: who has worked for longer may be anywhere in his work.
const DECK_S: f64 = 476.0;

/// The fields of words that decide a think time and a time before the segment; a deck takes those below.
pub(super) const THINKING_FIELD: u64 = 64;
const BEFORE_FIELD: u64 = 65;

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

    /// How long the user thinks after one of `kind`, in nanoseconds.
    pub(super) fn thinking_ns(&self, kind: Kind, words: &Words) -> i64 {
        self.ns(THINKING_S_MEAN[kind as usize] * (-fraction(words, THINKING_FIELD).ln()).min(THINKING_MEANS_MAX))
    }

    /// What a user comes to first who has been at it for long, and when, in nanoseconds; `words` are of the user.
    pub(super) fn met(&self, deck: &mut Deck, mix: &Mix, words: &Words) -> (Kind, i64) {
        let of_step = |step| Words::new(words.word(THINKING_FIELD), words.word(BEFORE_FIELD), step);
        let mut kind = deck.next(mix, &of_step(0));
        let mut due_ns = -self.ns(DECK_S * (1.0 + fraction(words, BEFORE_FIELD)));
        for step in 1.. {
            let words = of_step(step);
            let last = std::mem::replace(&mut kind, deck.next(mix, &words));
            due_ns += self.thinking_ns(last, &words) + self.keying_ns(kind);
            if due_ns >= 0 {
                break;
            }
        }
        (kind, due_ns)
    }

    fn ns(&self, seconds: f64) -> i64 {
        (seconds * self.scale * NS_PER_SECOND).round() as i64
    }
}

/// Above 0 and at most 1.
fn fraction(words: &Words, field: u64) -> f64 {
    ((words.word(field) >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_exponential_and_cut() {
        let pacing = Pacing::new(1.0);
        for kind in Kind::ALL {
            let mean_s = THINKING_S_MEAN[kind as usize];
            let draw = |index| pacing.thinking_ns(kind, &Words::new(5, 9, index)) as f64 / NS_PER_SECOND / mean_s;
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
    fn users_are_met_anywhere_in_their_work() {
        const USERS: u64 = 20_000;
        let pacing = Pacing::new(1.0);
        let met = |user| {
            let mut deck = Deck::PLAYED;
            pacing.met(&mut deck, &Mix::default(), &Words::new(5, user, 0))
        };
        // In each second of the first ten as many New-Orders as in any other: 10 of 476 users, with a standard deviation of 20.
        let mut due = [0_u64; 10];
        for (kind, due_ns) in (0..USERS).map(met) {
            assert!(due_ns >= 0);
            if let (Kind::NewOrder, Some(count)) = (kind, due.get_mut((due_ns as f64 / NS_PER_SECOND) as usize)) {
                *count += 1;
            }
        }
        let expected = USERS * 10 / 476;
        assert!(due.iter().all(|count| count.abs_diff(expected) < 85), "{due:?} instead of {expected}");
        assert!(due.iter().sum::<u64>().abs_diff(10 * expected) < 260, "{due:?} instead of {expected}");
    }

    #[test]
    fn a_deck_takes_476_seconds() {
        let seconds = |kind: Kind| KEYING_S[kind as usize] + THINKING_S_MEAN[kind as usize];
        let deck = 10.0 * seconds(Kind::NewOrder) + 10.0 * seconds(Kind::Payment);
        assert_eq!(deck + Kind::ALL[2..].iter().copied().map(seconds).sum::<f64>(), DECK_S);
    }
}
