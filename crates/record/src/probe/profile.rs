//! What `profile` says about itself; the stacks are in `profile.folded`.

use super::{Cost, ProbeStatus};
use crate::check::Check;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of `profile`. What is known only at the end is absent before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileReport {
    /// Whether it may be believed.
    #[serde(flatten)]
    pub status: ProbeStatus,
    /// Samples and waits that were not counted, by what was short; all 0, or the figures are lower bounds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// What was sampled on the CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Known stimuli and what was found of them.
    pub checks: Vec<Check>,
    /// What the probe itself took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The profile of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Samples a second on each CPU.
    pub hz: u32,
    /// How many samples there are of what.
    pub samples: ProfileSamples,
    /// Ticks of the clocks; absent where the kernel does not tell how long CPUs are idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<Ticks>,
    /// Files in which the server was when it was sampled outside of the kernel, those with most samples first.
    pub images: Vec<ProfiledImage>,
    /// CPU time of the agent for unwinding and counting, during the segment.
    pub agent_cpu_ns: u64,
    /// Waits for the kernel's own locks; absent if they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
}

/// Waits of the server's processes for the kernel's own locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contention {
    /// By the kind of lock.
    pub kinds: Vec<Contended>,
    /// By who wanted it, those with the longest waits first.
    pub sites: Vec<Contended>,
    /// How many there are, in `sites` or not.
    pub sites_known: u64,
}

/// Waits of one kind, or in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contended {
    /// Of the lock: "spinlock", "mutex", "rwsem read"...
    pub kind: String,
    /// The function that wanted it; empty in a sum over all of a kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Up to it, outermost first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack: String,
    /// How many.
    pub count: u64,
    /// How long in all.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Samples by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProfileSamples {
    /// Of processes of the server: the sum of the counts in `profile.folded`, but for what was lost.
    pub taken: u64,
    /// Of anything else that was on a CPU.
    pub others: u64,
    /// Of those taken, inside the kernel.
    pub in_kernel: u64,
    /// With a whole stack, down to where the process began; the others end early.
    pub complete: u64,
    /// Whose innermost function has a name.
    pub named: u64,
    /// The same, of those outside of the kernel.
    pub named_outside: u64,
    /// Different stacks.
    pub stacks: u64,
    /// Whether the kernel shows its functions' addresses.
    pub kernel_has_names: bool,
}

/// Ticks that were due while CPUs had something to do, and those that came, to 0.01 s of each CPU. The others fell into time
/// that the machine did not have its CPUs, of which it may have been told (`stolen_ns`) or not, or the kernel had stopped the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ticks {
    /// Time of all CPUs less that in which they were idle, by the machine's clock.
    pub busy_ns: u64,
    /// What the hypervisor says that it took of all CPUs.
    pub stolen_ns: u64,
    /// In `busy_ns`.
    pub due: u64,
    /// Samples of anything.
    pub came: u64,
}

/// A file whose code was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProfiledImage {
    /// As the process's memory map has it.
    pub path: String,
    /// What identifies this build of it.
    pub build_id: Option<String>,
    /// Where its functions' names come from: "debug file", "symbol table", "dynamic symbols" or "".
    pub symbols: String,
    /// Samples with their innermost function in it.
    pub samples: u64,
    /// Of those the ones whose innermost function has no name.
    pub unnamed: u64,
    /// What would name them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
