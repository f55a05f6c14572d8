//! Workloads against a private PostgreSQL and its pgbench.

#![allow(clippy::unwrap_used)]

mod bank;
mod decision_support;
mod decision_support_refresh;
mod loader;
mod order_entry;
mod order_entry_data;
mod script;
mod server;
mod support;
mod wpi_orders;
