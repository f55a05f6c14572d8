//! What `page_cache` says: pages asked for, brought and given up, by file class.

use super::{Cost, Counts, FileSystem, ProbeStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `page_cache`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageCacheReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Where ranges of reads come from: "get_pages" or "system_calls".
    pub requests: String,
    /// The known stimulus and what was counted of it.
    pub self_test: SelfTest,
    /// Names of the file classes; `class` of the series is the place here.
    pub classes: Vec<String>,
    /// Of the classes that are a workload's own: of which other class each is a part.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub part_of: BTreeMap<String, String>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The file systems that are watched.
    pub file_systems: Vec<FileSystem>,
    /// Growth over the segment, by class and column.
    pub totals: BTreeMap<String, Counts>,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    pub lost: BTreeMap<String, u64>,
    /// Pages added against pages accounted for, by class.
    pub identity: BTreeMap<String, PageIdentity>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The self-test before each segment: pages read in shuffled order, cold and again, and a file read from end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// Pages added to the page cache are accounted for by why they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageIdentity {
    /// Counted at the addition.
    pub added: i64,
    /// The sum of the reasons.
    pub accounted: i64,
    /// Whether they are equal.
    pub holds: bool,
}
