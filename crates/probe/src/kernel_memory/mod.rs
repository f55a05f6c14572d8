//! What the kernel holds for itself and how broken up free memory is: page tables, stacks, open files, free blocks by size,
//! compaction, and (slabs.rs) its caches of objects. For runs of hours, in which these may grow and never fall.
//!
//! The fact that constrains it: such things change slowly and reading them takes the kernel's locks (a slab list, the zones), so
//! they are read every few minutes and not with every sample of the host.
//!
//! Cost: `cargo test -p plimsoll-probe -- --ignored cost`.

mod slabs;

pub use slabs::Slabs;

use crate::columns::Columns;
use crate::columns::Field::{self, FreeBlocks, Key, Keys, Word};
use crate::text::Rereadable;
use crate::{Probe, ProbeError};
use std::path::Path;
use std::time::{Duration, Instant};

/// When a slow probe is due; the first time at once.
#[derive(Debug)]
struct Seldom {
    every: Duration,
    due: Option<Instant>,
}

impl Seldom {
    fn new(every: Duration) -> Self {
        Self { every, due: None }
    }

    /// Whether it is time; samples that come a little early count.
    fn is_due(&mut self, now: Instant) -> bool {
        let early = self.every / 20;
        if self.due.is_some_and(|due| now + early < due) {
            return false;
        }
        // Counted from when it was due, so that it keeps to its times; what was missed is not made up for.
        let next = self.due.map_or(now, |due| due) + self.every;
        self.due = Some(if next > now { next } else { now + self.every });
        true
    }
}

/// Columns in the order of `schema/record.md`, and where each comes from.
const COLUMNS: [(&str, &str, Field); 31] = [
    ("slab_kib", "meminfo", Key("Slab")),
    ("s_unreclaim_kib", "meminfo", Key("SUnreclaim")),
    ("kernel_stack_kib", "meminfo", Key("KernelStack")),
    ("page_tables_kib", "meminfo", Key("PageTables")),
    ("sec_page_tables_kib", "meminfo", Key("SecPageTables")),
    ("percpu_kib", "meminfo", Key("Percpu")),
    ("vmalloc_used_kib", "meminfo", Key("VmallocUsed")),
    ("anon_pages_kib", "meminfo", Key("AnonPages")),
    ("mapped_kib", "meminfo", Key("Mapped")),
    ("committed_kib", "meminfo", Key("Committed_AS")),
    ("hardware_corrupted_kib", "meminfo", Key("HardwareCorrupted")),
    ("files_open", "sys/fs/file-nr", Word(0)),
    ("inodes", "sys/fs/inode-nr", Word(0)),
    ("dentries", "sys/fs/dentry-state", Word(0)),
    ("compact_stall", "vmstat", Key("compact_stall")),
    ("compact_fail", "vmstat", Key("compact_fail")),
    ("compact_success", "vmstat", Key("compact_success")),
    ("compact_daemon_wake", "vmstat", Key("compact_daemon_wake")),
    ("allocstall", "vmstat", Keys("allocstall_")),
    ("oom_kill", "vmstat", Key("oom_kill")),
    ("free_order_0", "buddyinfo", FreeBlocks(0)),
    ("free_order_1", "buddyinfo", FreeBlocks(1)),
    ("free_order_2", "buddyinfo", FreeBlocks(2)),
    ("free_order_3", "buddyinfo", FreeBlocks(3)),
    ("free_order_4", "buddyinfo", FreeBlocks(4)),
    ("free_order_5", "buddyinfo", FreeBlocks(5)),
    ("free_order_6", "buddyinfo", FreeBlocks(6)),
    ("free_order_7", "buddyinfo", FreeBlocks(7)),
    ("free_order_8", "buddyinfo", FreeBlocks(8)),
    ("free_order_9", "buddyinfo", FreeBlocks(9)),
    ("free_order_10", "buddyinfo", FreeBlocks(10)),
];

/// Watches what the kernel holds.
#[derive(Debug)]
pub struct KernelMemory {
    columns: Columns,
    seldom: Seldom,
}

impl KernelMemory {
    /// Opens the files under `proc` (normally `/proc`); a row at once, and one each `every`.
    ///
    /// # Errors
    /// When none of them can be read.
    pub fn open(proc: &Path, every: Duration) -> Result<Self, ProbeError> {
        let columns = Columns::open(COLUMNS.map(|(name, file, field)| (name, proc.join(file), field)));
        if columns.names().is_empty() {
            Rereadable::open(&proc.join("meminfo"))?;
        }
        Ok(Self { columns, seldom: Seldom::new(every) })
    }
}

impl Probe for KernelMemory {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.names()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        if self.seldom.is_due(Instant::now()) {
            self.columns.sample(row);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use plimsoll_record::ABSENT_SAMPLE;
    use std::collections::BTreeMap;

    fn known() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("sys/fs")).unwrap();
        for (name, text) in [
            ("meminfo", "Slab: 90 kB\nSUnreclaim: 40 kB\nPageTables: 7 kB\n"),
            ("vmstat", "allocstall_dma 1\nallocstall_normal 5\ncompact_stall 3\n"),
            ("sys/fs/file-nr", "1842\t0\t2466170\n"),
            ("sys/fs/dentry-state", "61\t50\t45\t0\t9\t0\n"),
            ("buddyinfo", "Node 0, zone      DMA      0      1      3 \nNode 0, zone   Normal  10   20   30 \n"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn rows(probe: &mut KernelMemory) -> Vec<BTreeMap<&'static str, i64>> {
        let (columns, mut found) = (probe.columns(), Vec::new());
        probe.sample(&mut |row| found.push(columns.iter().copied().zip(row.iter().copied()).collect()));
        found
    }

    #[test]
    fn a_known_kernel_is_read_and_what_it_lacks_is_absent() {
        let folder = known();
        let mut probe = KernelMemory::open(folder.path(), Duration::ZERO).unwrap();
        let found = rows(&mut probe).remove(0);
        assert_eq!((found["slab_kib"], found["files_open"], found["dentries"]), (90, 1842, 61));
        assert_eq!((found["allocstall"], found["compact_stall"]), (6, 3));
        assert_eq!((found["free_order_0"], found["free_order_1"], found["free_order_2"]), (10, 21, 33));
        assert!(!found.contains_key("free_order_3") && !found.contains_key("inodes"));
        std::fs::write(folder.path().join("vmstat"), "compact_stall 4\n").unwrap();
        let later = rows(&mut probe).remove(0);
        assert_eq!((later["compact_stall"], later["allocstall"]), (4, ABSENT_SAMPLE));
    }

    #[test]
    fn it_is_read_at_once_and_then_seldom() {
        let folder = known();
        let mut probe = KernelMemory::open(folder.path(), Duration::from_secs(3600)).unwrap();
        assert_eq!((rows(&mut probe).len(), rows(&mut probe).len()), (1, 0));
    }

    #[test]
    fn times_are_kept_and_what_was_missed_is_not_made_up_for() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut seldom = Seldom::new(60 * second);
        let due: Vec<u32> = (0..400).filter(|at| seldom.is_due(begin + *at * second)).collect();
        assert_eq!(due, [0, 57, 117, 177, 237, 297, 357]);
        let after_a_pause: Vec<u32> = (1000..1100).filter(|at| seldom.is_due(begin + *at * second)).collect();
        assert_eq!(after_a_pause, [1000, 1057]);
    }

    #[test]
    fn a_folder_without_any_of_them_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(KernelMemory::open(folder.path(), Duration::ZERO).is_err());
    }

    #[test]
    #[ignore = "prints what a sample costs"]
    fn cost() {
        let mut probe = KernelMemory::open(Path::new("/proc"), Duration::ZERO).unwrap();
        let start = Instant::now();
        (0..1000).for_each(|_| probe.sample(&mut |_| {}));
        println!("a sample of the kernel's memory takes {:?}", start.elapsed() / 1000);
    }
}
