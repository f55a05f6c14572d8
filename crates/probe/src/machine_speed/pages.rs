//! Which pages the kernel backs a buffer with.
//!
//! The fact that constrains it: on pages of the usual size a step takes as long as their places in physical memory make it, since
//! the tables that lead there have to be fetched, too. Buffers of one agent after another differed by up to 30 % beside the same
//! load, each for as long as it lived. On huge pages there is hardly a table, and they differed by 4 %.

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::{fs, slice};

/// What a buffer is to be backed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// Huge pages alone.
    Huge,
    /// None of them, now and later: a buffer that gets some while a run goes on becomes faster, and the machine does not.
    Small,
}

/// Bytes of a huge page; None where the kernel has none that come by themselves (Documentation/admin-guide/mm/transhuge.rst).
pub(super) fn huge_page_bytes() -> Option<usize> {
    fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?.trim().parse().ok()
}

/// Memory of whole pages of one kind, zero at first. No allocator gave it: what one gives may be on pages of another kind already,
/// which no advice takes back, and may share those at its ends.
#[derive(Debug)]
pub(super) struct AnonymousMapping {
    start: NonNull<c_void>,
    mapped: usize,
    /// Before and after it are bytes that nobody asks for, or the kernel might make one mapping of it and a neighbour.
    before: usize,
    bytes: usize,
}

// SAFETY: the memory is the process's, and lent as what it holds alone, by the usual rules.
#[allow(unsafe_code)]
unsafe impl Send for AnonymousMapping {}
// SAFETY: who has it shared can only read.
#[allow(unsafe_code)]
unsafe impl Sync for AnonymousMapping {}

impl AnonymousMapping {
    /// For so many bytes, of pages of `page_bytes`. A kernel without huge pages refuses what is asked for, and backs nothing with
    /// them.
    ///
    /// # Errors
    /// When there is no memory for it.
    #[allow(unsafe_code)]
    pub(super) fn of(bytes: usize, page_bytes: usize, backing: Backing) -> Result<Self, Errno> {
        let bytes = bytes.next_multiple_of(page_bytes);
        let mapped = bytes + 2 * page_bytes;
        // SAFETY: the kernel chooses where, so nothing else of the process is there.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        let before = page_bytes - start.addr().get() % page_bytes;
        let mapping = Self { start, mapped, before, bytes };
        mapping.advise(if backing == Backing::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE });
        Ok(mapping)
    }

    /// Has the kernel move what is written of it to huge pages now, also where it does so for nobody by itself (Linux 6.1).
    pub(super) fn collapse(&self) {
        self.advise(libc::MADV_COLLAPSE);
    }

    #[allow(unsafe_code)]
    fn advise(&self, advice: libc::c_int) {
        // SAFETY: these bytes are this mapping's, and none of the advices changes what is in them. Whether one was followed is
        // asked for afterwards, since not all that are refused are.
        let _ = unsafe { libc::madvise(self.begin().cast(), self.bytes, advice) };
    }

    #[allow(unsafe_code)]
    fn begin(&self) -> *mut u32 {
        // SAFETY: `before` is within the mapping. It is a multiple of a page's bytes away from address 0, and so aligned.
        unsafe { self.start.as_ptr().byte_add(self.before) }.cast()
    }

    pub(super) fn words(&self) -> &[u32] {
        #[allow(unsafe_code)]
        // SAFETY: so many bytes from there on are mapped, and any bytes are numbers.
        unsafe {
            slice::from_raw_parts(self.begin(), self.bytes / size_of::<u32>())
        }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        #[allow(unsafe_code)]
        // SAFETY: as above, and nobody else has them.
        unsafe {
            slice::from_raw_parts_mut(self.begin(), self.bytes / size_of::<u32>())
        }
    }

    /// Bytes of it which are in huge pages; None where the kernel does not say.
    pub(super) fn huge_bytes(&self) -> Option<usize> {
        huge_in(&fs::read_to_string("/proc/self/smaps").ok()?, self.begin().addr())
    }
}

impl Drop for AnonymousMapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the memory is this mapping's, and what was lent of it has been given back.
        let _ = unsafe { munmap(self.start.as_ptr(), self.mapped) };
    }
}

/// Of the mapping that holds this address, from a text of smaps (proc_pid_smaps(5)).
fn huge_in(smaps: &str, address: usize) -> Option<usize> {
    let mut lines = smaps.lines();
    lines.find(|line| holds(line, address) == Some(true))?;
    let kib = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    Some(kib.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

fn holds(line: &str, address: usize) -> Option<bool> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(start)?..number(end)?).contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \nSize:               2048 kB\nAnonHugePages:         0 kB\n\
        VmFlags: rd wr mr mw me ac\n7f0000200000-7f0000a00000 rw-p 00000000 00:00 0 [anon: a-b c]\nSize:               8192 kB\n\
        AnonHugePages:      6144 kB\nVmFlags: rd wr mr mw me ac hg\n";

    #[test]
    fn what_is_in_huge_pages_is_that_of_the_mapping_which_holds_it() {
        assert_eq!(huge_in(SMAPS, 0x7f00_0000_0000), Some(0));
        assert_eq!(huge_in(SMAPS, 0x7f00_001f_ffff), Some(0));
        assert_eq!(huge_in(SMAPS, 0x7f00_0020_0000), Some(6144 << 10));
        assert_eq!(huge_in(SMAPS, 0x7f00_00a0_0000), None);
    }
}
