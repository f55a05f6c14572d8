//! What `kernel_log` says: what the kernel wrote that is no good news, and what was lost of its log.

use super::ProbeStatus;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of the probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelLogReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Of the kernel that is running: sequence numbers begin anew with it.
    pub boot_id: String,
    /// The number of the last record that was there before the segment; null of an empty log.
    pub before: Option<u64>,
    /// The number of the last record that was read; null of an empty log.
    pub last: Option<u64>,
    /// Records of the segment, of whatever class.
    pub records: u64,
    /// Records of each class that occurred.
    pub counts: BTreeMap<String, u64>,
    /// Those that have a class, in their order.
    pub events: Vec<KernelEvent>,
    /// What was not read or not kept, by why: all 0, or something may have happened that nobody saw.
    pub lost: BTreeMap<String, u64>,
}

/// A record of the kernel's log that has a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelEvent {
    /// What it tells of.
    pub class: String,
    /// When, by the kernel's own clock, which goes with CLOCK_MONOTONIC.
    pub t_ns: i64,
    /// Its number.
    pub sequence: u64,
    /// 0 (emergency) to 7 (debug).
    pub level: u8,
    /// "kernel", or "program" for what was written to /dev/kmsg.
    pub by: String,
    /// Its first line.
    pub text: String,
}
