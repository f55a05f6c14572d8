//! IOzone's passes over files, one a process: each pass is a segment of its own.
//!
//! The fact that constrains it: a pass ends itself. A place in its order, not the engine's index, says which record is
//! next, so that no record is moved twice and none is left out, whatever the schedule; and the first process that is
//! through stops the others, as in IOzone's throughput mode, where the slowest one's transfer says how even they were.
//!
//! Like it and not comparable to published results: what was written is verified when it is read, with the cost of that
//! in the time, unless it is asked not to be; the processes are threads, which share a table of descriptors; after the stop of a pass that makes the
//! files what is left of them is written, and fsync and close come, outside of the time, unless they are asked for in
//! it: then each is an operation of its own, of every file, also of those whose process was stopped. Files are opened
//! before the time, by either engine.

mod blocking;
mod completion;
mod parameters;
mod run;

use crate::finish::Finish;
use crate::passes::check_files;
use crate::tree::Tree;
use crate::workload::{FileWorkload, FilesError, Sessions};
use completion::Depth;
use parameters::Engine;
use plimsoll_record::{Check, Summary};
use plimsoll_session::Failure;
use run::Run;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use parameters::Parameters;

/// IOzone's passes.
#[derive(Debug)]
pub struct SequentialIo {
    parameters: Parameters,
    /// The pass under way.
    run: Mutex<Option<Arc<Run>>>,
}

impl SequentialIo {
    /// What requests call it.
    pub const NAME: &'static str = "sequential_io";

    /// One pass of it.
    ///
    /// # Errors
    /// A sentence that names the field which is wrong.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        parameters.validate()?;
        Ok(Self { parameters: parameters.clone(), run: Mutex::default() })
    }
}

impl FileWorkload for SequentialIo {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn kinds(&self) -> Vec<String> {
        let closings = self.parameters.closings().iter().map(|closing| closing.name().to_owned());
        self.parameters.kinds().into_iter().chain(closings).collect()
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        let shape = self.parameters.shape();
        let records = u64::from(shape.files) * shape.records();
        let of_file = |file| {
            let name = self.parameters.kinds()[usize::from(self.parameters.kind_of(file))].clone();
            let moved = if self.parameters.is_writer(file) { "written" } else { "read" };
            (name, json!({moved: shape.record_bytes}))
        };
        let bytes_each: BTreeMap<_, _> = (0..shape.files.min(2)).map(of_file).collect();
        let facts = [
            ("pass", json!(self.parameters.pass)),
            ("engine", json!(self.parameters.engine)),
            // Of each file, whose sessions are all on one ring where there are as many threads as processes.
            ("depth", json!(self.parameters.depth)),
            ("depth_of", json!("each file")),
            ("processes", json!(shape.files)),
            ("records_planned", json!(records)),
            ("bytes_planned", json!(records * shape.record_bytes)),
            ("bytes_each", json!(bytes_each)),
            ("verified", json!(self.parameters.verify)),
            ("closings", json!(self.parameters.closings().iter().map(|closing| closing.name()).collect::<Vec<_>>())),
        ];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn estimated_bytes(&self) -> u64 {
        0
    }

    fn clients(&self) -> Option<u32> {
        Some(self.parameters.sessions())
    }

    fn lay_out(&self, _tree: &Tree, _tell: &mut dyn FnMut(u64)) -> Result<(), FilesError> {
        Ok(())
    }

    fn sessions(self: Arc<Self>, tree: &Arc<Tree>, _clients: u32, finish: Finish) -> Result<Sessions, FilesError> {
        let run = Arc::new(Run::new(self.parameters.clone(), tree, finish)?);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&run));
        let refused = |failure: Failure| FilesError::Content(failure.message);
        let sessions = match self.parameters.engine {
            Engine::Sync | Engine::Mmap => {
                (0..self.parameters.processes).try_for_each(|file| run.open(file).map(drop)).map_err(refused)?;
                Sessions::Blocking(Arc::new(blocking::Processes(Arc::clone(&run))))
            }
            Engine::IoUring => Sessions::Completion(Arc::new(Depth::new(Arc::clone(&run)).map_err(refused)?)),
        };
        run.note()?;
        Ok(sessions)
    }

    fn conclude(&self, _tree: &Tree) -> Result<(), FilesError> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        run.map_or(Ok(()), |run| run.conclude())
    }

    fn check(&self, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
        check_files(tree, segments)
    }
}
