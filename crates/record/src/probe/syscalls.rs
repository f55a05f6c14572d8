//! What `syscalls` says: the system calls of a server's processes, by class of file and kind.

use super::{Cost, FileSystem, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `syscalls`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemCallsReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Names of the file classes; `class` of the series is the place here.
    pub classes: Vec<String>,
    /// The file systems that are watched.
    pub file_systems: Vec<FileSystem>,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    pub lost: BTreeMap<String, u64>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Names of the kinds of system calls; `call` of `syscalls.npy` is the place here.
    pub calls: Vec<String>,
    /// System calls over the segment, by class and kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub call_totals: BTreeMap<String, BTreeMap<String, CallTotals>>,
    /// In which part of the segment those were counted, which stands for all of it; without it each of them was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_share: Option<f64>,
    /// All other system calls over the segment, by name or number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other_calls: BTreeMap<String, OtherCalls>,
    /// The same of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// All calls of one kind on files of one class; units are in the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallTotals {
    /// Calls that returned.
    pub count: u64,
    /// Where they were counted in slices of time: the standard error of that number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_se: Option<u64>,
    /// Of those the ones that failed.
    pub errors: u64,
    /// Of reads and writes: what they asked for.
    pub asked_bytes: u64,
    /// Of reads and writes: what they were given or rid of.
    pub returned_bytes: u64,
    /// From the entry to the end, in all.
    pub ns: u64,
    /// Of reads and writes of the server's files: those that began where the last one of any process ended.
    pub sequential: u64,
    /// Calls that took 2^n to 2^(n+1) - 1 ns, by n; the first also those that took none. Cut behind the last that is not 0.
    pub ns_log2: Vec<u64>,
    /// Of reads and writes that did not fail: those that returned nothing, then those of 2^(n-1) to 2^n - 1 bytes, by n.
    pub bytes_log2: Vec<u64>,
}

/// All calls of one number that are not told by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherCalls {
    /// Calls that returned.
    pub count: u64,
    /// Of those the ones that failed.
    pub errors: u64,
    /// From the entry to the end, in all: the mean of those that were timed, times their count.
    pub ns: u64,
}
