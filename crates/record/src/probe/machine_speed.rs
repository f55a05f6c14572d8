//! What `machine_speed` says: how much is done in each beat, on which CPUs, and what that took.

use super::{Cost, ProbeStatus};
use crate::check::Check;
use serde::Serialize;

/// The report of the probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineSpeedReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Numbers of the CPUs that have rows in the series.
    pub cpus: Vec<usize>,
    /// From one beat of a CPU to its next.
    pub every_ms: u64,
    /// Of a beat, one after another.
    pub multiplications: u32,
    /// Of a beat, side by side.
    pub additions: u32,
    /// Of a beat, through the buffer.
    pub memory_steps: u32,
    /// The buffer's size.
    pub memory_bytes: u64,
    /// Of each page that the buffer lies on: what a step takes depends on it.
    pub memory_page_bytes: u64,
    /// Beats of the segment that were due and are not in the series: their thread came too late, or was not on its CPU.
    pub missed: u64,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// CPU time that its threads took.
    pub cost: Cost,
}
