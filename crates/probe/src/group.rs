//! The control group that the server runs in: its memory, of version 1 or 2.
//!
//! Version 1 is read with its children (`total_`), as version 2 counts. File memory includes shared memory in both.

use crate::text::{Rereadable, keyed};
use crate::{Probe, ProbeError};
use plimsoll_record::ABSENT_SAMPLE;
use std::path::{Path, PathBuf};

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

/// A file, a key in it (none: the file is one number) and the column that it gives.
type Place = (&'static str, &'static str, Option<&'static str>);

const VERSION_2: [Place; 12] = [
    ("usage_bytes", "memory.current", None),
    ("swap_bytes", "memory.swap.current", None),
    ("anon_bytes", "memory.stat", Some("anon")),
    ("file_bytes", "memory.stat", Some("file")),
    ("shmem_bytes", "memory.stat", Some("shmem")),
    ("mapped_bytes", "memory.stat", Some("file_mapped")),
    ("dirty_bytes", "memory.stat", Some("file_dirty")),
    ("writeback_bytes", "memory.stat", Some("file_writeback")),
    ("pgfault", "memory.stat", Some("pgfault")),
    ("pgmajfault", "memory.stat", Some("pgmajfault")),
    ("limit_hits", "memory.events", Some("max")),
    ("oom_kills", "memory.events", Some("oom_kill")),
];

const VERSION_1: [Place; 12] = [
    ("usage_bytes", "memory.usage_in_bytes", None),
    ("swap_bytes", "memory.stat", Some("total_swap")),
    ("anon_bytes", "memory.stat", Some("total_rss")),
    ("file_bytes", "memory.stat", Some("total_cache")),
    ("shmem_bytes", "memory.stat", Some("total_shmem")),
    ("mapped_bytes", "memory.stat", Some("total_mapped_file")),
    ("dirty_bytes", "memory.stat", Some("total_dirty")),
    ("writeback_bytes", "memory.stat", Some("total_writeback")),
    ("pgfault", "memory.stat", Some("total_pgfault")),
    ("pgmajfault", "memory.stat", Some("total_pgmajfault")),
    ("limit_hits", "memory.failcnt", None),
    ("oom_kills", "memory.oom_control", Some("oom_kill")),
];

/// A place in the row, and the key in the file that gives it.
type Given = (usize, Option<&'static str>);

/// Watches a group.
#[derive(Debug)]
pub struct Group {
    /// Each file once, with the columns it gives: (place in the row, key).
    files: Vec<(Rereadable, Vec<Given>)>,
    columns: Vec<&'static str>,
    row: Vec<i64>,
}

fn value(text: &str, key: Option<&str>) -> Option<i64> {
    key.map_or_else(|| text.trim().parse().ok(), |key| keyed(text, key))
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
        let mut group = Self { files: Vec::new(), columns: Vec::new(), row: Vec::new() };
        let mut names: Vec<PathBuf> = Vec::new();
        for (column, file, key) in places {
            let (path, key) = match &paths.swap_path {
                Some(path) if column == "swap_bytes" => (path.clone(), None),
                _ => (paths.path.join(file), key),
            };
            group.add(column, &path, key, &mut names);
        }
        Ok(group)
    }

    fn add(&mut self, column: &'static str, path: &Path, key: Option<&'static str>, names: &mut Vec<PathBuf>) {
        let known = names.iter().position(|name| name == path);
        let place = known.or_else(|| {
            self.files.push((Rereadable::open(path).ok()?, Vec::new()));
            names.push(path.to_owned());
            Some(names.len() - 1)
        });
        let Some((file, gives)) = place.map(|place| &mut self.files[place]) else { return };
        if file.read().is_ok_and(|text| value(text, key).is_some()) {
            gives.push((self.columns.len(), key));
            self.columns.push(column);
        }
    }
}

impl Probe for Group {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.clone()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.row.clear();
        self.row.resize(self.columns.len(), ABSENT_SAMPLE);
        for (file, gives) in &mut self.files {
            let Ok(text) = file.read() else { continue };
            for &(place, key) in gives.iter() {
                self.row[place] = value(text, key).unwrap_or(ABSENT_SAMPLE);
            }
        }
        row(&self.row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
