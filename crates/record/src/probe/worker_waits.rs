//! What `worker_waits` says: where the time of a server's processes goes, each with its threads.

use super::{Cost, ProbeStatus, WaitPlace};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `worker_waits`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerWaitsReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Waits that were not recorded, by what was short; all 0, or times on a CPU are too long.
    pub lost: BTreeMap<String, u64>,
    /// That a thread got a CPU and the kernel did not tell of it: made good from its own clock.
    pub arrivals_unseen: u64,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Names of what is waited for.
    pub buckets: Vec<String>,
    /// The server's processes, and those of the program behind it.
    pub workers: Vec<WorkerTime>,
    /// Where threads have slept.
    pub places: Vec<WaitPlace>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A process, with all its threads, or those of one name that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerTime {
    /// Its number; 0 of those that have ended.
    pub process: u32,
    /// "server", or "program" of the one behind it.
    pub role: String,
    /// What the kernel calls it.
    pub name: String,
    /// How many these are.
    pub processes: u64,
    /// Threads that were seen.
    pub threads: u64,
    /// In which they were seen, all together; the others add up to it.
    pub span_ns: u64,
    /// On a CPU.
    pub cpu_ns: u64,
    /// Waiting for one.
    pub run_queue_ns: u64,
    /// Asleep, by what for.
    pub asleep_ns: BTreeMap<String, u64>,
    /// How often.
    pub waits: BTreeMap<String, u64>,
    /// Switches that the kernel has counted and nobody has seen.
    pub missed: u64,
}
