//! The folder that a workload has for itself.
//!
//! The fact that constrains it: it runs as root, on a file system on which others may have files. So it begins with an empty folder,
//! which it marks; in a folder with anything else and without the mark it touches nothing. And names are resolved below the
//! folder's descriptor by the kernel itself, so that no symbolic link leads out of it.

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Says whose the folder is; beside it lie the folders `data`, which is loaded, and `state`.
const MARK: &str = ".plimsoll-files";
const DATA: &str = "data";
const STATE: &str = "state";
const CLASS: &str = "class";
/// How names of loads are resolved. A load makes no symbolic link, so one that is there is somebody else's.
pub(crate) const WITHIN: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It has files of somebody else, or of another workload.
    #[error("{folder}: {why}: give a folder that is empty")]
    NotOurs {
        /// Its path.
        folder: PathBuf,
        /// What is in it.
        why: String,
    },
    /// It, or what marks it, cannot be opened or made.
    #[error("{folder}: {error}")]
    Folder {
        /// The path of what cannot.
        folder: PathBuf,
        /// What the kernel said.
        error: Errno,
    },
}

/// A folder with its mark.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    data: OwnedFd,
    state: OwnedFd,
}

impl Tree {
    /// Makes the empty folder `path` that of `workload`, with nothing in it.
    ///
    /// # Errors
    /// When there is anything in it, or it cannot be written to.
    pub fn create(path: &Path, workload: &str) -> Result<Self, TreeError> {
        let root = folder(path)?;
        let other = first_name(&root).map_err(|error| failed(path, error))?;
        if let Some(name) = other {
            return Err(not_ours(path, format!("it holds {name}")));
        }
        let made = |error| failed(&path.join(MARK), error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = openat(&root, MARK, flags, Mode::from_raw_mode(0o600)).map_err(made)?;
        File::from(mark).write_all(workload.as_bytes()).map_err(|error| made(errno(&error)))?;
        for name in [DATA, STATE] {
            let there = |error| failed(&path.join(name), error);
            mkdirat(&root, name, Mode::from_raw_mode(0o700)).map_err(there)?;
        }
        Self::of(path, &root)
    }

    /// Opens what [`Tree::create`] has made for `workload`.
    ///
    /// # Errors
    /// When it is not there, or is another workload's.
    pub fn open(path: &Path, workload: &str) -> Result<Self, TreeError> {
        let root = folder(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = openat(&root, MARK, flags, Mode::empty());
        let mark = mark.map_err(|_| not_ours(path, "no workload has laid out its files in it".to_owned()))?;
        let mut whose = String::new();
        let read = File::from(mark).take(256).read_to_string(&mut whose);
        read.map_err(|error| failed(&path.join(MARK), errno(&error)))?;
        if whose != workload {
            return Err(not_ours(path, format!("its files are those of {whose:?}, not of {workload:?}")));
        }
        Self::of(path, &root)
    }

    fn of(path: &Path, root: &OwnedFd) -> Result<Self, TreeError> {
        let below = |name| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(root, name, flags, Mode::empty()).map_err(|error| failed(&path.join(name), error))
        };
        Ok(Self { path: path.to_owned(), data: below(DATA)?, state: below(STATE)? })
    }

    /// Notes of which class the loaded files are to a probe.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn note_class(&self, class: &str) -> Result<(), TreeError> {
        let failed = |error| failed(&self.path.join(STATE).join(CLASS), error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let noted = openat(&self.state, CLASS, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        File::from(noted).write_all(class.as_bytes()).map_err(|error| failed(errno(&error)))
    }

    /// Of a folder that a workload has laid out its files in: where those lie, and of which class they are. `None` of any
    /// other folder.
    pub fn noted_class(path: &Path) -> Option<(PathBuf, String)> {
        let root = folder(path).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&root, MARK, flags, Mode::empty()).ok()?;
        let state = openat(&root, STATE, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
        let mut class = String::new();
        File::from(openat(&state, CLASS, flags, Mode::empty()).ok()?).take(64).read_to_string(&mut class).ok()?;
        Some((path.join(DATA), class))
    }

    /// The folder of what is loaded.
    pub fn data(&self) -> BorrowedFd<'_> {
        self.data.as_fd()
    }

    /// The folder of what a workload keeps from segment to segment.
    pub fn state(&self) -> BorrowedFd<'_> {
        self.state.as_fd()
    }

    /// Where the folder of what is loaded lies, for messages and for calls that take no descriptor.
    pub fn data_path(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Opens `name` below the folder of what is loaded.
    ///
    /// # Errors
    /// When the kernel refuses: by an error of its own, or because the name leads out of the folder.
    pub fn file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o600) } else { Mode::empty() };
        openat2(&self.data, name, flags | OFlags::CLOEXEC, mode, WITHIN)
    }

    /// Removes everything that [`Tree::create`] and the workload have made in `path`; the folder itself stays, empty. False where it
    /// was empty.
    ///
    /// # Errors
    /// When it is not marked as ours, or something cannot be removed.
    pub fn remove(path: &Path) -> Result<bool, TreeError> {
        let root = folder(path)?;
        if openat(&root, MARK, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).is_err() {
            return match first_name(&root).map_err(|error| failed(path, error))? {
                None => Ok(false),
                Some(name) => Err(not_ours(path, format!("it holds {name}, and no workload has laid that out"))),
            };
        }
        for name in [DATA, STATE] {
            match std::fs::remove_dir_all(path.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(path, errno(&error))),
                _ => {}
            }
        }
        unlinkat(&root, MARK, AtFlags::empty()).map_err(|error| failed(path, error))?;
        Ok(true)
    }
}

fn folder(path: &Path) -> Result<OwnedFd, TreeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|error| failed(path, error))
}

/// The name of anything in it.
fn first_name(root: &OwnedFd) -> Result<Option<String>, Errno> {
    for entry in Dir::read_from(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // What mkfs makes at the root of a file system is nobody's.
        if !matches!(name.as_str(), "." | ".." | "lost+found") {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn failed(path: &Path, error: Errno) -> TreeError {
    TreeError::Folder { folder: path.to_owned(), error }
}

fn not_ours(path: &Path, why: String) -> TreeError {
    TreeError::NotOurs { folder: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_anything_in_it_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis"), "mine").unwrap();
        let refused = Tree::create(folder.path(), "files").unwrap_err().to_string();
        assert!(refused.contains("it holds thesis") && refused.contains("empty"), "{refused}");
        assert!(Tree::remove(folder.path()).is_err() && Tree::open(folder.path(), "files").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_that_are_called_as_ours_are_somebodys_without_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let thesis = folder.path().join(DATA).join("thesis");
        for name in [DATA, STATE] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(&thesis, "mine").unwrap();
        assert!(Tree::remove(folder.path()).is_err() && Tree::create(folder.path(), "files").is_err());
        assert!(Tree::open(folder.path(), "files").is_err(), "nobody has laid out files in it");
        assert_eq!(std::fs::read(&thesis).unwrap(), b"mine");
    }

    #[test]
    fn what_one_workload_laid_out_is_not_opened_by_another_and_is_removed_whole() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lost+found")).unwrap();
        Tree::create(folder.path(), "files").unwrap();
        let tree = Tree::open(folder.path(), "files").unwrap();
        let made = tree.file("a", OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).unwrap();
        drop(made);
        let refused = Tree::open(folder.path(), "raw_storage").unwrap_err().to_string();
        assert!(refused.contains("\"files\"") && refused.contains("\"raw_storage\""), "{refused}");
        assert!(Tree::create(folder.path(), "files").is_err(), "a second time there is something in it");
        assert!(Tree::remove(folder.path()).unwrap() && !Tree::remove(folder.path()).unwrap());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lost+found"]);
    }

    #[test]
    fn the_class_of_what_is_loaded_is_told_of_a_workload_s_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Tree::noted_class(folder.path()), None);
        let tree = Tree::create(folder.path(), "files").unwrap();
        assert_eq!(Tree::noted_class(folder.path()), None, "nothing was noted");
        ["data", "wal"].into_iter().for_each(|class| tree.note_class(class).unwrap());
        assert_eq!(Tree::noted_class(folder.path()), Some((tree.data_path(), "wal".to_owned())));
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tree = Tree::create(folder.path(), "files").unwrap();
        std::fs::write(outside.path().join("secret"), "not ours").unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.data_path().join("link")).unwrap();
        std::fs::write(tree.data_path().join("ours"), "ours").unwrap();
        std::os::unix::fs::symlink("ours", tree.data_path().join("inner")).unwrap();
        for name in ["link/secret", "../.plimsoll-files", "/etc/passwd", "inner"] {
            assert!(tree.file(name, OFlags::RDONLY).is_err(), "{name}");
        }
    }
}
