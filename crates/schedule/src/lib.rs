//! When operations are due: arithmetic from the plan, never from the clock.
//!
//! The fact that constrains it: latency counts from the planned time, so a planned time, once given, is never moved. In a
//! closed loop it depends on when the connection became free; the open loops to come (constant, Poisson, steps) depend on
//! the index alone and ignore `free_ns`.

use serde::{Deserialize, Serialize};

const NS_PER_MS: f64 = 1e6;

/// An arrival plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Each connection starts its next operation a think time after the last one ended.
    Closed {
        /// The think time in milliseconds, 0 or more; fractions are allowed.
        #[serde(default)]
        think_ms: f64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Closed { think_ms: 0.0 }
    }
}

/// A schedule that cannot be followed; the text names the field.
#[derive(Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

impl Schedule {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// When a field is outside its range.
    pub fn validate(&self) -> Result<(), Impossible> {
        match *self {
            Self::Closed { think_ms } if !(0.0..=86_400_000.0).contains(&think_ms) => {
                Err(Impossible(format!("schedule.think_ms: {think_ms} is not between 0 and 86400000")))
            }
            Self::Closed { .. } => Ok(()),
        }
    }

    /// The time in nanoseconds at which an operation is due on a connection that became free at `free_ns`.
    pub fn planned_ns(&self, free_ns: i64) -> i64 {
        match *self {
            Self::Closed { think_ms } => free_ns.saturating_add((think_ms * NS_PER_MS).round() as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_is_due_a_think_time_after_it_was_free() {
        assert_eq!(Schedule::default().planned_ns(17), 17);
        assert_eq!(Schedule::Closed { think_ms: 2.5 }.planned_ns(17), 2_500_017);
        assert_eq!(Schedule::Closed { think_ms: 1.0 }.planned_ns(i64::MAX), i64::MAX, "no wrap");
    }

    #[test]
    fn impossible_think_times_name_the_field() {
        for think_ms in [-1.0, f64::NAN, f64::INFINITY] {
            let error = Schedule::Closed { think_ms }.validate().expect_err("out of range");
            assert!(error.0.contains("schedule.think_ms"));
        }
        assert_eq!(Schedule::Closed { think_ms: 0.0 }.validate(), Ok(()));
    }
}
