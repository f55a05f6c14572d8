//! The files that a session has open: each is opened once and kept, up to a bound; then the one that was used longest ago goes.
//!
//! The fact that constrains it: other sessions remove files and make new ones in their places, at any time that the session does not
//! use the place. So a kept file says which of its place it is, and is found for that one alone.

use crate::passes::close;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// No session keeps more.
pub(super) const KEPT_MAX: u32 = 512;

#[derive(Debug)]
struct Kept {
    key: u64,
    /// Which file of its place it is.
    incarnation: u32,
    used: u64,
    file: Arc<OwnedFd>,
}

/// Open files by number.
#[derive(Debug)]
pub(super) struct Descriptors {
    bound: usize,
    kept: Vec<Kept>,
    by_key: HashMap<u64, usize>,
    uses: u64,
    last: usize,
    /// The first error of a close.
    failed: Option<Errno>,
}

/// What a descriptor is opened for: a file may be open for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    WriteThrough,
    /// Where the file system is read-only.
    Read,
}

impl Access {
    pub(super) const ALL: [Self; 3] = [Self::Write, Self::WriteThrough, Self::Read];
}

/// The key of a place's file.
#[inline]
pub(super) fn key(place: u32, access: Access) -> u64 {
    u64::from(place) << 2 | access as u64
}

impl Descriptors {
    /// Keeps at most so many, 1 or more.
    pub(super) fn new(bound: u32) -> Self {
        let bound = bound.max(1) as usize;
        let (kept, by_key) = (Vec::with_capacity(bound), HashMap::with_capacity(bound));
        Self { bound, kept, by_key, uses: 0, last: 0, failed: None }
    }

    /// Whether so many are kept and none has to go for another.
    pub(super) fn has_room_for(&self, files: u64) -> bool {
        files <= self.bound as u64
    }

    /// Closes one. A file server may say here first that it has not taken what was written.
    fn shut(&mut self, kept: Kept) {
        if let Some(Err(error)) = Arc::into_inner(kept.file).map(close) {
            self.failed.get_or_insert(error);
        }
    }

    /// Finds an open file. One that its place had before is closed instead.
    #[inline]
    pub(super) fn find(&mut self, key: u64, incarnation: u32) -> Option<usize> {
        self.uses += 1;
        match self.kept.get_mut(self.last) {
            Some(kept) if kept.key == key && kept.incarnation == incarnation => {
                kept.used = self.uses;
                Some(self.last)
            }
            _ => self.find_another(key, incarnation),
        }
    }

    /// One that was not found last.
    fn find_another(&mut self, key: u64, incarnation: u32) -> Option<usize> {
        let at = *self.by_key.get(&key)?;
        self.last = at;
        if self.kept[at].incarnation != incarnation {
            self.close(key);
            return None;
        }
        self.kept[at].used = self.uses;
        Some(at)
    }

    /// The file that was found.
    #[inline]
    pub(super) fn file(&self, at: usize) -> &Arc<OwnedFd> {
        &self.kept[at].file
    }

    /// Keeps a file that was opened.
    pub(super) fn keep(&mut self, key: u64, incarnation: u32, file: OwnedFd) -> usize {
        let kept = Kept { key, incarnation, used: self.uses, file: Arc::new(file) };
        let at = if self.kept.len() < self.bound {
            self.kept.push(kept);
            self.kept.len() - 1
        } else {
            let oldest = (0..self.kept.len()).min_by_key(|&at| self.kept[at].used).unwrap_or(0);
            self.by_key.remove(&self.kept[oldest].key);
            let gone = std::mem::replace(&mut self.kept[oldest], kept);
            self.shut(gone);
            oldest
        };
        self.by_key.insert(key, at);
        self.last = at;
        at
    }

    /// Closes a file.
    pub(super) fn close(&mut self, key: u64) {
        if let Some(at) = self.by_key.remove(&key) {
            let gone = self.kept.swap_remove(at);
            self.shut(gone);
            if let Some(moved) = self.kept.get(at) {
                self.by_key.insert(moved.key, at);
            }
        }
    }

    /// Closes all of them.
    pub(super) fn close_all(&mut self) {
        self.by_key.clear();
        std::mem::take(&mut self.kept).into_iter().for_each(|kept| self.shut(kept));
    }

    /// Closes all of them for good.
    ///
    /// # Errors
    /// The first that any close has ended with.
    pub(super) fn end(mut self) -> Result<(), Errno> {
        self.close_all();
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    #[test]
    fn the_one_used_longest_ago_goes() {
        let mut descriptors = Descriptors::new(3);
        for key in 1..=3 {
            assert_eq!(descriptors.find(key, 0), None);
            descriptors.keep(key, 0, file());
        }
        assert!(descriptors.find(1, 0).is_some());
        descriptors.keep(4, 0, file());
        assert!(descriptors.find(2, 0).is_none(), "1 has been used since");
        assert!([1, 3, 4].iter().all(|&key| descriptors.find(key, 0).is_some()));
        assert_eq!(descriptors.kept.len(), 3);
    }

    #[test]
    fn others_are_found_after_one_was_closed() {
        let mut descriptors = Descriptors::new(3);
        for key in 1..=3 {
            descriptors.keep(key, 0, file());
        }
        descriptors.close(1);
        descriptors.close(9);
        for key in [2, 3] {
            let at = descriptors.find(key, 0).unwrap();
            assert_eq!(descriptors.kept[at].key, key);
        }
        assert_eq!((descriptors.find(1, 0), descriptors.kept.len()), (None, 2));
        descriptors.close_all();
        assert_eq!(descriptors.find(2, 0), None);
    }

    #[test]
    fn the_file_that_a_place_had_before_is_closed_and_not_found() {
        let mut descriptors = Descriptors::new(3);
        [1, 2].into_iter().for_each(|key| _ = descriptors.keep(key, 0, file()));
        for key in [2, 1] {
            assert_eq!(descriptors.find(key, 1), None, "the one used last, and one that was not");
        }
        assert_eq!(descriptors.kept.len(), 0);
        let at = descriptors.keep(1, 1, file());
        assert_eq!((descriptors.find(1, 1), descriptors.kept.len()), (Some(at), 1));
    }
}
