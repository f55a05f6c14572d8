//! Workloads: the data, the operations, their mix, and the check of their answers.
//!
//! The fact that constrains it: what transaction i does is a pure function of (seed, i), and what a row holds of (seed,
//! table, key). So no thread and no clock is named here; whoever drives a session owns both, and any answer can be
//! checked without having been stored.
//!
//! - [`Workload`]: transactions as round trips on PostgreSQL; [`Conversation`] turns one into a session of the engine's.
//! - [`AnyWorkload`]: one of them as an object, as [`workload_of`] makes it of a request.
//! - [`plimsoll_files::FileWorkload`]: one on a folder instead of a server.
//! - [`DataSet`]: the tables, their rows, and the consistency check after a trial.
//! - [`bank`]: pgbench's tables and transactions.
//! - [`decision_support`]: the tables, queries and refresh functions of DBT-3, derived from TPC-H.
//! - [`order_entry`]: the order-entry workload derived from TPC-C.
//! - [`script`]: users' pgbench script files, run unchanged.
//! - [`wpi_orders`]: the order-entry workload of the WPI and EMC study of 2002.

mod any;
pub mod bank;
mod checks;
mod conversation;
mod data_set;
pub mod decision_support;
mod keys;
mod on_files;
mod on_web;
pub mod order_entry;
mod pages;
mod registry;
pub mod script;
mod workload;
pub mod wpi_orders;

pub use any::AnyWorkload;
pub use bank::Bank;
pub use conversation::{Conversation, ConversationOpener, failure_of};
pub use data_set::{DataSet, DataSetError, Event, Job, Listener, Loaded, Making, Stamp, drop_data, populate};
pub use keys::Keys;
pub use registry::workload_of;
pub use workload::{Expect, LedgerComparison, Next, RoundTrip, Statement, Workload};
