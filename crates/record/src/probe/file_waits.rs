//! What `file_waits` says beside its table: where in the kernel the threads of a load on files sleep, and for how long in all.

use super::{Cost, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `file_waits`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileWaitsReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Waits that were not recorded, by what was short; all 0, or operations lack waits.
    pub lost: BTreeMap<String, u64>,
    /// That a thread got a CPU and the kernel did not tell of it: made good from its own clock.
    pub arrivals_unseen: u64,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Names of what is waited for.
    pub buckets: Vec<String>,
    /// Where threads have slept; `place` of `file_waits.npy` is the place here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<WaitPlace>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A place in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitPlace {
    /// What is waited for there.
    pub bucket: String,
    /// The function that tells it; of what is in no bucket of its own the one that wanted to sleep.
    pub function: String,
    /// Innermost last, ";" between.
    pub stack: String,
    /// How often, between operations too.
    pub count: u64,
    /// Asleep in all.
    pub ns: u64,
}
