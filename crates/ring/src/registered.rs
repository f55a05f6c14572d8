//! Files and buffers that the kernel was told of once, for as long as the ring lives.
//!
//! The fact that constrains it: the kernel names them by their places. A file is known again by its number, which no
//! other file can have while this one is kept open here; a buffer says itself in which place it is, and is believed by
//! its own ring alone.

use plimsoll_session::{Buffer, Keeper};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// What is registered with one ring.
#[derive(Default)]
pub(crate) struct Known {
    /// Open as long as they are registered.
    files: Vec<Arc<OwnedFd>>,
    /// The place of each, by the file's number.
    places: Vec<Option<u32>>,
    /// Has the memory of buffers that nobody else has any more.
    pub(crate) keeper: Arc<Keeper>,
}

impl Known {
    /// Takes files, each once, and gives their numbers in the order of their places.
    pub(crate) fn take(&mut self, files: Vec<Arc<OwnedFd>>) -> Vec<i32> {
        for file in files {
            let number = file.as_raw_fd() as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, None);
            }
            if self.places[number].is_none() {
                self.places[number] = Some(self.files.len() as u32);
                self.files.push(file);
            }
        }
        self.files.iter().map(|file| file.as_raw_fd()).collect()
    }

    /// The place of a file, if it has one.
    #[inline]
    pub(crate) fn file(&self, file: &OwnedFd) -> Option<u32> {
        self.places.get(file.as_raw_fd() as usize).copied().flatten()
    }

    /// The place of a buffer, if it has one.
    #[inline]
    pub(crate) fn buffer(&self, buffer: &Buffer) -> Option<u16> {
        buffer.fixed(&self.keeper)
    }
}

/// Why they cannot be registered, and what to do.
pub(crate) fn refused(what: &str, error: &io::Error) -> io::Error {
    let remedy = match Errno::from_io_error(error) {
        Some(Errno::NOMEM) => ": raise the limit of locked memory (ulimit -l), or register fewer and smaller ones",
        Some(Errno::MFILE) => ": raise the limit of open files (ulimit -n)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{what} cannot be registered with the io_uring: {error}{remedy}"))
}
