//! Bonnie's six phases over one file, in its order: putc, rewrite, write, getc, read, seeks; each is a segment of its
//! own, and opens the file anew.
//!
//! The fact that constrains it: the calls are the original's. Chunks are moved by lseek, read and write on a descriptor
//! with its own position; time ends with the close, which no fsync precedes unless it is asked for, so that a small
//! file measures the cache. What differs: what was written is verified when it is read, with the cost of that in the
//! time, unless it is asked not to be; the seekers are threads, each with a table of descriptors of its
//! own as the original's processes have; and which seeks write back is counted over all of
//! them, so that there are as many each time.
//!
//! The same phases and not comparable to published results.

mod characters;
mod parameters;
mod run;
mod seeks;
mod stream;

use crate::finish::Finish;
use crate::passes::check_files;
use crate::tree::Tree;
use crate::workload::{FileWorkload, FilesError, Sessions};
use parameters::Phase;
use plimsoll_record::{Check, Summary};
use plimsoll_session::{BlockingOpener, BlockingSession, Failure};
use run::Run;
use seeks::Seeker;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use stream::Stream;

pub use parameters::Parameters;

/// Bonnie's phases.
#[derive(Debug)]
pub struct RawStorage {
    parameters: Parameters,
    /// The phase under way.
    run: Mutex<Option<Arc<Run>>>,
}

impl RawStorage {
    /// What requests call it.
    pub const NAME: &'static str = "raw_storage";

    /// One phase of it.
    ///
    /// # Errors
    /// A sentence that names the field which is wrong.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        parameters.validate()?;
        Ok(Self { parameters: parameters.clone(), run: Mutex::default() })
    }
}

impl FileWorkload for RawStorage {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn kinds(&self) -> Vec<String> {
        let closings = self.parameters.closings().iter().map(|closing| closing.name());
        std::iter::once(self.parameters.phase.name()).chain(closings).map(str::to_owned).collect()
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        let (phase, shape) = (self.parameters.phase, self.parameters.shape());
        let (reads, writes) = phase.moves();
        // Of the seeks some write back as well, which these do not say.
        let each = [("read", reads), ("written", writes)].into_iter().filter(|(_, moves)| *moves);
        let each: Map<_, _> = each.map(|(moved, _)| (moved.to_owned(), json!(shape.record_bytes))).collect();
        let facts = [
            ("phase", json!(phase)),
            ("chunk_bytes", json!(shape.record_bytes)),
            ("file_bytes", json!(shape.file_bytes)),
            ("records_planned", json!(self.parameters.operations())),
            ("bytes_planned", json!(self.parameters.operations() * shape.record_bytes)),
            ("bytes_each", json!({phase.name(): each})),
            ("descriptor_table", json!("one of each session")),
            ("verified", json!(self.parameters.verify)),
            ("closings", json!(self.parameters.closings().iter().map(|closing| closing.name()).collect::<Vec<_>>())),
        ];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn estimated_bytes(&self) -> u64 {
        0
    }

    /// The original's are processes.
    fn own_descriptors(&self) -> bool {
        true
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
        Ok(Sessions::Blocking(Arc::new(Opener(run))))
    }

    fn conclude(&self, _tree: &Tree) -> Result<(), FilesError> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        run.map_or(Ok(()), |run| run.conclude())
    }

    fn check(&self, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
        check_files(tree, segments)
    }
}

struct Opener(Arc<Run>);

impl BlockingOpener for Opener {
    fn open(&self, _number: u32) -> Result<Box<dyn BlockingSession>, Failure> {
        let Self(run) = self;
        Ok(match run.parameters.phase {
            Phase::Seeks => Box::new(Seeker::new(run)?),
            _ => Box::new(Stream::new(run)?),
        })
    }
}
