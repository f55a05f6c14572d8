//! Which handle of its server each file of the target has, so that calls are told by file although nobody looks the file up any
//! more: a server opens its files once and keeps them, and the client remembers names.
//!
//! The fact that constrains it: the client gives a handle of its own for a file (name_to_handle_at(2)), in which the server's
//! lies: number of the file, its type, and then length and bytes of what it puts into its calls (fs/nfs/export.c).

use super::words::half;
use crate::folders::{CLASSES, Tree};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that are told; more are not looked at.
const FILES_MAX: usize = 200_000;
const HANDLE_BYTES: usize = 128;
/// Where the server's handle lies in the client's: its length, and its bytes.
const LENGTH: usize = 12;
const BYTES: usize = 14;

/// A file or folder, and what its server calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known<M> {
    /// What its tree lies on.
    pub(super) on: M,
    pub(super) path: PathBuf,
    /// One of [`CLASSES`].
    pub(super) class: &'static str,
    pub(super) handle: Vec<u8>,
}

/// What a walk over the trees found.
#[derive(Debug)]
pub(super) struct Walked<M> {
    pub(super) known: Vec<Known<M>>,
    /// Files and folders whose handle the client does not tell, or that were too many.
    pub(super) untold: u64,
}

/// Walks over the trees that lie on something by `held`, each without what is another tree.
pub(super) fn walk<M: Copy>(trees: &[Tree], held: impl Fn(&Path) -> Option<M>) -> Walked<M> {
    let roots: BTreeMap<&Path, &'static str> =
        trees.iter().map(|tree| (tree.path.as_path(), CLASSES[tree.class as usize])).collect();
    let mut walked = Walked { known: Vec::new(), untold: 0 };
    for (&root, &class) in &roots {
        if let Some(on) = held(root) {
            walked.add(on, root, class);
            walked.below(on, root, class, &roots);
        }
    }
    walked
}

impl<M: Copy> Walked<M> {
    fn add(&mut self, on: M, path: &Path, class: &'static str) {
        let told = (self.known.len() < FILES_MAX).then(|| handle_of(path)).flatten();
        match told {
            Some(handle) => self.known.push(Known { on, path: path.to_owned(), class, handle }),
            None => self.untold += 1,
        }
    }

    fn below(&mut self, on: M, folder: &Path, class: &'static str, roots: &BTreeMap<&Path, &'static str>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() || roots.contains_key(path.as_path()) {
                continue;
            }
            self.add(on, &path, class);
            if kind.is_dir() {
                self.below(on, &path, class, roots);
            }
        }
    }
}

/// The server's handle in the client's.
fn servers(own: &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(half(own, LENGTH)?);
    let handle = own.get(BYTES..BYTES + length)?;
    (!handle.is_empty()).then(|| handle.to_vec())
}

#[repr(C, align(8))]
struct Room {
    head: [u32; 2],
    bytes: [u8; HANDLE_BYTES],
}

#[allow(unsafe_code)]
fn handle_of(path: &Path) -> Option<Vec<u8>> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut room = Room { head: [HANDLE_BYTES as u32, 0], bytes: [0; HANDLE_BYTES] };
    let mut mount = 0;
    // SAFETY: the kernel reads the name, and writes no more than `head` says, into the struct that has as much room.
    let done = unsafe {
        let to = (&raw mut room).cast::<libc::file_handle>();
        libc::name_to_handle_at(libc::AT_FDCWD, name.as_ptr(), to, &raw mut mount, 0)
    };
    let length = (room.head[0] as usize).min(HANDLE_BYTES);
    (done == 0).then(|| servers(&room.bytes[..length])).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::Class;

    #[test]
    fn a_clients_handle_has_the_servers_in_it() {
        let mut own = vec![0, 0, 0, 0, 5, 0, 0, 0, 0, 0x80, 0, 0];
        own.extend(4_u16.to_ne_bytes());
        own.extend(b"abcd");
        own.extend([0; 2]);
        assert_eq!(servers(&own).unwrap(), b"abcd");
        assert_eq!(servers(&own[..16]), None, "cut");
        assert_eq!(servers(&own[..12]), None);
        own[LENGTH..BYTES].copy_from_slice(&0_u16.to_ne_bytes());
        assert_eq!(servers(&own), None, "of a file system that is none of NFS");
    }

    #[test]
    fn only_what_is_watched_is_walked_over_and_a_tree_within_another_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["base/5", "wal"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("file"), "").unwrap();
        }
        let tree = |name: &str, class| Tree { path: folder.path().join(name), class };
        let trees = [tree("", Class::Other), tree("base", Class::Data), tree("wal", Class::Wal)];
        let count = |watched: &[&str]| {
            let paths: Vec<PathBuf> = watched.iter().map(|name| folder.path().join(name)).collect();
            let walked = walk(&trees, |path| paths.iter().any(|one| one == path).then_some(()));
            walked.known.len() as u64 + walked.untold
        };
        // Each tree with what is in it: here no server tells handles, or one of them does.
        assert_eq!((count(&[]), count(&["wal"]), count(&["base"]), count(&["", "base", "wal"])), (0, 2, 3, 6));
    }
}
