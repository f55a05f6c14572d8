//! What a pass is asked to be, and what of it is refused, each by the name of its field.

use crate::passes::{Closing, Order, Shape, Stop};
use crate::stamp::SECTOR;
use rustix::fs::{Advice, OFlags};
use serde::{Deserialize, Serialize};

const RECORD_BYTES_MAX: u64 = 64 << 20;
const RECORDS_MAX: u64 = 1 << 40;
const PROCESSES_MAX: u32 = 1_024;
const DEPTH_MAX: u32 = 4_096;
/// Buffers that the kernel registers with a ring at most.
const FIXED_BUFFERS_MAX: u32 = 1 << 14;

/// What is done to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pass {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
    Mixed,
    BackwardRead,
    StrideRead,
    Pwrite,
    Pread,
}

/// Which calls of the kernel move the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Engine {
    /// One after the other, by a thread for each process.
    #[default]
    Sync,
    /// On an io_uring.
    IoUring,
    /// By copies from and to the files mapped into memory, by a thread for each process.
    Mmap,
}

/// posix_fadvise(2) on each file before the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hint {
    #[default]
    Normal,
    Sequential,
    Random,
    Noreuse,
}

/// The part of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(rename = "name")]
    _name: String,
    seed: u64,
    pub(super) pass: Pass,
    pub(super) processes: u32,
    file_bytes: u64,
    record_bytes: u64,
    #[serde(default)]
    pub(super) engine: Engine,
    #[serde(default = "one")]
    pub(super) depth: u32,
    #[serde(default)]
    pub(super) direct: bool,
    #[serde(default)]
    pub(super) o_sync: bool,
    #[serde(default)]
    pub(super) include_fsync: bool,
    #[serde(default)]
    pub(super) include_close: bool,
    #[serde(default)]
    pub(super) fixed_buffers: bool,
    #[serde(default)]
    pub(super) fixed_files: bool,
    #[serde(default)]
    pub(super) uncached: bool,
    #[serde(default)]
    pub(super) advice: Hint,
    #[serde(default)]
    pub(super) stop: Stop,
    /// Whether what is read is compared with what was written.
    #[serde(default = "yes")]
    pub(super) verify: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Parameters {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(super) fn validate(&self) -> Result<(), String> {
        let refuse = |field: &str, why: String| Err(format!("workload.{field}: {why}"));
        let (sector, record, file) = (SECTOR as u64, self.record_bytes, self.file_bytes);
        if record == 0 || !record.is_multiple_of(sector) || record > RECORD_BYTES_MAX {
            return refuse("record_bytes", format!("{record} is not a multiple of {sector} up to {RECORD_BYTES_MAX}"));
        }
        if file == 0 || !file.is_multiple_of(record) || file / record > RECORDS_MAX {
            return refuse("file_bytes", format!("{file} is not 1 to {RECORDS_MAX} records of {record} bytes"));
        }
        if !(1..=PROCESSES_MAX).contains(&self.processes) {
            return refuse("processes", format!("{} is not between 1 and {PROCESSES_MAX}", self.processes));
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return refuse("depth", format!("{} is not between 1 and {DEPTH_MAX}", self.depth));
        }
        if self.direct && self.uncached {
            return refuse("uncached", "direct I/O bypasses the page cache: leave one of them out".to_owned());
        }
        if self.engine == Engine::IoUring {
            return match self {
                Self { include_close: true, .. } => {
                    refuse("include_close", "sessions on an io_uring share a file: only engine \"sync\" can".to_owned())
                }
                Self { fixed_buffers: true, .. } if self.sessions() > FIXED_BUFFERS_MAX => {
                    refuse("fixed_buffers", format!("processes x depth is above {FIXED_BUFFERS_MAX}"))
                }
                _ => Ok(()),
            };
        }
        if self.engine == Engine::Mmap {
            let of_calls = [
                ("direct", self.direct),
                ("o_sync", self.o_sync),
                ("uncached", self.uncached),
                ("pass", matches!(self.pass, Pass::Pwrite | Pass::Pread)),
            ];
            if let Some((field, _)) = of_calls.iter().find(|(_, is_asked)| *is_asked) {
                return refuse(field, "is of calls, which engine \"mmap\" does not make".to_owned());
            }
        }
        let of_ring =
            [("depth", self.depth > 1), ("fixed_buffers", self.fixed_buffers), ("fixed_files", self.fixed_files)];
        match of_ring.iter().find(|(_, is_asked)| *is_asked) {
            Some((field, _)) => refuse(field, "needs engine \"io_uring\"".to_owned()),
            None => Ok(()),
        }
    }

    /// The files that it goes over.
    pub(super) fn shape(&self) -> Shape {
        let Self { seed, processes: files, file_bytes, record_bytes, .. } = *self;
        Shape { seed, files, file_bytes, record_bytes }
    }

    /// How many sessions it has.
    pub(super) fn sessions(&self) -> u32 {
        self.processes * self.depth
    }

    /// Which of its files session `number` goes over.
    pub(super) fn file_of(&self, number: u32) -> u32 {
        number % self.processes
    }

    /// What the process of a file does: of a mixed pass every second one writes.
    pub(super) fn is_writer(&self, file: u32) -> bool {
        match self.pass {
            Pass::Write | Pass::Rewrite | Pass::RandomWrite | Pass::Pwrite => true,
            Pass::Mixed => !file.is_multiple_of(2),
            _ => false,
        }
    }

    /// The place among the kinds of what the process of a file does.
    pub(super) fn kind_of(&self, file: u32) -> u8 {
        u8::from(self.pass == Pass::Mixed && self.is_writer(file))
    }

    /// Whether any process writes.
    pub(super) fn writes(&self) -> bool {
        (0..self.processes.min(2)).any(|file| self.is_writer(file))
    }

    /// The order of a file's records. `newest` is the newest version before the pass.
    pub(super) fn order(&self, file: u32, newest: u64) -> Order {
        match self.pass {
            Pass::BackwardRead => Order::Backward,
            Pass::StrideRead => Order::Stride,
            Pass::RandomRead | Pass::RandomWrite | Pass::Mixed => {
                // Versions have 28 bits.
                let writes = u64::from(self.is_writer(file));
                Order::Random { table: u64::from(file) << 32 | newest << 1 | writes }
            }
            _ => Order::Forward,
        }
    }

    /// Names of the kinds of operation on records.
    pub(super) fn kinds(&self) -> Vec<String> {
        match self.pass {
            Pass::Mixed => vec!["read".to_owned(), "write".to_owned()],
            _ => vec![self.pass.name()],
        }
    }

    /// What of the end of any file belongs to the pass; their kinds come after those of records.
    pub(super) fn closings(&self) -> &'static [Closing] {
        Closing::of(self.include_fsync && self.writes(), self.include_close)
    }

    /// What of the end of one file does: what was not written is not synced.
    pub(super) fn closings_of(&self, file: u32) -> &'static [Closing] {
        Closing::of(self.include_fsync && self.is_writer(file), self.include_close)
    }

    /// How a file is opened for it.
    pub(super) fn flags(&self, file: u32) -> OFlags {
        let writes = self.is_writer(file);
        // What is mapped for writing may be read, too.
        let mut flags = match (writes, self.engine) {
            (false, _) => OFlags::RDONLY,
            (true, Engine::Mmap) => OFlags::RDWR,
            (true, Engine::Sync | Engine::IoUring) => OFlags::WRONLY,
        };
        flags.set(OFlags::DIRECT, self.direct);
        flags.set(OFlags::SYNC, self.o_sync && writes);
        flags
    }
}

impl Pass {
    /// As requests call it.
    pub(super) fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl Hint {
    /// What the kernel is told of a mapping.
    pub(super) fn of_mapping(self) -> Option<plimsoll_mapping::Hint> {
        match self {
            Self::Normal | Self::Noreuse => None,
            Self::Sequential => Some(plimsoll_mapping::Hint::Sequential),
            Self::Random => Some(plimsoll_mapping::Hint::Random),
        }
    }

    /// What the kernel is told.
    pub(super) fn advice(self) -> Option<Advice> {
        match self {
            Self::Normal => None,
            Self::Sequential => Some(Advice::Sequential),
            Self::Random => Some(Advice::Random),
            Self::Noreuse => Some(Advice::NoReuse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parameters(more: Value) -> Result<Parameters, String> {
        let mut value = json!({"name": "sequential_io", "seed": 1, "pass": "read", "processes": 2,
            "file_bytes": 1 << 20, "record_bytes": 4096});
        more.as_object().unwrap().iter().for_each(|(key, field)| value[key] = field.clone());
        let parameters: Parameters = serde_json::from_value(value).map_err(|error| error.to_string())?;
        parameters.validate().map(|()| parameters)
    }

    #[test]
    fn wrong_fields_are_named() {
        for (more, field) in [
            (json!({"record_bytes": 1000}), "workload.record_bytes: 1000"),
            (json!({"file_bytes": 6144}), "workload.file_bytes: 6144"),
            (json!({"processes": 0}), "workload.processes"),
            (json!({"depth": 4}), "workload.depth: needs engine"),
            (json!({"fixed_files": true}), "workload.fixed_files"),
            (json!({"engine": "io_uring", "include_close": true}), "workload.include_close"),
            (json!({"direct": true, "uncached": true}), "workload.uncached"),
            (json!({"engine": "mmap", "direct": true}), "workload.direct: is of calls"),
            (json!({"engine": "mmap", "pass": "pread"}), "workload.pass: is of calls"),
            (json!({"engine": "mmap", "depth": 2}), "workload.depth: needs engine"),
            (json!({"engine": "splice"}), "splice"),
            (json!({"pass": "fwrite"}), "fwrite"),
            (json!({"records": 1}), "records"),
        ] {
            let error = parameters(more.clone()).map(drop).unwrap_err();
            assert!(error.contains(field), "{more}: {error}");
        }
    }

    #[test]
    fn a_mixed_pass_has_readers_and_writers_and_the_others_one_kind() {
        let mixed = parameters(json!({"pass": "mixed", "processes": 3})).unwrap();
        assert_eq!([0, 1, 2].map(|file| mixed.is_writer(file)), [false, true, false]);
        assert_eq!(mixed.kinds(), ["read", "write"]);
        assert!(!parameters(json!({"pass": "mixed", "processes": 1})).unwrap().writes());
        let backward = parameters(json!({"pass": "backward_read"})).unwrap();
        assert_eq!((backward.kinds(), backward.writes()), (vec!["backward_read".to_owned()], false));
        assert_ne!(mixed.order(0, 3), mixed.order(0, 4), "another order after each pass that writes");
    }
}
