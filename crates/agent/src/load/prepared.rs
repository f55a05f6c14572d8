//! A load whose sessions are open, whatever its target is.

use crate::failure::Failure;
use plimsoll_load::{Config, Control, EngineError, Outcomes, Tables};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is left to be done of it.
pub(super) struct Prepared {
    pub(super) name: &'static str,
    pub(super) kinds: Vec<String>,
    pub(super) facts: BTreeMap<String, Value>,
    /// Threads that carry it.
    pub(super) threads: u32,
    /// Whether what the server commits beside it can be told.
    pub(super) counts_commits: bool,
    pub(super) start: Start,
    /// What is done once its sessions are closed and its record is written.
    pub(super) conclude: Conclude,
}

/// Carries the segment with the driver that its sessions need.
pub(super) type Start = Box<dyn FnOnce(&Config, &Arc<Control>, Tables) -> Result<Outcomes, EngineError> + Send>;

pub(super) type Conclude = Box<dyn FnOnce() -> Result<(), Failure>>;
