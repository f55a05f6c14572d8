//! Random numbers by address: one for each (seed, stream, index), without the ones before it.

use plimsoll_keys::mixed;

/// What a draw is for; draws of two streams are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// The distance between two arrivals.
    Arrival = 1,
    /// A think time.
    Think = 2,
    /// A keying time.
    Keying = 3,
    /// Which operations are kept when not all are.
    Sample = 4,
}

/// 64 random bits (SplitMix64: a counter behind a mixing function).
#[inline]
pub fn draw(seed: u64, stream: Stream, index: u64) -> u64 {
    let base = mixed(seed ^ mixed(stream as u64));
    mixed(base.wrapping_add(index))
}

/// A number above 0, up to and with 1.
#[inline]
fn fraction(word: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    ((word >> 11) + 1) as f64 * STEP
}

/// An exponentially distributed number with the mean 1.
#[inline]
pub(crate) fn exponential(seed: u64, stream: Stream, index: u64) -> f64 {
    -fraction(draw(seed, stream, index)).ln()
}

/// A uniformly distributed number above 0, up to and with 1.
#[inline]
pub(crate) fn uniform(seed: u64, stream: Stream, index: u64) -> f64 {
    fraction(draw(seed, stream, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_above_0_and_at_most_1() {
        assert_eq!(fraction(u64::MAX), 1.0);
        assert!(fraction(0) > 0.0);
    }

    #[test]
    fn streams_and_neighbours_differ() {
        let words = [
            draw(1, Stream::Think, 7),
            draw(1, Stream::Keying, 7),
            draw(1, Stream::Think, 8),
            draw(2, Stream::Think, 7),
        ];
        for (place, word) in words.iter().enumerate() {
            assert!(!words[place + 1..].contains(word));
        }
    }
}
