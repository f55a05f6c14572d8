//! The host: vmstat's columns from /proc/stat, /proc/meminfo and /proc/vmstat, and pressure where the kernel gives it.

use crate::text::{Rereadable, keyed};
use crate::{Probe, ProbeError};
use plimsoll_record::ABSENT_SAMPLE;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Stat,
    Memory,
    Vm,
    PressureCpu,
    PressureMemory,
    PressureIo,
}

const FILES: [(Source, &str); 6] = [
    (Source::Stat, "stat"),
    (Source::Memory, "meminfo"),
    (Source::Vm, "vmstat"),
    (Source::PressureCpu, "pressure/cpu"),
    (Source::PressureMemory, "pressure/memory"),
    (Source::PressureIo, "pressure/io"),
];

#[derive(Clone, Copy, Debug)]
enum Field {
    /// The number after a key.
    Key(&'static str),
    /// The n-th number of the line `cpu`.
    Cpu(usize),
    /// The total of a pressure file's line.
    Total(&'static str),
}

use Field::{Cpu, Key, Total};
use Source::{Memory, PressureCpu, PressureIo, PressureMemory, Stat, Vm};

/// Columns in the order of `schema/record.md`, and where each comes from.
const COLUMNS: [(&str, Source, Field); 37] = [
    ("procs_running", Stat, Key("procs_running")),
    ("procs_blocked", Stat, Key("procs_blocked")),
    ("mem_total_kib", Memory, Key("MemTotal")),
    ("mem_free_kib", Memory, Key("MemFree")),
    ("mem_available_kib", Memory, Key("MemAvailable")),
    ("buffers_kib", Memory, Key("Buffers")),
    ("cached_kib", Memory, Key("Cached")),
    ("s_reclaimable_kib", Memory, Key("SReclaimable")),
    ("swap_total_kib", Memory, Key("SwapTotal")),
    ("swap_free_kib", Memory, Key("SwapFree")),
    ("dirty_kib", Memory, Key("Dirty")),
    ("writeback_kib", Memory, Key("Writeback")),
    ("shmem_kib", Memory, Key("Shmem")),
    ("pswpin", Vm, Key("pswpin")),
    ("pswpout", Vm, Key("pswpout")),
    ("pgpgin", Vm, Key("pgpgin")),
    ("pgpgout", Vm, Key("pgpgout")),
    ("pgfault", Vm, Key("pgfault")),
    ("pgmajfault", Vm, Key("pgmajfault")),
    ("workingset_refault_file", Vm, Key("workingset_refault_file")),
    ("intr", Stat, Key("intr")),
    ("ctxt", Stat, Key("ctxt")),
    ("cpu_user", Stat, Cpu(0)),
    ("cpu_nice", Stat, Cpu(1)),
    ("cpu_system", Stat, Cpu(2)),
    ("cpu_idle", Stat, Cpu(3)),
    ("cpu_iowait", Stat, Cpu(4)),
    ("cpu_irq", Stat, Cpu(5)),
    ("cpu_softirq", Stat, Cpu(6)),
    ("cpu_steal", Stat, Cpu(7)),
    ("cpu_guest", Stat, Cpu(8)),
    ("cpu_guest_nice", Stat, Cpu(9)),
    ("psi_cpu_some_us", PressureCpu, Total("some")),
    ("psi_memory_some_us", PressureMemory, Total("some")),
    ("psi_memory_full_us", PressureMemory, Total("full")),
    ("psi_io_some_us", PressureIo, Total("some")),
    ("psi_io_full_us", PressureIo, Total("full")),
];

fn value(text: &str, field: Field) -> Option<i64> {
    match field {
        Key(key) => keyed(text, key),
        Cpu(place) => {
            let line = text.lines().find(|line| line.starts_with("cpu "))?;
            line.split_ascii_whitespace().nth(place + 1)?.parse().ok()
        }
        Total(line) => {
            let line = text.lines().find(|candidate| candidate.starts_with(line))?;
            line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
        }
    }
}

/// Watches the host.
#[derive(Debug)]
pub struct Host {
    files: Vec<(Source, Rereadable)>,
    columns: Vec<(&'static str, Source, Field)>,
    row: Vec<i64>,
}

impl Host {
    /// Opens the files under `proc` (normally `/proc`).
    ///
    /// # Errors
    /// When stat, meminfo or vmstat cannot be read; pressure may be missing.
    pub fn open(proc: &Path) -> Result<Self, ProbeError> {
        let mut files = Vec::new();
        for (source, name) in FILES {
            match Rereadable::open(&proc.join(name)) {
                Ok(file) => files.push((source, file)),
                Err(_) if name.starts_with("pressure") => {}
                Err(error) => return Err(error),
            }
        }
        let mut columns: Vec<(&'static str, Source, Field)> = Vec::new();
        for (source, file) in &mut files {
            let Ok(text) = file.read() else { continue };
            columns.extend(COLUMNS.iter().filter(|(_, from, field)| from == source && value(text, *field).is_some()));
        }
        columns.sort_by_key(|(name, ..)| COLUMNS.iter().position(|(known, ..)| known == name));
        Ok(Self { files, columns, row: Vec::new() })
    }
}

impl Probe for Host {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, ..)| *name).collect()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.row.clear();
        self.row.resize(self.columns.len(), ABSENT_SAMPLE);
        for (source, file) in &mut self.files {
            let Ok(text) = file.read() else { continue };
            for (place, (_, from, field)) in self.columns.iter().enumerate() {
                if from == source {
                    self.row[place] = value(text, *field).unwrap_or(ABSENT_SAMPLE);
                }
            }
        }
        row(&self.row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
