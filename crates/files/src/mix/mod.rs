//! The workload `files`: a small language for mixes of file operations of one's own.
//!
//! The fact that constrains it: what is read has to be what was written last, exactly, while others write the same blocks. So every
//! block has a version in a table of four bytes a block ([`versions`]), which goes from segment to segment ([`state`]).
//!
//! - [`request`]: the language. [`plan`]: what operation i does.
//! - [`places`]: files, names and lengths. [`streams`]: over all of them in order. [`live`]: all that sessions share. [`operator`]: what a session does around its calls.
//! - [`blocking`], [`completion`]: its calls. [`names`]: operations on names.
//! - [`layout`], [`check`]: before and after.

mod blocking;
mod check;
mod completion;
mod contested;
mod descriptors;
mod errno;
mod layout;
mod live;
mod names;
mod operator;
mod places;
mod plan;
mod report;
mod request;
mod state;
mod streams;
mod verify;
mod versions;

pub use request::Parameters;

use crate::finish::Finish;
use crate::tree::Tree;
use crate::workload::{FileWorkload, FilesError, Sessions};
use live::Live;
use plan::{Engine, Plan, Task};
use plimsoll_record::{Check, Summary};
use serde_json::{Value, json};
use state::State;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use versions::BLOCK;

/// Descriptors that a session has open beside those that it keeps: the tree's, and that of a directory or a new file.
const DESCRIPTORS_BESIDE: u32 = 2;

/// A mix of operations on a tree of files.
#[derive(Debug)]
pub struct Mix {
    plan: Arc<Plan>,
    /// Of the segment under way.
    live: Mutex<Option<Arc<Live>>>,
}

impl Mix {
    /// What requests and records call it.
    pub const NAME: &'static str = "files";

    /// A mix as a request has it.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        Ok(Self { plan: Arc::new(parameters.plan()?), live: Mutex::default() })
    }

    fn bytes(&self) -> u64 {
        (0..self.plan.count).map(|place| self.plan.laid_out_bytes(place)).sum()
    }
}

impl FileWorkload for Mix {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn kinds(&self) -> Vec<String> {
        self.plan.kinds.clone()
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        let bytes = self.bytes();
        BTreeMap::from([
            ("files".to_owned(), json!(self.plan.count)),
            ("bytes".to_owned(), json!(bytes)),
            ("version_table_bytes".to_owned(), json!(bytes / BLOCK * size_of::<u32>() as u64)),
        ])
    }

    fn estimated_bytes(&self) -> u64 {
        self.bytes()
    }

    /// A log is what is appended to and not written otherwise.
    fn class(&self) -> &'static str {
        let appends = self.plan.tasks.iter().any(|task| matches!(task, Task::Append { .. }));
        let writes = |task: &Task| matches!(task, Task::Write { .. } | Task::Create { .. });
        if appends && !self.plan.tasks.iter().any(writes) { "wal" } else { "data" }
    }

    fn descriptors(&self) -> u32 {
        let writes_through = self.plan.tasks.iter().any(|task| task.writes_through());
        operator::kept_max(2 * self.plan.count, writes_through) + DESCRIPTORS_BESIDE
    }

    fn lay_out(&self, tree: &Tree, tell: &mut dyn FnMut(u64)) -> Result<(), FilesError> {
        layout::lay_out(&self.plan, tree, tell)
    }

    fn sessions(self: Arc<Self>, tree: &Arc<Tree>, _clients: u32, _finish: Finish) -> Result<Sessions, FilesError> {
        let state = State::read(tree, &self.plan)?;
        if self.plan.changes_files() {
            State::begin(tree)?;
        }
        let (live, tree) = (Arc::new(Live::new(&self.plan, state)), Arc::clone(tree));
        if self.plan.streams.is_some() && live.streams.is_none() {
            let why = "needs the files as they were laid out, and some have come or gone: populate again";
            return Err(FilesError::Content(format!("workload.keys: \"sequential\" {why}")));
        }
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&live));
        Ok(match self.plan.engine {
            Engine::Sync => Sessions::Blocking(Arc::new(blocking::Opener { live, tree })),
            Engine::IoUring => Sessions::Completion(Arc::new(completion::Opener { live, tree })),
        })
    }

    fn conclude(&self, tree: &Tree) -> Result<(), FilesError> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(live) = live else { return Ok(()) };
        let closed = live.close();
        if self.plan.changes_files() {
            live.state().write(tree, &self.plan)?;
        }
        closed
    }

    fn check(&self, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
        check::check(&Live::new(&self.plan, State::read(tree, &self.plan)?), tree, segments)
    }
}
