//! What was checked, and what came of it.

use serde::{Deserialize, Serialize};

/// One consistency check after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// What it should be; "A to B" where lost transactions leave it open.
    pub expected: String,
    /// What the server says.
    pub found: String,
    /// Whether they agree.
    pub ok: bool,
}
