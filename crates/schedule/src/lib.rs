//! When operations are due: arithmetic from the plan, never from the clock.
//!
//! The fact that constrains it: latency counts from the planned time, so a planned time, once given, is never moved. In a
//! closed loop it depends on when the connection became free; in an open loop on the index alone ([`Open`]).

mod draw;
mod open;
mod rate;
mod wait;

pub use draw::{Stream, draw};
pub use open::{Arrivals, Open};
use rate::Rate;
use serde::{Deserialize, Serialize};
pub use wait::Wait;

/// Operations a second, at most.
pub const RATE_MAX: f64 = 1e7;
/// The longest time that can be given in milliseconds: a day.
pub const MILLISECONDS_MAX: f64 = 86_400_000.0;
/// The longest step or ramp: a day.
pub const SECONDS_MAX: f64 = 86_400.0;
const NS_PER_MS: f64 = 1e6;

/// An arrival plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Each connection starts its next operation when its last one has ended, after keying and thinking.
    Closed {
        /// The think time, in milliseconds.
        #[serde(default)]
        think_ms: Wait,
        /// The keying time, in milliseconds.
        #[serde(default)]
        keying_ms: Wait,
        /// Of the draws.
        #[serde(default = "one")]
        seed: u64,
    },
    /// Equal distances.
    Constant {
        /// Operations a second.
        rate: f64,
        /// Of what is drawn beside the arrivals.
        #[serde(default = "one")]
        seed: u64,
        /// An operation that would start later than this after it was due is skipped, in milliseconds.
        #[serde(default)]
        late_limit_ms: Option<f64>,
    },
    /// Independent arrivals: exponential distances.
    Poisson {
        /// Operations a second.
        rate: f64,
        /// Of the distances.
        #[serde(default = "one")]
        seed: u64,
        /// As above.
        #[serde(default)]
        late_limit_ms: Option<f64>,
    },
    /// One rate after the other; the last one goes on.
    Steps {
        /// How arrivals lie around the rate.
        #[serde(default)]
        arrivals: Arrivals,
        /// The rates, one at least.
        steps: Vec<Step>,
        /// Of the distances.
        #[serde(default = "one")]
        seed: u64,
        /// As above.
        #[serde(default)]
        late_limit_ms: Option<f64>,
    },
    /// A rate that grows or falls evenly, and then stays.
    Ramp {
        /// How arrivals lie around the rate.
        #[serde(default)]
        arrivals: Arrivals,
        /// Operations a second at the start.
        from: f64,
        /// Operations a second at the end and from then on.
        to: f64,
        /// How long it changes.
        seconds: f64,
        /// Of the distances.
        #[serde(default = "one")]
        seed: u64,
        /// As above.
        #[serde(default)]
        late_limit_ms: Option<f64>,
    },
}

fn one() -> u64 {
    1
}

/// A rate and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Operations a second.
    pub rate: f64,
    /// How long, in seconds.
    pub seconds: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Closed { think_ms: Wait::default(), keying_ms: Wait::default(), seed: one() }
    }
}

/// A schedule that cannot be followed; the text names the field.
#[derive(Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), Impossible> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(Impossible(format!("schedule.{field}: {value} is not between {low} and {high}"))),
    }
}

fn above_zero(field: &str, value: f64, high: f64) -> Result<(), Impossible> {
    match value > 0.0 && value <= high {
        true => Ok(()),
        false => Err(Impossible(format!("schedule.{field}: {value} is not above 0 and at most {high}"))),
    }
}

impl Schedule {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// When a field is outside its range.
    pub fn validate(&self) -> Result<(), Impossible> {
        match self {
            Self::Closed { think_ms, keying_ms, .. } => {
                think_ms.validate("think_ms")?;
                keying_ms.validate("keying_ms")?;
            }
            Self::Constant { rate, .. } | Self::Poisson { rate, .. } => above_zero("rate", *rate, RATE_MAX)?,
            Self::Steps { steps, .. } => {
                if steps.is_empty() {
                    return Err(Impossible("schedule.steps: there must be one at least".to_owned()));
                }
                for (place, step) in steps.iter().enumerate() {
                    above_zero(&format!("steps[{place}].rate"), step.rate, RATE_MAX)?;
                    above_zero(&format!("steps[{place}].seconds"), step.seconds, SECONDS_MAX)?;
                }
            }
            Self::Ramp { from, to, seconds, .. } => {
                above_zero("from", *from, RATE_MAX)?;
                above_zero("to", *to, RATE_MAX)?;
                above_zero("seconds", *seconds, SECONDS_MAX)?;
            }
        }
        self.late_limit_ms().map_or(Ok(()), |ms| above_zero("late_limit_ms", ms, MILLISECONDS_MAX))
    }

    /// The plan of an open loop whose first operation is `first_index`; `None` for a closed loop.
    pub fn open(&self, first_index: u64) -> Option<Open> {
        let (rate, arrivals) = match self {
            Self::Closed { .. } => return None,
            Self::Constant { rate, .. } => (Rate::new([], *rate), Arrivals::Constant),
            Self::Poisson { rate, .. } => (Rate::new([], *rate), Arrivals::Poisson),
            Self::Steps { steps, arrivals, .. } => {
                let stretches = steps.iter().map(|step| (step.rate, step.rate, step.seconds));
                (Rate::new(stretches, steps.last().map_or(1.0, |step| step.rate)), *arrivals)
            }
            Self::Ramp { from, to, seconds, arrivals, .. } => (Rate::new([(*from, *to, *seconds)], *to), *arrivals),
        };
        Some(Open::new(rate, arrivals, self.seed(), first_index))
    }

    /// How long a connection of a closed loop waits after operation `index`, in nanoseconds: thinking and keying. A pure
    /// function. 0 in an open loop.
    #[inline]
    pub fn wait_ns(&self, index: u64) -> i64 {
        let Self::Closed { think_ms, keying_ms, seed } = self else { return 0 };
        if think_ms.is_none() && keying_ms.is_none() {
            return 0;
        }
        think_ms.ns(*seed, Stream::Think, index).saturating_add(keying_ms.ns(*seed, Stream::Keying, index))
    }

    /// The seed of everything drawn.
    pub fn seed(&self) -> u64 {
        match *self {
            Self::Closed { seed, .. }
            | Self::Constant { seed, .. }
            | Self::Poisson { seed, .. }
            | Self::Steps { seed, .. }
            | Self::Ramp { seed, .. } => seed,
        }
    }

    fn late_limit_ms(&self) -> Option<f64> {
        match *self {
            Self::Closed { .. } => None,
            Self::Constant { late_limit_ms, .. }
            | Self::Poisson { late_limit_ms, .. }
            | Self::Steps { late_limit_ms, .. }
            | Self::Ramp { late_limit_ms, .. } => late_limit_ms,
        }
    }

    /// An operation that would start later than this after it was due is to be skipped, in nanoseconds.
    pub fn late_limit_ns(&self) -> Option<i64> {
        self.late_limit_ms().map(|ms| (ms * NS_PER_MS).round() as i64)
    }
}
