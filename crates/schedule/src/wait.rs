//! Think and keying times of a closed loop.

use crate::draw::{Stream, exponential, uniform};
use crate::{Impossible, MILLISECONDS_MAX, within};
use serde::{Deserialize, Serialize};

const NS_PER_MS: f64 = 1e6;

/// A distribution of times, in milliseconds; fractions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "milliseconds, {\"exponential\": mean, \"max\": longest} or {\"uniform\": [shortest, longest]}"
)]
pub enum Wait {
    /// Always the same.
    Fixed(f64),
    /// Exponentially distributed.
    Exponential {
        /// The mean, before draws are cut.
        exponential: f64,
        /// Longer draws are cut to this.
        #[serde(default)]
        max: Option<f64>,
    },
    /// Uniformly distributed.
    Uniform {
        /// Shortest and longest.
        uniform: [f64; 2],
    },
}

impl Default for Wait {
    fn default() -> Self {
        Self::Fixed(0.0)
    }
}

impl Wait {
    pub(crate) fn validate(&self, field: &str) -> Result<(), Impossible> {
        match *self {
            Self::Fixed(ms) => within(field, ms, 0.0, MILLISECONDS_MAX),
            Self::Exponential { exponential, max } => {
                within(&format!("{field}.exponential"), exponential, 0.0, MILLISECONDS_MAX)?;
                max.map_or(Ok(()), |max| within(&format!("{field}.max"), max, 0.0, MILLISECONDS_MAX))
            }
            Self::Uniform { uniform: [low, high] } => {
                within(&format!("{field}.uniform[0]"), low, 0.0, MILLISECONDS_MAX)?;
                within(&format!("{field}.uniform[1]"), high, low, MILLISECONDS_MAX)
            }
        }
    }

    /// Whether it is always none: then nothing is to be drawn, multiplied and rounded after each operation.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        matches!(*self, Self::Fixed(ms) if ms == 0.0)
    }

    /// Nanoseconds; a pure function.
    #[inline]
    pub(crate) fn ns(&self, seed: u64, stream: Stream, index: u64) -> i64 {
        let ms = match *self {
            Self::Fixed(ms) => ms,
            Self::Exponential { exponential: mean, max } => {
                (mean * exponential(seed, stream, index)).min(max.unwrap_or(f64::INFINITY))
            }
            Self::Uniform { uniform: [low, high] } => low + (high - low) * uniform(seed, stream, index),
        };
        (ms * NS_PER_MS).round() as i64
    }
}
