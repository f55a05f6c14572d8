//! What a workload on files is to the agent.

use crate::finish::Finish;
use crate::tree::{Tree, TreeError};
use plimsoll_record::{Check, Summary};
use plimsoll_session::{BlockingOpener, CompletionOpener};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A failed layout or check.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The folder is not the workload's to use.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A call on a file failed; the text names the file.
    #[error("{path}: {error}")]
    File {
        /// Below the folder.
        path: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The files are not what the workload needs, in a sentence.
    #[error("{0}")]
    Content(String),
}

/// How the sessions of a load are opened: the engine has a driver for each kind.
pub enum Sessions {
    /// Their calls block; each has a thread of its own.
    Blocking(Arc<dyn BlockingOpener>),
    /// They hand out operations for an io_uring; many are on a thread.
    Completion(Arc<dyn CompletionOpener>),
}

/// A workload on a folder. What transaction i does follows from the seed and i, or, where files are passed over in order, from how far
/// the session has come.
pub trait FileWorkload: Send + Sync {
    /// What requests and records call it.
    fn name(&self) -> &'static str;

    /// Names of the kinds of operation; [`plimsoll_session::Begun::kind`] is the place here.
    fn kinds(&self) -> Vec<String>;

    /// What belongs to the results beside the request.
    fn facts(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    /// Bytes of its files, as laid out; 0 where the load itself makes them.
    fn estimated_bytes(&self) -> u64;

    /// Of which class its files are to the probes, as the record calls it: "data", or "wal" of files that are logs.
    fn class(&self) -> &'static str {
        "data"
    }

    /// Descriptors that a session has open at most.
    fn descriptors(&self) -> u32 {
        1
    }

    /// Whether each session that blocks is to have a table of descriptors of its own, as a process has.
    fn own_descriptors(&self) -> bool {
        false
    }

    /// How many sessions it wants, where that is no choice of the request's: a phase of one process, a reader a file.
    fn clients(&self) -> Option<u32> {
        None
    }

    /// Makes the files that a load begins with, in a tree that has nothing in it yet. `tell` hears of the bytes done.
    ///
    /// # Errors
    /// When a file cannot be made.
    fn lay_out(&self, tree: &Tree, tell: &mut dyn FnMut(u64)) -> Result<(), FilesError>;

    /// How `clients` sessions are opened on `tree`. Where the work has an end of its own they tell it by `finish`.
    ///
    /// # Errors
    /// When the files are not there, or are not those of this workload.
    fn sessions(self: Arc<Self>, tree: &Arc<Tree>, clients: u32, finish: Finish) -> Result<Sessions, FilesError>;

    /// Keeps for the next segment what cannot be told from the files; every session has been closed.
    ///
    /// # Errors
    /// When it cannot be written.
    fn conclude(&self, _tree: &Tree) -> Result<(), FilesError> {
        Ok(())
    }

    /// Reads all files and says whether they hold what `segments` have written.
    ///
    /// # Errors
    /// When a file cannot be read at all.
    fn check(&self, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError>;
}
