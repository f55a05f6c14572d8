//! Workloads: the data, the operations, their mix, and the check of their answers.
//!
//! The fact that constrains it: what transaction i does is a pure function of (seed, i), and what a row holds of (seed,
//! table, key). So no thread and no clock is named here; whoever drives a [`Session`] owns both, and any answer can be
//! checked without having been stored.
//!
//! - [`Session`]: a conversation that performs transaction i, as the engine sees it; names no database.
//! - [`Workload`]: transactions as round trips on PostgreSQL; [`Conversation`] turns one into a [`Session`].
//! - [`DataSet`]: the tables, their rows, and the consistency check after a trial.
//! - [`wpi_orders`]: the order-entry workload of the WPI and EMC study of 2002.

mod conversation;
mod data_set;
mod session;
pub mod wpi_orders;

pub use conversation::{Conversation, Expect, RoundTrip, Workload};
pub use data_set::{DataSet, DataSetError, ForeignKey, Loaded, Stamp, populate, require_stamp};
pub use session::{Begun, Ending, Failure, Progress, Ready, Session, SessionReport};

/// A statement of a workload, for people and for `describe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Statement {
    /// What it is called in reports.
    pub name: &'static str,
    /// Its text, with `$1`... for parameters.
    pub sql: &'static str,
}
