//! What `nfs_calls` says beside its table and nfs.json: of which mounts, over which interfaces, and what was lost.

use super::{Cost, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of the probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NfsCallsReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Mounts of the servers that hold files of the target; none where no file of it lies on NFS, and then there are no calls.
    pub mounts: Vec<NfsMount>,
    /// Names of the interfaces that packets were taken from.
    pub interfaces: Vec<String>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// Packets that were read.
    pub packets: u64,
    /// Packets of other servers on the same ports, which were left out.
    pub packets_elsewhere: u64,
    /// What was not read or not kept, by what: all 0, or calls are missing.
    pub lost: BTreeMap<String, u64>,
    /// What the kernel may hold of packets that are not read yet.
    pub ring_bytes: u64,
    /// Files and folders whose handles were known before the segment.
    pub handles: u64,
    /// Those that lie on the mounts and whose handle the client did not tell.
    pub handles_untold: u64,
    /// When the client's account was read before the segment, since 1970: not before the first, not after the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<[i64; 2]>,
    /// The same after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<[i64; 2]>,
    /// CPU time of the thread that decodes and writes.
    pub thread_cpu_ns: u64,
    /// The client's own calls by the kernel's tracepoint; where there is none, `absent` says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<NfsTasks>,
}

/// What the tracepoint says beside its table, nfs_tasks.npy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NfsTasks {
    /// What the table's numbers of operations mean.
    pub operations: Vec<NfsTaskOperation>,
    /// Rows of the table.
    pub rows: u64,
    /// What was seen and not kept, by what: all 0, or calls are missing.
    pub lost: BTreeMap<String, u64>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// What the program took.
    pub cost: Option<Cost>,
}

/// An operation as the client counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NfsTaskOperation {
    /// RPC's number of the program.
    pub program: u32,
    /// Of the program.
    pub version: u32,
    /// RPC's number of the procedure: that of all compounds of version 4 is the same.
    pub procedure: u32,
    /// As the client's account names it.
    pub name: String,
}

/// A mount of NFS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NfsMount {
    /// Where.
    pub place: String,
    /// "server:/export".
    pub source: String,
    /// Major and minor number: mounts that share them are one to the client, and counted as one.
    pub device: String,
    /// As they are in effect.
    pub options: String,
    /// Its address and port.
    pub server: String,
    /// Whether files of the target lie on it.
    pub is_targets: bool,
}
