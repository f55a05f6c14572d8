//! Files mapped into memory, shared with whoever else has them.
//!
//! The fact that constrains it: memory that a file backs may change under whoever looks at it, or not be there at all. So nobody
//! is given a reference to it: bytes are copied in and out, and what is copied is compared afterwards. Where a page cannot be had
//! (the file was cut short, its device fails, the disk is full) the kernel ends the process by SIGBUS, as it ends any that maps files.

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::{NonNull, copy_nonoverlapping};

/// How it will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// From the beginning to the end.
    Sequential,
    /// Anywhere.
    Random,
}

/// The first bytes of a file, in memory.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<c_void>,
    length: usize,
    is_writable: bool,
}

// SAFETY: the memory is the process's, and whoever has the mapping copies from it and to it by calls alone.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes, 1 or more, of a file that is open for reading, and for writing if `is_writable`.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[allow(unsafe_code)]
    pub fn of(file: impl AsFd, length: usize, is_writable: bool) -> Result<Self, Errno> {
        let access = if is_writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: the kernel chooses where, so nothing else of the process is there.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        Ok(Self { start, length, is_writable })
    }

    /// Tells the kernel how it will be read.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[allow(unsafe_code)]
    pub fn advise(&self, hint: Hint) -> Result<(), Errno> {
        let advice = match hint {
            Hint::Sequential => Advice::Sequential,
            Hint::Random => Advice::Random,
        };
        // SAFETY: the memory is this mapping's, and the advice changes nothing that is in it.
        unsafe { madvise(self.start.as_ptr(), self.length, advice) }
    }

    /// Copies what the file holds from `offset` on.
    ///
    /// # Panics
    /// Where that is beyond the mapping.
    #[inline]
    #[allow(unsafe_code)]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: `at` has seen that so many bytes are in the mapping; `into` is none of it, since nobody has a reference to that.
        unsafe { copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// Copies bytes into the file from `offset` on.
    ///
    /// # Panics
    /// Where that is beyond the mapping, or it is not for writing.
    #[inline]
    #[allow(unsafe_code)]
    pub fn write(&self, offset: usize, from: &[u8]) {
        assert!(self.is_writable, "mapped for reading alone");
        let to = self.at(offset, from.len());
        // SAFETY: as for `read`; the memory may be written to.
        unsafe { copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }

    #[inline]
    #[allow(unsafe_code)]
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.length), "within the mapping");
        // SAFETY: within the mapping, which is one allocation.
        unsafe { self.start.as_ptr().cast::<u8>().add(offset) }
    }

    /// Has what was written reach the device.
    ///
    /// # Errors
    /// When the kernel says that it has not.
    #[allow(unsafe_code)]
    pub fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the memory is this mapping's.
        unsafe { msync(self.start.as_ptr(), self.length, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the memory is this mapping's, and nobody has an address in it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_copied_in_is_in_the_file_and_the_other_way_round() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10_000).unwrap();
        let (mapping, reading) = (Mapping::of(&file, 10_000, true).unwrap(), Mapping::of(&file, 5_000, false).unwrap());
        mapping.advise(Hint::Random).unwrap();
        mapping.write(4_000, &[7; 2_000]);
        mapping.sync().unwrap();
        let mut bytes = vec![0; 3_000];
        file.read_exact_at(&mut bytes, 3_500).unwrap();
        assert_eq!(bytes, [vec![0; 500], vec![7; 2_000], vec![0; 500]].concat());
        file.write_all_at(&[9; 10], 4_990).unwrap();
        reading.read(4_980, &mut bytes[..20]);
        assert_eq!(bytes[..20], [vec![7; 10], vec![9; 10]].concat());
        reading.read(5_000, &mut []);
    }

    #[test]
    fn nothing_is_copied_from_beyond_it_nor_to_where_nothing_may_be_written() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8_192).unwrap();
        let mapping = Mapping::of(&file, 4_096, false).unwrap();
        let panics = |act: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err();
        assert!(panics(&|| mapping.read(4_090, &mut [0; 7])));
        assert!(panics(&|| mapping.read(usize::MAX, &mut [0; 7])));
        assert!(panics(&|| mapping.write(0, &[1])));
        assert!(
            Mapping::of(std::fs::File::open("/proc/self").unwrap(), 1, false).is_err(),
            "a folder cannot be mapped"
        );
    }
}
