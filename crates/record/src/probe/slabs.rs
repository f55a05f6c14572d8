//! What `slabs` says: the names of the kernel's caches, which its series has by their places.

use super::ProbeStatus;
use serde::Serialize;

/// The report of the probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlabsReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Names of the caches; `slab` of the series is the place here.
    pub slabs: Vec<String>,
    /// A cache that never took so much is in no row.
    pub bytes_min: u64,
}
