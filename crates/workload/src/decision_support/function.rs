//! The two refresh functions by name.

use serde::{Deserialize, Serialize};

/// A refresh function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// Inserts new orders with their lines.
    #[serde(rename = "RF1")]
    Rf1,
    /// Deletes old orders with their lines.
    #[serde(rename = "RF2")]
    Rf2,
}

impl Function {
    /// Both, in the order of a pair.
    pub const ALL: [Self; 2] = [Self::Rf1, Self::Rf2];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rf1 => "RF1",
            Self::Rf2 => "RF2",
        }
    }
}
