//! A pass under way: its files, its progress, and the order of each file's records.

use super::parameters::{Engine, Parameters, Pass};
use crate::finish::Finish;
use crate::passes::{Due, Files, HasProgress, Lane, Progress, Sequence, close, failed, file_name, refused};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_mapping::Mapping;
use plimsoll_session::{Begun, Buffer, Failure};
use rustix::fs::{OFlags, fadvise, fsync, ftruncate};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags, preadv2, pwrite};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// RWF_DONTCACHE of preadv2(2), from Linux 6.14 on.
pub(super) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// What the sessions of a pass share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) parameters: Parameters,
    pub(super) progress: Progress,
    pub(super) files: Files,
    sequences: Vec<Sequence>,
    /// Descriptors whose closing is no part of the pass: they are closed when it is over, and what is mapped with them.
    open: Mutex<Vec<(OwnedFd, Option<Mapping>)>>,
}

impl HasProgress for Run {
    fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Run {
    /// Makes the files anew of the pass that does so, and finds those of any other.
    ///
    /// # Errors
    /// When the files are not there, or not those that the pass needs, or cannot be made.
    pub(super) fn new(parameters: Parameters, tree: &Arc<Tree>, finish: Finish) -> Result<Self, FilesError> {
        let (shape, first) = (parameters.shape(), Pass::Write.name());
        let files = match parameters.pass {
            Pass::Write => Files::made_anew(tree, &shape, &first)?,
            _ => Files::found(tree, &shape, &first)?,
        };
        let order = |file| parameters.order(file, files.newest());
        let sequences = (0..shape.files).map(|file| Sequence::new(order(file), shape.seed, shape.records())).collect();
        let places = (shape.files, shape.records());
        let closes = !parameters.closings().is_empty();
        let progress = Progress::new(places, parameters.sessions(), parameters.stop, closes, finish);
        Ok(Self { parameters, progress, files, sequences, open: Mutex::default() })
    }

    /// Notes the pass if it writes. It is opened once before, so that one which is refused leaves no note.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub(super) fn note(&self) -> Result<(), FilesError> {
        match self.parameters.writes() {
            true => self.files.note(&self.parameters.pass.name(), 1),
            false => Ok(()),
        }
    }

    /// Opens the file of a process as the pass wants it.
    ///
    /// # Errors
    /// When the kernel refuses, naming the field that asked for what it cannot.
    pub(super) fn open(&self, file: u32) -> Result<OwnedFd, Failure> {
        let (name, parameters) = (file_name(file), &self.parameters);
        let opened = self.files.open(file, parameters.flags(file)).map_err(|error| {
            let failure = refused(&name, "open", error);
            let message = format!("workload.direct: {name}: this file system has no O_DIRECT");
            let is_direct = parameters.direct && error == Errno::INVAL;
            if is_direct { Failure { message, ..failure } } else { failure }
        })?;
        if let Some(advice) = parameters.advice.advice() {
            fadvise(&opened, 0, None, advice).map_err(|error| refused(&name, "posix_fadvise", error))?;
        }
        if parameters.uncached {
            self.try_uncached(file)?;
        }
        Ok(opened)
    }

    /// Takes a descriptor that a process is through with.
    pub(super) fn keep(&self, descriptor: OwnedFd, mapping: Option<Mapping>) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push((descriptor, mapping));
    }

    /// Maps the whole file of a process that is open, where the pass is by mapping: one that makes files gives them their length.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn mapped(&self, file: u32, descriptor: &OwnedFd) -> Result<Option<Mapping>, Failure> {
        let (name, parameters) = (file_name(file), &self.parameters);
        if parameters.engine != Engine::Mmap {
            return Ok(None);
        }
        let bytes = self.files.shape().file_bytes;
        if parameters.pass == Pass::Write {
            ftruncate(descriptor, bytes).map_err(|error| refused(&name, "ftruncate", error))?;
        }
        let length = usize::try_from(bytes).map_err(|_| refused(&name, "mmap", Errno::NOMEM))?;
        let mapping = Mapping::of(descriptor, length, parameters.is_writer(file));
        let mapping = mapping.map_err(|error| refused(&name, "mmap", error))?;
        if let Some(hint) = parameters.advice.of_mapping() {
            mapping.advise(hint).map_err(|error| refused(&name, "madvise", error))?;
        }
        Ok(Some(mapping))
    }

    /// Whether a file system has RWF_DONTCACHE only a read of it tells.
    fn try_uncached(&self, file: u32) -> Result<(), Failure> {
        let name = file_name(file);
        let readable = self.files.open(file, OFlags::RDONLY).map_err(|error| refused(&name, "open", error))?;
        match preadv2(&readable, &mut [IoSliceMut::new(&mut [0])], 0, DONTCACHE) {
            Ok(_) => Ok(()),
            Err(error) => {
                let needs =
                    "needs RWF_DONTCACHE: Linux 6.14 or later, and a file system that has it (ext4, XFS, btrfs)";
                let message = format!("workload.uncached: {name}: {needs}");
                Err(Failure { message, ..refused(&name, "preadv2", error) })
            }
        }
    }

    /// The record at a place of a file's order.
    #[inline]
    pub(super) fn record(&self, file: u32, place: u64) -> u64 {
        self.sequences[file as usize].record(place)
    }

    /// The version that this pass writes.
    fn version(&self) -> u64 {
        self.files.newest() + 1
    }

    /// Makes the buffer the record as this pass writes it.
    #[inline]
    pub(super) fn stamp(&self, file: u32, record: u64, buffer: &mut [u8]) {
        self.files.stamp(file, record, self.version(), buffer);
    }

    /// Compares what was read of a record with what the passes before have left there, or only its length where nothing is to
    /// be compared; gives whether it was.
    #[inline]
    pub(super) fn verify(&self, file: u32, record: u64, read: &[u8]) -> Result<bool, String> {
        match self.parameters.verify {
            true => self.files.verify(file, record, read, self.files.version(file, record)),
            false => self.files.must_be_whole(file, record, read),
        }
        .map(|()| self.parameters.verify)
    }

    /// Keeps how far the pass has come. One that makes the files and ended by its rule writes what is left of them, and
    /// all data reach the device: both are no part of the pass, as they are none of IOzone's.
    ///
    /// # Errors
    /// When the rest cannot be written, or a file does not reach the device.
    pub(super) fn conclude(&self) -> Result<(), FilesError> {
        for (descriptor, mapping) in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            drop(mapping);
            close(descriptor).map_err(|error| FilesError::Content(format!("a file of the pass: close: {error}")))?;
        }
        if !self.parameters.writes() {
            return Ok(());
        }
        let is_completed = self.parameters.pass == Pass::Write && self.progress.ended_well();
        let (shape, mut written) = (self.files.shape(), Vec::new());
        for file in (0..shape.files).filter(|&file| self.parameters.is_writer(file)) {
            // What failed, and a session that never came back, leaves the note that the pass was under way.
            let Some(mut reached) = self.progress.reached(file) else { return Ok(()) };
            let opened = self.files.open(file, OFlags::WRONLY).map_err(|error| failed(file, error))?;
            if is_completed {
                let left = (reached.given_out..shape.records()).chain(std::mem::take(&mut reached.given_back));
                self.write_rest(file, &opened, left)?;
                reached.given_out = shape.records();
            }
            fsync(&opened).map_err(|error| failed(file, error))?;
            written.push((file, reached));
        }
        self.files.conclude(self.version(), |history| {
            for (file, reached) in written {
                let order = self.parameters.order(file, self.files.newest());
                history.wrote(file, self.version(), order, reached);
            }
        })
    }

    fn write_rest(&self, file: u32, opened: &OwnedFd, left: impl Iterator<Item = u64>) -> Result<(), FilesError> {
        let mut buffer = self.buffer();
        for place in left {
            let record = self.record(file, place);
            self.stamp(file, record, &mut buffer);
            let (mut rest, mut offset) = (&buffer[..], self.files.offset(record));
            while !rest.is_empty() {
                match pwrite(opened, rest, offset) {
                    Ok(written) => (rest, offset) = (&rest[written..], offset + written as u64),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(failed(file, error)),
                }
            }
        }
        Ok(())
    }

    /// The answer to the engine of a session of a file.
    pub(super) fn begun(&self, file: u32, due: Option<Due>) -> Begun {
        let (parameters, kinds) = (&self.parameters, if self.parameters.pass == Pass::Mixed { 2 } else { 1 });
        Lane::begun(parameters.kind_of(file), due, (kinds, parameters.closings()))
    }

    /// A buffer for one record.
    pub(super) fn buffer(&self) -> Buffer {
        self.files.buffer()
    }

    /// Where a record begins.
    #[inline]
    pub(super) fn offset(&self, record: u64) -> u64 {
        self.files.offset(record)
    }
}
