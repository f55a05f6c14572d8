//! What `block` says: the requests of block devices, by what they carry.

use super::{Cost, FileSystem, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `block`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Names of the file classes; `class` of the series is the place here.
    pub classes: Vec<String>,
    /// Names of the disks; `device` of the series is the place here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// The file systems that are watched.
    pub file_systems: Vec<FileSystem>,
    /// Events that were not counted, by what was short; all 0, or the figures are lower bounds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Names of what requests do; `operation` of `block.npy` is the place here.
    pub operations: Vec<String>,
    /// Requests over the segment, by disk, class and operation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub request_totals: BTreeMap<String, BTreeMap<String, BTreeMap<String, RequestTotals>>>,
    /// What became of the requests of each disk.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disk_requests: BTreeMap<String, DiskRequests>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A bucket: its least value, and how many there are from it to 1/32 of a power of two above.
pub type Bucket = (u64, u64);

/// All requests of one operation on one disk that carry pages of one class; units are in the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestTotals {
    /// Issued in the segment, and completed in it.
    pub count: u64,
    /// Of those the ones that failed.
    pub errors: u64,
    /// What they were to transfer.
    pub bytes: u64,
    /// The smallest.
    pub bytes_min: u64,
    /// The largest.
    pub bytes_max: u64,
    /// Reads, flushes, and what is marked as waited for.
    pub synchronous: u64,
    /// Marked as metadata.
    pub meta: u64,
    /// Marked as having to be past the device's cache.
    pub fua: u64,
    /// Marked as read ahead.
    pub ahead: u64,
    /// Of `count` those whose begin the kernel has noted: only of these the queue time is told.
    pub queued: u64,
    /// From when it became a request to when it was issued to the device.
    pub queue_ns: u64,
    /// The shortest.
    pub queue_ns_min: u64,
    /// The longest.
    pub queue_ns_max: u64,
    /// From when it was issued to when it completed.
    pub device_ns: u64,
    /// The shortest.
    pub device_ns_min: u64,
    /// The longest.
    pub device_ns_max: u64,
    /// How many of which size; empty buckets are left out.
    pub bytes_buckets: Vec<Bucket>,
    /// How many queued for how long.
    pub queue_ns_buckets: Vec<Bucket>,
    /// How many were at the device for how long.
    pub device_ns_buckets: Vec<Bucket>,
}

/// What became of a disk's requests; `issued` is the sum of `completed`, `requeued`, `under_way`, `unseen` and `no_room`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskRequests {
    /// Given to the device in the segment.
    pub issued: u64,
    /// Of those: completed in it, and counted by class and operation.
    pub completed: u64,
    /// Of those: given back by the device, which had no room; issued again they count again.
    pub requeued: u64,
    /// Of those: at the device at the end.
    pub under_way: u64,
    /// Of those: known to have completed, but it was not seen.
    pub unseen: u64,
    /// Of those: the probe had no room to remember.
    pub no_room: u64,
    /// Whether that is all of them.
    pub holds: bool,
    /// Completed in the segment, and issued before it, or their issue was not seen.
    pub before: u64,
    /// Writes of nothing that asked for a flush, and were answered by one; several may be by the same.
    pub flush_asks: u64,
    /// Bios that became part of a request that there was.
    pub bios_merged: u64,
    /// Requests that became part of another.
    pub requests_merged: u64,
    /// Bios that were cut in two. Absent where the kernel does not tell.
    pub splits: Option<u64>,
    /// The time of all requests at the device together: divided by the segment's it is the mean depth.
    pub depth_ns: u64,
    /// The most requests that were at the device at once.
    pub depth_max: u64,
    /// The segment.
    pub segment_ns: u64,
}
