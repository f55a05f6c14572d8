//! What the agent's own process takes and may take.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use plimsoll_load::CpuNs;

/// CPUs that the agent may run on.
pub(crate) fn cpus_allowed() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// The most memory that the agent had resident; the kernel counts it in KiB.
pub(crate) fn memory_bytes_max() -> Option<u64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    u64::try_from(usage.max_rss()).ok().map(|kib| kib * 1024)
}

/// CPU time of this process so far.
pub(crate) fn cpu_ns() -> CpuNs {
    getrusage(UsageWho::RUSAGE_SELF).map_or(CpuNs::default(), |usage| CpuNs {
        user: usage.user_time().num_nanoseconds(),
        system: usage.system_time().num_nanoseconds(),
    })
}
