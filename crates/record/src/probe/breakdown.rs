//! What `breakdown` says beside its tables: what was watched and counted, and the server's processes without clients.

use super::{Cost, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `breakdown`. What is known only at the end is absent before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakdownReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Names of the buckets; `bucket` of `breakdown_waits.npy` is the place here.
    pub buckets: Vec<String>,
    /// Names of the wait events that occur, by their numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wait_names: BTreeMap<String, String>,
    /// What tells the begin and the end of a request.
    pub boundaries: BTreeMap<String, String>,
    /// How much of the time was watched, to keep within a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Calls of fsync and fdatasync by the server's processes, by what was synced; absent where the file system does not tell.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub syncs: BTreeMap<String, u64>,
    /// Requests by what became of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub request_counts: BTreeMap<String, u64>,
    /// The server's processes that carry no client's requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
    /// When the server was found to have ended; what it did after is in no figure, nor what a new one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ended_ns: Option<i64>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// How much of the time was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// What the programs may take of the machine's CPU time; without one all of the time is watched.
    pub budget_share: Option<f64>,
    /// What they took in the segment.
    pub share: Option<f64>,
    /// At the end one slice of time in so many was watched; never fewer before.
    pub one_in_max: u32,
    /// Transactions that took longer than a slice is kept open for, and are in no row.
    pub cut: u64,
}

/// Blocked intervals of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// How many.
    pub count: u64,
    /// How long in all.
    pub ns: u64,
}

/// What a process of the server did in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessTime {
    /// The process.
    pub pid: u32,
    /// What it is, as its title says: "walwriter", "checkpointer"...
    pub what: String,
    /// On a CPU.
    pub cpu_ns: u64,
    /// Runnable, and not running.
    pub run_queue_ns: u64,
    /// Blocked, by the name of the wait event.
    pub waits: BTreeMap<String, Waited>,
}
