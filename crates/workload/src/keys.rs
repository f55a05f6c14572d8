//! The `keys` of a request: how a workload chooses the rows that it touches.

use plimsoll_keys::{Choice, KeyChooser};
use serde::Deserialize;

/// Which keys are touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// All alike.
    #[default]
    Uniform,
    /// By Zipf's law with this exponent.
    Zipf(f64),
}

impl Keys {
    /// A chooser among 0..`size` for `table` under `seed`.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(crate) fn chooser(self, seed: u64, table: u64, size: u64) -> Result<KeyChooser, String> {
        let choice = match self {
            Self::Uniform => Choice::Uniform,
            Self::Zipf(theta) => Choice::Zipf { theta },
        };
        KeyChooser::new(choice, seed, table, size)
            .ok_or_else(|| "workload.keys.zipf: the exponent must be a number above 0".to_owned())
    }
}
