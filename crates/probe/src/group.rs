//! The control group that the server runs in: its memory, of version 1 or 2.
//!
//! Version 1 is read with its children (`total_`), as version 2 counts. File memory includes shared memory in both.

use crate::columns::Columns;
use crate::columns::Field::{self, Key, Word};
use crate::text::Rereadable;
use crate::{Probe, ProbeError};
use std::path::PathBuf;

/// Where the group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPaths {
    /// 1 or 2.
    pub version: u32,
    /// The group's folder (of the memory controller in version 1).
    pub path: PathBuf,
    /// A file that holds the group's swapped bytes as one number, if not the usual place.
    pub swap_path: Option<PathBuf>,
}

/// A file that is one number.
const ALL: Field = Word(0);

/// A column, the file that gives it, and where it stands there.
type Place = (&'static str, &'static str, Field);

const VERSION_2: [Place; 12] = [
    ("usage_bytes", "memory.current", ALL),
    ("swap_bytes", "memory.swap.current", ALL),
    ("anon_bytes", "memory.stat", Key("anon")),
    ("file_bytes", "memory.stat", Key("file")),
    ("shmem_bytes", "memory.stat", Key("shmem")),
    ("mapped_bytes", "memory.stat", Key("file_mapped")),
    ("dirty_bytes", "memory.stat", Key("file_dirty")),
    ("writeback_bytes", "memory.stat", Key("file_writeback")),
    ("pgfault", "memory.stat", Key("pgfault")),
    ("pgmajfault", "memory.stat", Key("pgmajfault")),
    ("limit_hits", "memory.events", Key("max")),
    ("oom_kills", "memory.events", Key("oom_kill")),
];

const VERSION_1: [Place; 12] = [
    ("usage_bytes", "memory.usage_in_bytes", ALL),
    ("swap_bytes", "memory.stat", Key("total_swap")),
    ("anon_bytes", "memory.stat", Key("total_rss")),
    ("file_bytes", "memory.stat", Key("total_cache")),
    ("shmem_bytes", "memory.stat", Key("total_shmem")),
    ("mapped_bytes", "memory.stat", Key("total_mapped_file")),
    ("dirty_bytes", "memory.stat", Key("total_dirty")),
    ("writeback_bytes", "memory.stat", Key("total_writeback")),
    ("pgfault", "memory.stat", Key("total_pgfault")),
    ("pgmajfault", "memory.stat", Key("total_pgmajfault")),
    ("limit_hits", "memory.failcnt", ALL),
    ("oom_kills", "memory.oom_control", Key("oom_kill")),
];

/// Watches a group.
#[derive(Debug)]
pub struct Group {
    columns: Columns,
}

impl Group {
    /// Opens the group's files; columns it does not give are absent.
    ///
    /// # Errors
    /// When the version is not 1 or 2, or the folder has no memory statistics.
    pub fn open(paths: &GroupPaths) -> Result<Self, ProbeError> {
        let places = match paths.version {
            1 => VERSION_1,
            2 => VERSION_2,
            other => return Err(ProbeError::Unknown(format!("sample.group.version: {other} is not 1 or 2"))),
        };
        Rereadable::open(&paths.path.join("memory.stat"))?;
        let columns = Columns::open(places.map(|(name, file, field)| match &paths.swap_path {
            Some(path) if name == "swap_bytes" => (name, path.clone(), ALL),
            _ => (name, paths.path.join(file), field),
        }));
        Ok(Self { columns })
    }
}

impl Probe for Group {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.names()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.columns.sample(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sampled(folder: &Path, version: u32, swap_path: Option<PathBuf>) -> Vec<(&'static str, i64)> {
        let mut group = Group::open(&GroupPaths { version, path: folder.to_owned(), swap_path }).unwrap();
        let mut values = Vec::new();
        group.sample(&mut |row| values.extend_from_slice(row));
        group.columns().into_iter().zip(values).collect()
    }

    #[test]
    fn a_known_group_of_version_2() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("memory.current", "4096\n");
        write("memory.stat", "anon 1\nfile 2\nfile_mapped 3\npgmajfault 4\n");
        write("memory.events", "low 0\nhigh 0\nmax 5\noom 0\noom_kill 6\n");
        let expected = [
            ("usage_bytes", 4096),
            ("anon_bytes", 1),
            ("file_bytes", 2),
            ("mapped_bytes", 3),
            ("pgmajfault", 4),
            ("limit_hits", 5),
            ("oom_kills", 6),
        ];
        assert_eq!(sampled(folder.path(), 2, None), expected);
    }

    #[test]
    fn a_known_group_of_version_1_with_swap_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("memory.stat", "cache 9\ntotal_cache 10\ntotal_rss 11\ntotal_swap 12\n");
        write("memory.failcnt", "3\n");
        write("swapped", "77\n");
        let plain = sampled(folder.path(), 1, None);
        assert_eq!(plain, [("swap_bytes", 12), ("anon_bytes", 11), ("file_bytes", 10), ("limit_hits", 3)]);
        assert_eq!(sampled(folder.path(), 1, Some(folder.path().join("swapped")))[0], ("swap_bytes", 77));
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        let paths = GroupPaths { version: 2, path: "/nowhere".into(), swap_path: None };
        assert!(Group::open(&paths).unwrap_err().to_string().contains("/nowhere"));
        assert!(Group::open(&GroupPaths { version: 3, ..paths }).unwrap_err().to_string().contains("version"));
    }
}
