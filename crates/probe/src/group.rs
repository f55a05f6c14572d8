//! The control group that the server runs in: its memory, of version 1 or 2, and what its processes read from devices.
//!
//! Version 1 is read with its children (`total_`), as version 2 counts. File memory includes shared memory in both.
//!
//! Reads are those of the processes inside (/proc/PID/io). The groups' own counters of them need a controller that would be
//! switched on for this alone, and those of version 1 stay empty since kernels set throttling up only where it is asked for.

use crate::columns::Columns;
use crate::columns::Field::{self, Key, Word};
use crate::text::{Rereadable, keyed};
use crate::{Probe, ProbeError};
use plimsoll_record::ABSENT_SAMPLE;
use std::fs;
use std::io;
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
    /// Whether what its processes read is asked for: not where others read for them, as the kernel's own server of NFS does.
    pub reads: bool,
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

const READS: &str = "io_read_bytes";
const NO_SUCH_PROCESS: i32 = 3;

/// What processes in a group had read from devices, page cache and swap included in what they had to wait for.
///
/// A process that ends leaves its count to its parent once that has heard of it: until then the sum is too small.
#[derive(Debug)]
struct Reads {
    members: PathBuf,
    proc: PathBuf,
}

impl Reads {
    /// None where the processes do not tell us.
    fn open(proc: &Path, group: &Path) -> Option<Self> {
        let reads = Self { members: group.join("cgroup.procs"), proc: proc.to_owned() };
        reads.sum().is_some().then_some(reads)
    }

    fn sum(&self) -> Option<i64> {
        let mut sum = None;
        // Opened anew each time: version 1 shows a file that was read within a second the same processes again.
        for pid in fs::read_to_string(&self.members).ok()?.lines() {
            match fs::read_to_string(self.proc.join(pid).join("io")) {
                Ok(text) => sum = Some(sum.unwrap_or(0) + keyed(&text, "read_bytes")?),
                Err(error) if has_ended(&error) => {}
                Err(_) => return None,
            }
        }
        sum
    }
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// Watches a group.
#[derive(Debug)]
pub struct Group {
    columns: Columns,
    reads: Option<Reads>,
    row: Vec<i64>,
}

impl Group {
    /// Opens the group's files; columns it does not give are absent.
    ///
    /// # Errors
    /// When the version is not 1 or 2, or the folder has no memory statistics.
    pub fn open(paths: &GroupPaths) -> Result<Self, ProbeError> {
        Self::open_beside(Path::new("/proc"), paths)
    }

    fn open_beside(proc: &Path, paths: &GroupPaths) -> Result<Self, ProbeError> {
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
        let reads = paths.reads.then(|| Reads::open(proc, &paths.path)).flatten();
        Ok(Self { columns, reads, row: Vec::new() })
    }
}

impl Probe for Group {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.names().into_iter().chain(self.reads.as_ref().map(|_| READS)).collect()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let Self { columns, reads, row: whole } = self;
        whole.clear();
        columns.sample(&mut |values| whole.extend_from_slice(values));
        whole.extend(reads.as_ref().map(|reads| reads.sum().unwrap_or(ABSENT_SAMPLE)));
        row(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(folder: &Path, version: u32, swap_path: Option<PathBuf>) -> Vec<(&'static str, i64)> {
        let mut group = Group::open(&GroupPaths { version, path: folder.to_owned(), swap_path, reads: false }).unwrap();
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

    /// A group of two processes, of which one has read; what each has is in a folder in place of /proc.
    fn with_processes() -> (tempfile::TempDir, GroupPaths) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("memory.stat", "total_cache 10\n");
        write("cgroup.procs", "7\n8\n");
        for (pid, bytes) in [("7", 4096), ("8", 0)] {
            std::fs::create_dir(folder.path().join(pid)).unwrap();
            write(&format!("{pid}/io"), &format!("rchar: 99\nread_bytes: {bytes}\nwrite_bytes: 5\n"));
        }
        let paths = GroupPaths { version: 1, path: folder.path().to_owned(), swap_path: None, reads: true };
        (folder, paths)
    }

    fn last_of(group: &mut Group) -> i64 {
        let mut last = None;
        group.sample(&mut |row| last = row.last().copied());
        last.unwrap()
    }

    #[test]
    fn what_its_processes_read_is_summed_and_one_that_has_ended_is_none() {
        let (folder, paths) = with_processes();
        let mut group = Group::open_beside(folder.path(), &paths).unwrap();
        assert_eq!(group.columns(), ["file_bytes", READS]);
        assert_eq!(last_of(&mut group), 4096);
        std::fs::remove_dir_all(folder.path().join("8")).unwrap();
        std::fs::write(folder.path().join("7/io"), "read_bytes: 8192\n").unwrap();
        assert_eq!(last_of(&mut group), 8192);
        std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
        assert_eq!(last_of(&mut group), ABSENT_SAMPLE);
    }

    #[test]
    fn processes_that_do_not_tell_or_are_not_asked_give_no_column() {
        let (folder, paths) = with_processes();
        let unasked = GroupPaths { reads: false, ..paths.clone() };
        assert_eq!(Group::open_beside(folder.path(), &unasked).unwrap().columns(), ["file_bytes"]);
        std::fs::write(folder.path().join("8/io"), "rchar: 1\n").unwrap();
        assert_eq!(Group::open_beside(folder.path(), &paths).unwrap().columns(), ["file_bytes"]);
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        let paths = GroupPaths { version: 2, path: "/nowhere".into(), swap_path: None, reads: true };
        assert!(Group::open(&paths).unwrap_err().to_string().contains("/nowhere"));
        assert!(Group::open(&GroupPaths { version: 3, ..paths }).unwrap_err().to_string().contains("version"));
    }
}
