//! Which pages the kernel backs a buffer with.
//!
//! The fact that constrains it: on pages of the usual size a step takes as long as their places in physical memory make it, since
//! the tables that lead there have to be fetched, too. Buffers of one agent after another differed by up to 30 % beside the same
//! load, each for as long as it lived. On huge pages there is hardly a table, and they differed by 4 %.

use std::fs;
use std::mem::size_of_val;

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

/// Asks for it, of whole pages that are not written yet. A kernel without huge pages refuses, and backs nothing with them.
pub(super) fn ask<T>(room: &mut [T], backing: Backing) {
    advise(room, if backing == Backing::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE });
}

/// Has the kernel move what is written of these pages to huge ones now, also where it does so for nobody by itself (Linux 6.1).
pub(super) fn collapse<T>(written: &mut [T]) {
    advise(written, libc::MADV_COLLAPSE);
}

#[allow(unsafe_code)]
fn advise<T>(memory: &mut [T], advice: libc::c_int) {
    if !memory.is_empty() {
        // SAFETY: these bytes are the caller's alone, and none of the advices changes what is in them. Whether one was followed
        // is asked for afterwards, since not all that are refused are.
        let _ = unsafe { libc::madvise(memory.as_mut_ptr().cast(), size_of_val(memory), advice) };
    }
}

/// Bytes of the mapping that holds this memory which are in huge pages; None where the kernel does not say.
pub(super) fn huge_bytes<T>(memory: &[T]) -> Option<usize> {
    huge_in(&fs::read_to_string("/proc/self/smaps").ok()?, memory.as_ptr().addr())
}

/// Of a text of smaps (proc_pid_smaps(5)).
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
