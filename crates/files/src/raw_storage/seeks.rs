//! The phase of seeks: some sessions, each with a descriptor of its own, go to chunks drawn from the seed, read them,
//! and write every tenth back.
//!
//! The fact that constrains it: two of them may be at one chunk. So a chunk is locked while it is read and written
//! back; that costs nothing where they meet seldom, and else a read could be of two versions.

use super::run::Run;
use super::stream::{retried, trouble, write_all};
use crate::passes::{Due, Lane, Moved, Trouble, Waker, close, file_name, refused};
use plimsoll_session::{Begun, BlockingSession, Buffer, Ending, Failure, Interrupt, Pause, SessionReport};
use rustix::fs::{SeekFrom, fsync, seek};
use rustix::io::{Errno, read};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, PoisonError};

/// One of the original's child processes.
pub(super) struct Seeker {
    run: Arc<Run>,
    /// Open from its thread's beginning on.
    file: Option<File>,
    /// Why it could not be opened.
    refused: Option<Failure>,
    lane: Lane,
    due: Option<Due>,
    /// The number of the seek.
    place: u64,
    buffer: Buffer,
}

impl Seeker {
    /// Opens the file once, to see that it can be.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn new(run: &Arc<Run>) -> Result<Self, Failure> {
        drop(run.open()?);
        let (lane, buffer) = (Lane::new(0, run.parameters.closings()), run.files.buffer());
        Ok(Self { file: None, refused: None, lane, due: None, place: 0, buffer, run: Arc::clone(run) })
    }

    /// Opens the file for itself, unless it is, on its own thread ([`Run::open`]).
    fn open_here(&mut self) {
        if self.file.is_none() && self.refused.is_none() {
            match self.run.open() {
                Ok(file) => self.file = Some(file),
                Err(failure) => self.refused = Some(failure),
            }
        }
    }

    fn must_be_open(&self) -> Result<&File, Trouble> {
        let why = || self.refused.clone().map_or_else(|| trouble("open", Errno::BADF), Trouble::Refused);
        self.file.as_ref().ok_or_else(why)
    }

    fn transfer(&mut self) -> (Moved, Result<bool, Trouble>) {
        let mut moved = Moved::default();
        let (run, chunk) = (Arc::clone(&self.run), self.run.chunk_of_seek(self.place));
        let lock = run.written_back(chunk);
        let result = match run.version_of_seek(self.place) {
            None => self.look(chunk, &lock.read().unwrap_or_else(PoisonError::into_inner), &mut moved),
            Some(version) => {
                let mut written_back = lock.write().unwrap_or_else(PoisonError::into_inner);
                self.look(chunk, &written_back, &mut moved).and_then(|is_compared| {
                    self.write_back(chunk, version)?;
                    written_back.insert(chunk, version);
                    moved.written = self.buffer.len() as u64;
                    Ok(is_compared)
                })
            }
        };
        (moved, result)
    }

    /// Goes to the chunk and reads it.
    fn look(&mut self, chunk: u64, written_back: &BTreeMap<u64, u64>, moved: &mut Moved) -> Result<bool, Trouble> {
        self.go_to(chunk)?;
        let Self { file: Some(file), lane, buffer, .. } = self else { return Err(trouble("read", Errno::BADF)) };
        let length = retried(|| {
            lane.calls += 1;
            read(&*file, &mut **buffer)
        })
        .map_err(|error| trouble("read", error))?;
        moved.read = length as u64;
        let expected = self.run.version_of(chunk, written_back);
        self.run.verify(chunk, &self.buffer[..length], || expected).map_err(Trouble::Wrong)
    }

    /// Goes there once more and writes it with another version.
    fn write_back(&mut self, chunk: u64, version: u64) -> Result<(), Trouble> {
        self.run.files.stamp(0, chunk, version, &mut self.buffer);
        self.go_to(chunk)?;
        let Self { file: Some(file), lane, buffer, .. } = self else { return Err(trouble("write", Errno::BADF)) };
        write_all(&*file, buffer, &mut lane.calls)
    }

    fn go_to(&mut self, chunk: u64) -> Result<(), Trouble> {
        self.lane.calls += 1;
        let to = SeekFrom::Start(self.run.files.offset(chunk));
        seek(self.must_be_open()?, to).map(drop).map_err(|error| trouble("lseek", error))
    }
}

impl BlockingSession for Seeker {
    fn pause(&mut self, _after: u64) -> Pause {
        self.open_here();
        self.lane.pause_or_rest(&self.run.progress)
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.open_here();
        self.due = self.lane.begin(&self.run.progress, index);
        if let Some(Due::Place(place)) = self.due {
            self.place = place;
        }
        Lane::begun(0, self.due, (1, self.run.parameters.closings()))
    }

    fn perform(&mut self) -> Ending {
        if let Some(Due::Closing(_)) = self.due {
            self.lane.calls += 1;
            let synced = self.file.as_ref().map_or(Err(Errno::BADF), fsync);
            let refused = synced.err().map(|error| refused(&file_name(0), "fsync", error));
            return self.lane.closed(&self.run.progress, refused);
        }
        let moved = self.transfer();
        self.lane.arrive(&self.run.progress, &moved.1);
        self.lane.end(moved)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(Arc::new(Waker(Arc::clone(&self.run))))
    }

    fn close(self: Box<Self>) -> SessionReport {
        let Self { run, file, lane, .. } = *self;
        if file.is_some_and(|file| close(file).is_err()) {
            run.progress.lose();
        }
        lane.close(&run.progress, true)
    }
}
