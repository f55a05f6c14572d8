//! A load whose sessions are open, whatever its target is.

use crate::failure::Failure;
use plimsoll_load::{Config, Control, EngineError, Outcomes, Tables};
use plimsoll_target::postgres::Protocol;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What is asked of its sessions.
pub(crate) struct Wanted<'a> {
    pub(crate) clients: u32,
    pub(crate) threads: u32,
    /// How statements are sent, where there are any.
    pub(crate) protocol: Protocol,
    pub(crate) retries_max: u32,
    /// Where the record goes.
    pub(crate) out: &'a Path,
    /// Of the segment, once that is to begin.
    pub(crate) end: &'a Arc<OnceLock<Arc<Control>>>,
}

/// What is left to be done of it.
pub(crate) struct Prepared {
    pub(crate) name: &'static str,
    pub(crate) kinds: Vec<String>,
    pub(crate) facts: BTreeMap<String, Value>,
    /// Threads that carry it.
    pub(crate) threads: u32,
    /// Whether what the server commits beside it can be told.
    pub(crate) counts_commits: bool,
    pub(crate) start: Start,
    /// What is done once its sessions are closed and its record is written.
    pub(crate) conclude: Conclude,
}

/// Carries the segment with the driver that its sessions need.
pub(crate) type Start = Box<dyn FnOnce(&Config, &Arc<Control>, Tables) -> Result<Outcomes, EngineError> + Send>;

pub(crate) type Conclude = Box<dyn FnOnce() -> Result<(), Failure>>;
