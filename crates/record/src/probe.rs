//! What a probe in the kernel says about itself, in `summary.json`.

use crate::block::{DiskRequests, RequestTotals};
use crate::calls::{CallTotals, OtherCalls};
use crate::check::Check;
use crate::profile::Profile;
use crate::sync::SyncTotals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by name, of one class or device.
pub type Counts = BTreeMap<String, i64>;

/// One probe of one segment. What does not apply to a probe, or was not reached, is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// "on" or "refused".
    pub status: String,
    /// Why it was refused.
    pub reason: Option<String>,
    /// What would change that.
    pub remedy: Option<String>,
    /// Columns that this kernel cannot tell, and why.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
    /// "tp_btf" or "tracepoint".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<String>,
    /// Where ranges of reads come from: "get_pages" or "system_calls".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// The known stimulus and what was counted of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_test: Option<SelfTest>,
    /// Names of the file classes; `class` of the series is the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Names of the devices; `device` of the series is the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Bytes of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// Bytes of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// The file systems that are watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<FileSystem>,
    /// Growth over the segment, by class or device and column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, Counts>,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Pages added against pages accounted for, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, PageIdentity>,
    /// Names of the buckets; `bucket` of `breakdown_waits.npy` is the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<String>,
    /// Names of the wait events that occur, by their numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wait_names: BTreeMap<String, String>,
    /// What tells the begin and the end of a request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub boundaries: BTreeMap<String, String>,
    /// How much of the time was watched, to keep within a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Calls of fsync and fdatasync by the server's processes, by what was synced; absent where the file system does not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub syncs: BTreeMap<String, u64>,
    /// Requests by what became of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_counts: BTreeMap<String, u64>,
    /// The server's processes that carry no client's requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
    /// What was sampled on the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// When the server was found to have ended; what it did after is in no figure, nor what a new one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ended_ns: Option<i64>,
    /// Known stimuli and what was found of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Names of the kinds of system calls; `call` of `syscalls.npy` and of `sync.npy` is the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// System calls over the segment, by class and kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_totals: BTreeMap<String, BTreeMap<String, CallTotals>>,
    /// In which part of the segment those were counted, which stands for all of it; without it each of them was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_share: Option<f64>,
    /// All other system calls over the segment, by name or number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_calls: BTreeMap<String, OtherCalls>,
    /// The same of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
    /// Syncs over the segment, by class and kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sync_totals: BTreeMap<String, BTreeMap<String, SyncTotals>>,
    /// By how much the parts of a sync miss it at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ns_max: Option<i64>,
    /// Names of what requests do; `operation` of `block.npy` is the place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// Requests over the segment, by disk, class and operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_totals: BTreeMap<String, BTreeMap<String, BTreeMap<String, RequestTotals>>>,
    /// What became of the requests of each disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disk_requests: BTreeMap<String, DiskRequests>,
    /// What the probe itself took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl ProbeReport {
    /// A probe that may not be believed, or cannot be had.
    #[must_use]
    pub fn refused(reason: String, remedy: Option<String>) -> Self {
        Self { status: "refused".to_owned(), reason: Some(reason), remedy, ..Self::default() }
    }
}

/// How much of the time was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// The self-test before each segment: pages read in shuffled order, cold and again, and a file read from end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Single pages read of the first file.
    pub pages: u64,
    /// Misses counted when it was cold: has to be `pages`.
    pub missed_cold: i64,
    /// Misses counted when they were read again: has to be 0.
    pub missed_warm: i64,
    /// Pages of the second file.
    pub sequential_pages: u64,
    /// Pages counted as added when it was read: has to be `sequential_pages`.
    pub sequential_added: i64,
    /// All three held.
    pub passed: bool,
}

/// A watched file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Major and minor number, as mountinfo has them.
    pub device: String,
    /// ext4, xfs, btrfs...
    #[serde(rename = "type")]
    pub kind: String,
}

/// Pages added to the page cache are accounted for by why they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageIdentity {
    /// Counted at the addition.
    pub added: i64,
    /// The sum of the reasons.
    pub accounted: i64,
    /// Whether they are equal.
    pub holds: bool,
}

/// Blocked intervals of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// How many.
    pub count: u64,
    /// How long in all.
    pub ns: u64,
}

/// What a process of the server did in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a probe's programs took during a segment, by the kernel's own accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// All of them, in nanoseconds, over the whole segment: scaled up from the part that was accounted.
    pub run_ns: u64,
    /// For how much of the segment the kernel accounted, in nanoseconds.
    #[serde(default)]
    pub accounted_ns: u64,
    /// The segment, in nanoseconds.
    #[serde(default)]
    pub segment_ns: u64,
    /// One by one.
    pub programs: Vec<ProgramCost>,
}

/// One program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How long in all.
    pub run_ns: u64,
}
