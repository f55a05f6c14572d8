//! The files of a pass: made anew or as the passes before have left them, with what every record of them holds.

use super::history::{History, Known, Shape};
use super::names::file_name;
use crate::stamp::{Stamps, VERSION_MAX};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_session::Buffer;
use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The files, and what is known of them before the pass.
#[derive(Debug)]
pub(crate) struct Files {
    tree: Arc<Tree>,
    history: History,
    known: Vec<Known>,
    stamps: Vec<Stamps>,
}

impl Files {
    /// New files without anything in them, in place of those that there are; `pass` is noted.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(crate) fn made_anew(tree: &Arc<Tree>, shape: &Shape, pass: &str) -> Result<Self, FilesError> {
        let before = History::load(tree)?;
        let there = before.as_ref().map_or(0, |before| before.shape.files);
        let mut history = History::new(shape.clone());
        // A version that was in a file before cannot be taken for one of this pass.
        history.newest = before.map_or(0, |before| before.newest);
        must_have_versions(&history)?;
        for file in 0..there.max(shape.files) {
            match unlinkat(tree.data(), file_name(file), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(file, error)),
            }
        }
        // Where the disk is full there is room for the note now.
        history.note(tree, pass, 1)?;
        for file in 0..shape.files {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            tree.file(&file_name(file), flags).map_err(|error| failed(file, error))?;
        }
        Ok(Self::of(tree, history))
    }

    /// Those that the pass `first` has made.
    ///
    /// # Errors
    /// When they are not there, or are others, or nobody knows what is in them.
    pub(crate) fn found(tree: &Arc<Tree>, shape: &Shape, first: &str) -> Result<Self, FilesError> {
        let history = History::ready(tree, shape, first)?;
        must_have_versions(&history)?;
        Ok(Self::of(tree, history))
    }

    fn of(tree: &Arc<Tree>, history: History) -> Self {
        let stamps = (0..history.shape.files).map(|file| Stamps::of_file(history.shape.seed, u64::from(file)));
        Self { tree: Arc::clone(tree), known: history.known(), stamps: stamps.collect(), history }
    }

    /// Notes that `pass` is about to write so many versions.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn note(&self, pass: &str, versions: u64) -> Result<(), FilesError> {
        self.history.note(&self.tree, pass, versions)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn open(&self, file: u32, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.tree.file(&file_name(file), flags)
    }

    /// What they are.
    pub(crate) fn shape(&self) -> &Shape {
        &self.history.shape
    }

    /// The newest version before the pass.
    pub(crate) fn newest(&self) -> u64 {
        self.history.newest
    }

    /// Where a record begins.
    #[inline]
    pub(crate) fn offset(&self, record: u64) -> u64 {
        record * self.history.shape.record_bytes
    }

    /// A buffer for one record.
    pub(crate) fn buffer(&self) -> Buffer {
        Buffer::zeroed(self.history.shape.record_bytes as usize)
    }

    /// Makes the buffer the record of a version.
    #[inline]
    pub(crate) fn stamp(&self, file: u32, record: u64, version: u64, buffer: &mut [u8]) {
        self.stamps[file as usize].write(buffer, self.offset(record), version);
    }

    /// The version that the passes before have left in a record.
    #[inline]
    pub(crate) fn version(&self, file: u32, record: u64) -> u64 {
        self.known[file as usize].version(record)
    }

    /// Compares no more than how long what was read of a record is.
    ///
    /// # Errors
    /// How much of it there is, in a sentence.
    #[inline]
    pub(crate) fn must_be_whole(&self, file: u32, record: u64, read: &[u8]) -> Result<(), String> {
        let wanted = self.history.shape.record_bytes as usize;
        let is = || format!("{}, byte {}: {} bytes read of {wanted}", file_name(file), self.offset(record), read.len());
        (read.len() >= wanted).then_some(()).ok_or_else(is)
    }

    /// Compares what was read of a record with the version that it holds.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    #[inline]
    pub(crate) fn verify(&self, file: u32, record: u64, read: &[u8], expected: u64) -> Result<(), String> {
        self.must_be_whole(file, record, read)?;
        let offset = self.offset(record);
        match self.stamps[file as usize].read(read, offset) {
            Ok(version) if version == expected => Ok(()),
            Ok(version) => {
                let name = file_name(file);
                Err(format!("{name}, byte {offset}: version {version}, and {expected} was written there"))
            }
            Err(wrong) => Err(format!("{}: {wrong}", file_name(file))),
        }
    }

    /// Keeps what `note` says of the passes so far with this one, up to version `newest`.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn conclude(&self, newest: u64, note: impl FnOnce(&mut History)) -> Result<(), FilesError> {
        let mut history = self.history.clone();
        note(&mut history);
        history.newest = newest;
        history.store(&self.tree)
    }
}

fn must_have_versions(history: &History) -> Result<(), FilesError> {
    // A phase may take as many as it has operations.
    let why = || format!("{} versions have been written: drop the files and begin anew", history.newest);
    (history.newest < VERSION_MAX / 2).then_some(()).ok_or_else(|| FilesError::Content(why()))
}

/// A call on a file that failed.
pub(crate) fn failed(file: u32, error: Errno) -> FilesError {
    FilesError::File { path: file_name(file), error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_whole_and_of_the_version_that_was_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Arc::new(Tree::create(folder.path(), "toy").unwrap());
        let shape = Shape { seed: 1, files: 2, file_bytes: 40_960, record_bytes: 4_096 };
        let files = Files::made_anew(&tree, &shape, "write").unwrap();
        let record = |version| {
            let mut buffer = files.buffer();
            files.stamp(1, 3, version, &mut buffer);
            buffer
        };
        let said = |read: &[u8]| files.verify(1, 3, read, 2).unwrap_err();
        assert_eq!(files.verify(1, 3, &record(2), 2), Ok(()));
        assert_eq!(said(&record(1)), "file.0001, byte 12288: version 1, and 2 was written there");
        assert_eq!(said(&record(3)), "file.0001, byte 12288: version 3, and 2 was written there");
        assert_eq!(said(&record(2)[..2_048]), "file.0001, byte 12288: 2048 bytes read of 4096");
        assert_eq!(said(&[]), "file.0001, byte 12288: 0 bytes read of 4096");
        assert_eq!(files.must_be_whole(1, 3, &record(1)), Ok(()), "whichever version it is");
        assert_eq!(files.must_be_whole(1, 3, &record(2)[..512]), Err(said(&record(2)[..512])));
        let torn = [&record(2)[..1_024], &record(1)[1_024..]].concat();
        assert_eq!(said(&torn), "file.0001: torn at byte 13312: version 2 before, 1 there");
    }
}
