//! What watches while the load runs: the host's /proc, the devices, the control group, the server's own counters.
//!
//! The fact that constrains it: raw and as the kernel gives it. A probe says once which columns this machine has; a sample
//! that cannot be read later is [`plimsoll_record::ABSENT_SAMPLE`], never 0.
//!
//! Cost: a sample of all four takes well under a millisecond of CPU (`cargo test -p plimsoll-probe -- --ignored cost`).

#[cfg(feature = "bpf")]
pub mod block;
#[cfg(feature = "bpf")]
mod bpf;
#[cfg(feature = "bpf")]
pub mod breakdown;
#[cfg(feature = "bpf")]
mod buffer_heads;
mod columns;
mod device;
#[cfg(feature = "bpf")]
pub mod file_waits;
pub mod folders;
mod group;
mod host;
mod kernel_log;
mod kernel_memory;
mod machine_speed;
pub mod nfs_calls;
#[cfg(feature = "bpf")]
pub mod page_cache;
pub mod postgres;
pub mod postgres_waits;
#[cfg(feature = "bpf")]
pub mod profile;
mod refusal;
mod self_test;
mod subject;
#[cfg(feature = "bpf")]
pub mod sync;
#[cfg(feature = "bpf")]
pub mod syscalls;
mod text;
#[cfg(feature = "bpf")]
mod throttle;

#[cfg(feature = "bpf")]
pub use buffer_heads::BufferHeads;
pub use device::Devices;
pub use group::{Group, GroupPaths};
pub use host::Host;
pub use kernel_log::KernelLog;
pub use kernel_memory::{KernelMemory, Slabs};
pub use machine_speed::MachineSpeed;
pub use refusal::Refusal;
pub use subject::Subject;
#[cfg(feature = "bpf")]
pub use throttle::Throttle;

use plimsoll_record::ProbeReport;

/// A probe cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file that every machine of ours has.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The request names something that is not there.
    #[error("{0}")]
    Unknown(String),
    /// The server.
    #[error("the server's counters: {0}")]
    Server(#[from] plimsoll_target::postgres::Error),
}

/// Samples one row of a series.
pub trait Probe: Send {
    /// The columns after `t_ns`, fixed for the probe's life.
    fn columns(&self) -> Vec<&'static str>;

    /// Calls `row` with each row of one sample (one, or one a device).
    fn sample(&mut self, row: &mut dyn FnMut(&[i64]));

    /// What a probe in the kernel says about itself and its segment, after the last sample; others have nothing to say.
    fn report(&mut self) -> Option<ProbeReport> {
        None
    }
}
