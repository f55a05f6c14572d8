//! PostgreSQL as it is seen from outside: its counters, its processes and its folders.

#[cfg(feature = "bpf")]
mod cluster;
mod counters;

#[cfg(feature = "bpf")]
pub(crate) use cluster::Cluster;
#[cfg(feature = "bpf")]
pub use cluster::{files, first_process, subject};
pub use counters::Counters;
