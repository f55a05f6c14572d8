//! What the functions in the stack of a call on NFS tell of what it waits for: `enum of_nfs`.
//!
//! Its own parts of a sync are those of study S2: its pages on their way, sending writes, and the server's commit.

use crate::Refusal;
use crate::bpf::{Functions, functions::NOT_OURS};
use crate::file_waits::places::{OnNfs, on_nfs};

const PAGES: u32 = 1;
const WRITING: u32 = 2;
const COMMIT: u32 = 3;
/// In the file that is synced; they are the same on every file system.
const OF_PAGES: [(&str, u32); 5] = [
    ("__filemap_fdatawait_range", PAGES),
    ("do_writepages", WRITING),
    ("write_cache_pages", WRITING),
    ("writeback_iter", WRITING),
    ("nfs_writepages", WRITING),
];

fn tells(function: &str) -> Option<u32> {
    if let Some((_, what)) = OF_PAGES.iter().find(|(known, _)| *known == function) {
        return Some(*what);
    }
    match on_nfs(function)? {
        OnNfs::Commit => Some(COMMIT),
        OnNfs::Else => Some(NOT_OURS),
        _ => None,
    }
}

/// Those of the running kernel.
pub(super) fn functions() -> Result<Functions, Refusal> {
    Functions::of_this_kernel(tells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::functions::tests::told;

    /// As the kernels 6.1 and 6.12 of Debian have them, outermost first.
    #[test]
    fn parts_of_a_sync_are_told_by_who_waits() {
        let of = |stack: &str| told(tells, &stack.rsplit(';').collect::<Vec<_>>());
        let page = "folio_wait_writeback;folio_wait_bit_common;io_schedule;schedule";
        let pages = of(&format!("nfs_file_fsync;file_write_and_wait_range;__filemap_fdatawait_range;{page}"));
        let again = of(&format!("nfs_file_fsync;do_writepages;nfs_writepages;write_cache_pages;{page}"));
        let commit = of("nfs_file_fsync;nfs_commit_inode;__nfs_commit_inode;wait_on_commit;schedule");
        assert_eq!([pages, again, commit], [PAGES, WRITING, COMMIT]);
        let lock = of("nfs_file_fsync;do_writepages;nfs_writepages;__mutex_lock;schedule");
        assert_eq!([lock, of("nfs_file_fsync;pnfs_sync_inode;schedule")], [0, 0]);
    }
}
