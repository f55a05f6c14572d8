//! What a probe in the kernel says about itself, in `summary.json`: a struct for each probe, in a file of its own.
//!
//! The fact that constrains it: the summary knows no probe by name, so that a new one has a file and changes no other. Nobody in
//! Rust reads these back; `schema/record.md` documents the keys.

mod block;
mod breakdown;
mod counter;
mod file_waits;
mod kernel_log;
mod machine_speed;
mod nfs_calls;
mod page_cache;
mod profile;
mod slabs;
mod sync;
mod syscalls;
mod worker_waits;

pub use block::{BlockReport, Bucket, DiskRequests, RequestTotals};
pub use breakdown::{BreakdownReport, ProcessTime, Sampling, Waited};
pub use counter::CounterReport;
pub use file_waits::{FileWaitsReport, WaitPlace};
pub use kernel_log::{KernelEvent, KernelLogReport};
pub use machine_speed::MachineSpeedReport;
pub use nfs_calls::{NfsCallsReport, NfsMount, NfsTaskOperation, NfsTasks};
pub use page_cache::{PageCacheReport, PageIdentity, SelfTest};
pub use profile::{Contended, Contention, Profile, ProfileReport, ProfileSamples, ProfiledImage, Ticks};
pub use slabs::SlabsReport;
pub use sync::{SyncReport, SyncTotals};
pub use syscalls::{CallTotals, OtherCalls, SystemCallsReport};
pub use worker_waits::{WorkerTime, WorkerWaitsReport};

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// Counts by name, of one class or device.
pub type Counts = BTreeMap<String, i64>;

/// What one probe says of one segment: the struct of that probe, as the summary writes it.
#[derive(Clone)]
pub struct ProbeReport(Arc<dyn erased_serde::Serialize + Send + Sync>);

impl ProbeReport {
    /// Takes a probe's own struct, which begins with its [`ProbeStatus`].
    pub fn new(report: impl Serialize + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// That of a probe that may not be believed, or cannot be had.
    #[must_use]
    pub fn refused(reason: String, remedy: Option<String>) -> Self {
        let status = "refused".to_owned();
        Self::new(ProbeStatus { status, reason: Some(reason), remedy, absent: BTreeMap::new(), programs: None })
    }
}

impl Serialize for ProbeReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Debug for ProbeReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

/// What every report begins with: whether the probe may be believed, and how it is attached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeStatus {
    /// "on" or "refused".
    pub status: String,
    /// Why it was refused.
    pub reason: Option<String>,
    /// What would change that.
    pub remedy: Option<String>,
    /// Columns or parts that this kernel cannot tell, and why.
    pub absent: BTreeMap<String, String>,
    /// "tp_btf", "tracepoint", "perf_event"...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<String>,
}

impl ProbeStatus {
    /// That of a probe whose programs are attached as `programs` says.
    #[must_use]
    pub fn on(programs: &str) -> Self {
        let programs = Some(programs.to_owned());
        Self { status: "on".to_owned(), reason: None, remedy: None, absent: BTreeMap::new(), programs }
    }

    /// The same without some columns or parts, each with the reason.
    #[must_use]
    pub fn without(self, absent: BTreeMap<String, String>) -> Self {
        Self { absent, ..self }
    }
}

/// A watched file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// Major and minor number, as mountinfo has them.
    pub device: String,
    /// ext4, xfs, btrfs...
    #[serde(rename = "type")]
    pub kind: String,
}

/// What a probe's programs took during a segment, by the kernel's own accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// All of them, in nanoseconds, over the whole segment: scaled up from the part that was accounted.
    pub run_ns: u64,
    /// For how much of the segment the kernel accounted, in nanoseconds.
    pub accounted_ns: u64,
    /// The segment, in nanoseconds.
    pub segment_ns: u64,
    /// One by one.
    pub programs: Vec<ProgramCost>,
}

/// One program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How long in all.
    pub run_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Toy {
        #[serde(flatten)]
        status: ProbeStatus,
        seen: u64,
    }

    #[test]
    fn a_report_is_written_as_its_own_struct_after_its_status() {
        let absent = BTreeMap::from([("dreams".to_owned(), "nobody tells".to_owned())]);
        let report = ProbeReport::new(Toy { status: ProbeStatus::on("tp_btf").without(absent), seen: 3 });
        let expected = concat!(
            r#"{"status":"on","reason":null,"remedy":null,"absent":{"dreams":"nobody tells"},"#,
            r#""programs":"tp_btf","seen":3}"#
        );
        assert_eq!(serde_json::to_string(&report).unwrap(), expected);
        assert_eq!(format!("{report:?}"), expected);
    }

    #[test]
    fn a_refused_probe_says_why_and_nothing_else() {
        let report = ProbeReport::refused("no tracepoint".to_owned(), Some("take a newer kernel".to_owned()));
        let expected = r#"{"status":"refused","reason":"no tracepoint","remedy":"take a newer kernel","absent":{}}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), expected);
    }
}
