//! Scripts against the pgbench of this machine, and against the records of what pgbench 15 did (`tests/scripts`).
//!
//! With `PLIMSOLL_RECORD_SCRIPTS` set, what pgbench does is written to the records instead of compared with them.

mod files;
mod odds;
mod pipelines;
mod records;

use crate::server::Server;
use plimsoll_session::Session;
use plimsoll_target::postgres::{Mode, Protocol};
use plimsoll_workload::script::Scripts;
use std::path::PathBuf;
use std::sync::Arc;

/// A file of `tests/scripts`.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn is_recording() -> bool {
    std::env::var_os("PLIMSOLL_RECORD_SCRIPTS").is_some()
}

/// Opens `count` conversations of `scripts`.
fn open(server: &Server, scripts: Scripts, mode: Mode, retries_max: u32, count: u32) -> Vec<Box<dyn Session>> {
    server.open(&Arc::new(scripts), "public", (Protocol { mode, describe: false }, retries_max), count)
}
