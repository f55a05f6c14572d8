//! The host: vmstat's columns from /proc/stat, /proc/meminfo and /proc/vmstat, and pressure where the kernel gives it.

use crate::columns::Columns;
use crate::columns::Field::{self, Cpu, Key, Pressure};
use crate::text::Rereadable;
use crate::{Probe, ProbeError};
use std::path::Path;

/// Files that every kernel has.
const NEEDED: [&str; 3] = ["stat", "meminfo", "vmstat"];

/// Columns in the order of `schema/record.md`, and where each comes from.
const COLUMNS: [(&str, &str, Field); 37] = [
    ("procs_running", "stat", Key("procs_running")),
    ("procs_blocked", "stat", Key("procs_blocked")),
    ("mem_total_kib", "meminfo", Key("MemTotal")),
    ("mem_free_kib", "meminfo", Key("MemFree")),
    ("mem_available_kib", "meminfo", Key("MemAvailable")),
    ("buffers_kib", "meminfo", Key("Buffers")),
    ("cached_kib", "meminfo", Key("Cached")),
    ("s_reclaimable_kib", "meminfo", Key("SReclaimable")),
    ("swap_total_kib", "meminfo", Key("SwapTotal")),
    ("swap_free_kib", "meminfo", Key("SwapFree")),
    ("dirty_kib", "meminfo", Key("Dirty")),
    ("writeback_kib", "meminfo", Key("Writeback")),
    ("shmem_kib", "meminfo", Key("Shmem")),
    ("pswpin", "vmstat", Key("pswpin")),
    ("pswpout", "vmstat", Key("pswpout")),
    ("pgpgin", "vmstat", Key("pgpgin")),
    ("pgpgout", "vmstat", Key("pgpgout")),
    ("pgfault", "vmstat", Key("pgfault")),
    ("pgmajfault", "vmstat", Key("pgmajfault")),
    ("workingset_refault_file", "vmstat", Key("workingset_refault_file")),
    ("intr", "stat", Key("intr")),
    ("ctxt", "stat", Key("ctxt")),
    ("cpu_user", "stat", Cpu(0)),
    ("cpu_nice", "stat", Cpu(1)),
    ("cpu_system", "stat", Cpu(2)),
    ("cpu_idle", "stat", Cpu(3)),
    ("cpu_iowait", "stat", Cpu(4)),
    ("cpu_irq", "stat", Cpu(5)),
    ("cpu_softirq", "stat", Cpu(6)),
    ("cpu_steal", "stat", Cpu(7)),
    ("cpu_guest", "stat", Cpu(8)),
    ("cpu_guest_nice", "stat", Cpu(9)),
    ("psi_cpu_some_us", "pressure/cpu", Pressure("some")),
    ("psi_memory_some_us", "pressure/memory", Pressure("some")),
    ("psi_memory_full_us", "pressure/memory", Pressure("full")),
    ("psi_io_some_us", "pressure/io", Pressure("some")),
    ("psi_io_full_us", "pressure/io", Pressure("full")),
];

/// Watches the host.
#[derive(Debug)]
pub struct Host {
    columns: Columns,
}

impl Host {
    /// Opens the files under `proc` (normally `/proc`).
    ///
    /// # Errors
    /// When stat, meminfo or vmstat cannot be read; pressure may be missing.
    pub fn open(proc: &Path) -> Result<Self, ProbeError> {
        for name in NEEDED {
            Rereadable::open(&proc.join(name))?;
        }
        let columns = Columns::open(COLUMNS.map(|(name, file, field)| (name, proc.join(file), field)));
        Ok(Self { columns })
    }
}

impl Probe for Host {
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
    use plimsoll_record::ABSENT_SAMPLE;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    fn known_host(folder: &Path) {
        let stat =
            "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 0\nintr 500 1 2\nctxt 600\nprocs_running 2\nprocs_blocked 1\n";
        write(folder, "stat", stat);
        write(folder, "meminfo", "MemTotal:  100 kB\nMemFree: 40 kB\nCached: 7 kB\nSwapCached: 99 kB\n");
        write(folder, "vmstat", "pgpgin 11\npswpin 12\n");
        write(folder, "pressure/io", "some avg10=0.00 total=77\nfull avg10=0.00 total=66\n");
    }

    fn sampled(host: &mut Host) -> Vec<(&'static str, i64)> {
        let columns = host.columns();
        let mut values = Vec::new();
        host.sample(&mut |row| values.extend_from_slice(row));
        columns.into_iter().zip(values).collect()
    }

    #[test]
    fn a_known_host_is_read_and_what_it_lacks_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        known_host(folder.path());
        let mut host = Host::open(folder.path()).unwrap();
        let sample: std::collections::BTreeMap<_, _> = sampled(&mut host).into_iter().collect();
        assert_eq!((sample["procs_running"], sample["mem_free_kib"], sample["cached_kib"]), (2, 40, 7));
        assert_eq!((sample["cpu_user"], sample["cpu_guest_nice"], sample["intr"]), (1, 10, 500));
        assert_eq!((sample["pswpin"], sample["psi_io_some_us"], sample["psi_io_full_us"]), (12, 77, 66));
        assert!(!sample.contains_key("pswpout") && !sample.contains_key("psi_cpu_some_us"));
        write(folder.path(), "vmstat", "pgpgin 13\n");
        let later: std::collections::BTreeMap<_, _> = sampled(&mut host).into_iter().collect();
        assert_eq!((later["pgpgin"], later["pswpin"]), (13, ABSENT_SAMPLE));
    }

    #[test]
    fn this_host_has_the_columns_of_vmstat() {
        let columns = Host::open(Path::new("/proc")).unwrap().columns();
        for name in ["procs_running", "mem_free_kib", "pswpin", "pgpgout", "ctxt", "cpu_idle"] {
            assert!(columns.contains(&name), "{name}");
        }
    }

    #[test]
    #[ignore = "prints what a sample costs"]
    fn cost() {
        let mut host = Host::open(Path::new("/proc")).unwrap();
        let start = std::time::Instant::now();
        (0..1000).for_each(|_| host.sample(&mut |_| {}));
        println!("a host sample takes {:?}", start.elapsed() / 1000);
    }
}
