//! A phase under way: its file, its progress, and what the seekers have written back.

use super::parameters::{Parameters, Phase};
use crate::finish::Finish;
use crate::passes::{Files, HasProgress, Layer, Order, Progress, Stop, file_name, refused};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_keys::Words;
use plimsoll_session::Failure;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, PoisonError, RwLock};

/// Chunks of one remainder share a lock; one is held while its chunk is read or written back, so that nobody reads half
/// of each.
const LOCKS: u64 = 1_024;
/// Tells the draws of seeks from others of the seed.
const SEEKS: u64 = 0x7365_656b;

/// Versions of chunks that this phase has written back.
pub(super) type WrittenBack = RwLock<BTreeMap<u64, u64>>;

/// What the sessions of a phase share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) parameters: Parameters,
    pub(super) progress: Progress,
    pub(super) files: Files,
    written_back: Vec<WrittenBack>,
}

impl HasProgress for Run {
    fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Run {
    /// Makes the file anew for a phase that begins so, and finds it for any other; notes a phase that writes.
    ///
    /// # Errors
    /// When the file is not there, or is another, or cannot be made.
    pub(super) fn new(parameters: Parameters, tree: &Arc<Tree>, finish: Finish) -> Result<Self, FilesError> {
        let (shape, phase) = (parameters.shape(), parameters.phase);
        let files = if phase.is_fresh() {
            Files::made_anew(tree, &shape, phase.name())?
        } else {
            Files::found(tree, &shape, Phase::Write.name())?
        };
        match phase {
            Phase::Rewrite => files.note(phase.name(), 1)?,
            Phase::Seeks => files.note(phase.name(), parameters.seeks)?,
            _ => {}
        }
        let (places, closes) = ((1, parameters.operations()), !parameters.closings().is_empty());
        let progress = Progress::new(places, parameters.sessions(), Stop::First, closes, finish);
        let written_back = (0..LOCKS).map(|_| RwLock::default()).collect();
        Ok(Self { parameters, progress, files, written_back })
    }

    /// Opens the file anew, as each phase does. Sessions do so on their own threads, each of which has a table of descriptors to
    /// itself: then nobody else has the open file, and no call on it counts references or takes the lock of its position, as
    /// none does in the original's processes.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn open(&self) -> Result<File, Failure> {
        let flags = match self.parameters.phase {
            Phase::Putc | Phase::Write => OFlags::WRONLY,
            Phase::Getc | Phase::Read => OFlags::RDONLY,
            Phase::Rewrite | Phase::Seeks => OFlags::RDWR,
        };
        self.files.open(0, flags).map(File::from).map_err(|error| refused(&file_name(0), "open", error))
    }

    /// The version that a phase over the whole file writes.
    pub(super) fn version(&self) -> u64 {
        self.files.newest() + 1
    }

    /// The chunk that seek number `place` goes to.
    pub(super) fn chunk_of_seek(&self, place: u64) -> u64 {
        Words::new(self.parameters.seed, SEEKS, place).below(0, self.files.shape().records())
    }

    /// The version that seek number `place` writes back, if it is one that does.
    pub(super) fn version_of_seek(&self, place: u64) -> Option<u64> {
        place.is_multiple_of(self.parameters.update_every).then_some(self.version() + place)
    }

    /// What has been written back to chunks that share the lock of this one.
    pub(super) fn written_back(&self, chunk: u64) -> &WrittenBack {
        &self.written_back[(chunk % LOCKS) as usize]
    }

    /// The version that a chunk holds, given what this phase has written back.
    pub(super) fn version_of(&self, chunk: u64, written_back: &BTreeMap<u64, u64>) -> u64 {
        written_back.get(&chunk).copied().unwrap_or_else(|| self.files.version(0, chunk))
    }

    /// Compares what was read of a chunk with the version that is to be there, or only its length where nothing is to be
    /// compared; gives whether it was.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    #[inline]
    pub(super) fn verify(&self, chunk: u64, read: &[u8], expected: impl FnOnce() -> u64) -> Result<bool, String> {
        match self.parameters.verify {
            true => self.files.verify(0, chunk, read, expected()),
            false => self.files.must_be_whole(0, chunk, read),
        }
        .map(|()| self.parameters.verify)
    }

    /// Keeps how far the phase has come.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn conclude(&self) -> Result<(), FilesError> {
        // What failed, and a session that never came back, leaves the note that the phase was under way.
        let Some(reached) = self.progress.reached(0) else { return Ok(()) };
        match self.parameters.phase {
            Phase::Getc | Phase::Read => Ok(()),
            Phase::Putc | Phase::Rewrite | Phase::Write => {
                self.files.conclude(self.version(), |history| history.wrote(0, self.version(), Order::Forward, reached))
            }
            Phase::Seeks => {
                let of_lock = |lock: &WrittenBack| lock.read().unwrap_or_else(PoisonError::into_inner).clone();
                let records: BTreeMap<u64, u64> = self.written_back.iter().flat_map(of_lock).collect();
                let newest = self.files.newest() + self.parameters.seeks;
                self.files.conclude(newest, |history| history.files[0].push(Layer::Records(records)))
            }
        }
    }
}
