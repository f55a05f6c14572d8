//! What a wait on NFS is for: `enum cause`, by the functions that the backend waits in.
//!
//! The fact that constrains it: a wait event is PostgreSQL's, and it does not know which file system a file is on.

use crate::bpf::{Functions, file_system_of};
use crate::file_waits::places::{number, on_nfs};
use crate::{Refusal, nfs_calls, postgres};
use std::path::Path;

/// Reading, writing, committing, attributes, and another call.
const CAUSES: [u32; 5] = [3, 4, 5, 6, 7];
/// What is absent where it cannot be told.
pub(super) const PARTS: &str = "nfs";

fn tells(function: &str) -> Option<u32> {
    on_nfs(function).map(|what| number(what, &CAUSES))
}

/// Whether one of the server's folders is on NFS.
fn is_on_nfs(data_directory: &Path) -> bool {
    let Ok(files) = postgres::files(data_directory) else { return false };
    let mut kinds = files.trees.iter().filter_map(|tree| file_system_of(&tree.path).ok());
    kinds.any(|found| nfs_calls::KINDS.contains(&found.file_system.shown.kind.as_str()))
}

/// Where the kernel's functions are that tell it, for the cluster in `data_directory`; None if nothing of it is on NFS.
pub(super) fn functions(data_directory: &Path) -> Option<Result<Functions, Refusal>> {
    is_on_nfs(data_directory).then(|| Functions::of_this_kernel(tells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::functions::tests::told;

    #[test]
    fn a_wait_on_nfs_has_its_cause_and_any_other_has_none() {
        let of = |stack: &str| told(tells, &stack.rsplit(';').collect::<Vec<_>>());
        let page = "folio_wait_bit_common;io_schedule;schedule";
        let call = "rpc_wait_bit_killable;schedule";
        assert_eq!(of(&format!("nfs_file_read;filemap_read;filemap_get_pages;{page}")), 3);
        assert_eq!(of(&format!("do_fsync;nfs_file_fsync;__filemap_fdatawait_range;folio_wait_writeback;{page}")), 4);
        assert_eq!(of("do_fsync;nfs_file_fsync;__nfs_commit_inode;wait_on_commit;schedule"), 5);
        assert_eq!(of(&format!("nfs_getattr;__nfs_revalidate_inode;nfs4_proc_getattr;{call}")), 6);
        assert_eq!(of(&format!("nfs_atomic_open;nfs4_do_open;{call}")), 7);
        assert_eq!(of(&format!("ext4_file_read_iter;filemap_read;filemap_get_pages;{page}")), 0);
        assert_eq!(of("nfs_file_write;nfs_start_io_write;down_write;rwsem_down_write_slowpath;schedule"), 0);
    }

    #[test]
    fn a_folder_of_another_file_system_is_not_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["base", "global", "pg_wal"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        assert_eq!(postgres::files(folder.path()).unwrap().trees.len(), 4);
        assert!(functions(folder.path()).is_none());
    }
}
