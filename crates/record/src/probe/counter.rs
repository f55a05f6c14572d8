//! What `buffer_heads` and `throttle` say: growth of the counters of one device.

use super::{Cost, Counts, FileSystem, ProbeStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of a probe of one device that only counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Names of the devices; `device` of the series is the place here.
    pub devices: Vec<String>,
    /// The file systems that are watched.
    pub file_systems: Vec<FileSystem>,
    /// Growth over the segment, by device and column.
    pub totals: BTreeMap<String, Counts>,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    pub lost: BTreeMap<String, u64>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}
