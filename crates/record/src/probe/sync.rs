//! What `sync` says beside its table: the syncs of a server's processes, by class of file and call.

use super::{Cost, FileSystem, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `sync`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SyncReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Names of the file classes; `class` of `sync.npy` is the place here.
    pub classes: Vec<String>,
    /// The file systems that are watched.
    pub file_systems: Vec<FileSystem>,
    /// Syncs that were not recorded, by what was short; all 0, or the figures are lower bounds.
    pub lost: BTreeMap<String, u64>,
    /// What tells the begin and the end of a call.
    pub boundaries: BTreeMap<String, String>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Names of the calls; `call` of `sync.npy` is the place here.
    pub calls: Vec<String>,
    /// Syncs over the segment, by class and call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sync_totals: BTreeMap<String, BTreeMap<String, SyncTotals>>,
    /// By how much the parts of a sync miss it at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_ns_max: Option<i64>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// All syncs of one kind on files of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncTotals {
    /// Calls that returned.
    pub count: u64,
    /// Of those the ones that failed.
    pub errors: u64,
    /// In all.
    pub ns: u64,
    /// The shortest.
    pub ns_min: u64,
    /// The longest.
    pub ns_max: u64,
    /// Calls that took 2^n to 2^(n+1) - 1 ns, by n. Cut behind the last that is not 0.
    pub ns_log2: Vec<u64>,
    /// By part, in all; what the file system does not tell is not here.
    pub parts_ns: BTreeMap<String, u64>,
    /// Of waiting for the journal: while the device was emptying its cache. Absent where that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_flush_ns: Option<u64>,
    /// Pages that the calls themselves wrote. Absent where that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
}
