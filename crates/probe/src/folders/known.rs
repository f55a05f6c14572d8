//! What the program is told before it starts: the folders with their classes, and the files that are in them already, so
//! that a file whose name is gone by the time it is seen, or that an event gives by number alone, is known.

use super::{Class, OWN, OwnClass, SELF_TEST, Tree};
use crate::Refusal;
use crate::bpf::{Found, Programs, WatchedFileSystem, file_system_of};
use libbpf_rs::{MapCore, MapFlags};
use rustix::fs::{Mode, OFlags, open};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

/// Files that are told beforehand; the others are classified when they are first seen, and need room in the same map.
const FILES_MAX: usize = 32_768;
/// The generation of a file that has not been seen: `GENERATION_UNKNOWN`.
const UNKNOWN: u32 = u32::MAX;
/// Numbers of files told beforehand stand apart from those that the program gives.
const NUMBERS_FROM: u32 = 1 << 31;
const BTRFS: &str = "btrfs";
/// _IOR('v', 1, long) of linux/fs.h.
const FS_IOC_GETVERSION: libc::Ioctl = 0x8008_7601;

/// A file or folder in the program's terms: device and number, as its keys have them.
type Key = (u32, u64);

/// Folders by class, files by class with their generation, and the file systems that hold them.
pub(crate) struct Known {
    folders: Vec<(Key, u32)>,
    files: Vec<(Key, u32, u32)>,
    pub(crate) file_systems: Vec<WatchedFileSystem>,
}

/// The generation tells files apart that had the same number one after the other. Unknown where the file system does not say.
#[allow(unsafe_code)]
fn generation_of(path: &Path) -> u32 {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let Ok(file) = open(path, flags, Mode::empty()) else { return UNKNOWN };
    let mut generation: libc::c_long = 0;
    // SAFETY: the call writes one number (an int, into the space of a long) to where it is told.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION, &raw mut generation) };
    if done == 0 { generation as u32 } else { UNKNOWN }
}

/// PostgreSQL's names of what is temporary, as the program has them (`is_temp`).
pub(crate) fn is_temp(name: &str) -> bool {
    let number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.starts_with("pgsql_tmp") || name.strip_prefix('t').is_some_and(number)
}

/// The class of a file of this name in a folder of class `within`, in the program's numbers, as the program finds it
/// (`class_by_name`).
fn class_by_name(name: &str, within: Class, own: &[OwnClass]) -> u32 {
    if let Some((number, _)) = (OWN..).zip(own).find(|(_, one)| one.has(name, within)) {
        return number;
    }
    let class = if within == Class::Data && is_temp(name) { Class::Temp } else { within };
    class as u32
}

fn key_bytes((device, inode): Key) -> Vec<u8> {
    let mut key = inode.to_ne_bytes().to_vec();
    key.extend(device.to_ne_bytes());
    key.extend([0; 4]);
    key
}

impl Known {
    /// Looks at the folders of `trees`. With `by_subvolume` what lies on btrfs is known by its subvolume's number.
    pub(crate) fn of(trees: &[Tree], by_subvolume: bool) -> Result<Self, Refusal> {
        Self::with_own(trees, &[], by_subvolume)
    }

    /// The same for a program that knows classes of a workload's own, of which files have the first that fits.
    pub(crate) fn with_own(trees: &[Tree], own: &[OwnClass], by_subvolume: bool) -> Result<Self, Refusal> {
        if trees.is_empty() {
            return Err(Refusal::from("no folder to watch".to_owned()));
        }
        let mut known = Self { folders: Vec::new(), files: Vec::new(), file_systems: Vec::new() };
        let roots: BTreeSet<PathBuf> = trees.iter().filter_map(|tree| fs::canonicalize(&tree.path).ok()).collect();
        for tree in trees {
            let device = known.add_folder(&tree.path, tree.class as u32, by_subvolume)?;
            known.add_files(&tree.path, &|name| class_by_name(name, tree.class, own), device, &roots);
        }
        Ok(known)
    }

    /// Adds the folder of a self-test, which has to be on a file system that is watched.
    pub(crate) fn with_self_test(mut self, folder: &Path, by_subvolume: bool) -> Result<Self, Refusal> {
        let watched = self.file_systems.len();
        self.add_folder(folder, SELF_TEST, by_subvolume)?;
        if self.file_systems.len() != watched {
            let reason = format!("{} is on another file system than the target's files", folder.display());
            return Err(Refusal::with_remedy(reason, "name a scratch folder beside the data"));
        }
        Ok(self)
    }

    /// The numbers of the file systems.
    pub(crate) fn devices(&self) -> Vec<u32> {
        self.file_systems.iter().map(|one| one.device).collect()
    }

    /// The device in the key of a file.
    pub(crate) fn key_device(found: &Found, by_subvolume: bool) -> u32 {
        let numbered = by_subvolume && found.file_system.shown.kind == BTRFS;
        if numbered { found.stat_device } else { found.file_system.device }
    }

    fn add_folder(&mut self, path: &Path, class: u32, by_subvolume: bool) -> Result<u32, Refusal> {
        let found = file_system_of(path)?;
        let device = Self::key_device(&found, by_subvolume);
        self.folders.push(((device, found.inode), class));
        if !self.file_systems.contains(&found.file_system) {
            self.file_systems.push(found.file_system);
        }
        Ok(device)
    }

    /// Files under `folder`, but not under another root. What cannot be read now is classified when it is seen.
    fn add_files(&mut self, folder: &Path, class: &dyn Fn(&str) -> u32, device: u32, roots: &BTreeSet<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && !roots.contains(&path) {
                self.add_files(&path, class, device, roots);
            } else if kind.is_file() && self.files.len() < FILES_MAX {
                let class = class(&entry.file_name().to_string_lossy());
                self.files.push(((device, entry.ino()), class, generation_of(&path)));
            }
        }
    }

    /// Tells the program. Tests may have it told numbers that are not the folders'.
    pub(crate) fn fill(&self, programs: &Programs, wrongly: bool) -> Result<(), Refusal> {
        let failed = |error: libbpf_rs::Error| Refusal::from(format!("the maps of folders and files: {error}"));
        let (directories, files) = (programs.map("directories")?, programs.map("files")?);
        for &((device, inode), class) in &self.folders {
            let key = key_bytes((device, inode + u64::from(wrongly)));
            directories.update(&key, &class.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        }
        for (number, &(key, class, generation)) in (NUMBERS_FROM..).zip(&self.files) {
            // struct file_entry, which may have more
            let mut entry: Vec<u8> =
                [generation, number, class, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
            entry.resize(files.value_size() as usize, 0);
            files.update(&key_bytes(key), &entry, MapFlags::ANY).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_once_by_the_deepest_folder_and_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["base/5/1234", "base/5/t3_99", "base/pgsql_tmp/pgsql_tmp7.0", "base/5/toast", "wal/1"] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir(root.join("scratch")).unwrap();
        let tree = |name: &str, class| Tree { path: root.join(name), class };
        let trees = vec![tree("", Class::Other), tree("base", Class::Data), tree("wal", Class::Wal)];
        let known = Known::of(&trees, true).unwrap().with_self_test(&root.join("scratch"), true).unwrap();
        let mut classes: Vec<u32> = known.files.iter().map(|(_, class, _)| *class).collect();
        classes.sort_unstable();
        let (data, wal, temp) = (Class::Data as u32, Class::Wal as u32, Class::Temp as u32);
        assert_eq!(classes, [data, data, wal, temp, temp]);
        assert_eq!((known.folders.len(), known.file_systems.len()), (4, 1));
    }

    #[test]
    fn files_of_a_workload_s_own_classes_are_known_by_how_their_names_begin() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["class0_1", "dir/class1_8", "dir/class1x", "class", "t3_9", "post.log", "logs/post.log"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let own = |name: &str, begins: &str, within| OwnClass { name: name.into(), begins: begins.into(), within };
        let own = [
            own("first", "class0_", Class::Data),
            own("second", "class1_", Class::Data),
            own("log", "post.log", Class::Other),
        ];
        let tree = |name: &str, class| Tree { path: folder.path().join(name), class };
        let trees = [tree("", Class::Data), tree("logs", Class::Other)];
        let known = Known::with_own(&trees, &own, true).unwrap();
        let mut classes: Vec<u32> = known.files.iter().map(|(_, class, _)| *class).collect();
        classes.sort_unstable();
        let (data, temp) = (Class::Data as u32, Class::Temp as u32);
        assert_eq!(classes, [data, data, data, temp, OWN, OWN + 1, OWN + 2]);
    }

    #[test]
    fn a_scratch_folder_elsewhere_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let trees = vec![Tree { path: folder.path().to_owned(), class: Class::Data }];
        let refusal = Known::of(&trees, true).unwrap().with_self_test(Path::new("/proc"), true).err().unwrap();
        assert!(refusal.reason.contains("another file system") && refusal.remedy.is_some());
        assert_eq!(Known::of(&[], true).err().unwrap().reason, "no folder to watch");
    }
}
