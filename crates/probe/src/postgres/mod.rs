//! PostgreSQL as it is seen from outside: its counters, its processes and its folders.

mod cluster;
mod counters;

#[cfg(feature = "bpf")]
pub(crate) use cluster::Cluster;
pub use cluster::{files, first_process, subject};
pub use counters::Counters;
