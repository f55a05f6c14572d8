//! What the programs are told before they are loaded: the disks, what is on them, and where journals lie.

use super::disks::{DISKS_MAX, Disk, System};
use super::journal;
use crate::Refusal;
use crate::bpf::{Kernel, WatchedFileSystem};
use crate::folders::{self, Known};
use crate::profile::kernel_names::KernelNames;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

const DEVICES: usize = 8;
const RANGES: usize = 8;
/// File systems whose journal jbd2 writes, which can be told even where its place cannot be read.
const OF_JBD2: [&str; 2] = ["ext4", "ext3"];
const JOURNAL_END: &str = "journal_end_buffer_io_sync";

/// A range of a journal, and the place of its disk.
type Placed = (journal::Range, usize);

/// The disks, in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) disks: Vec<Disk>,
    disks_of: Vec<u32>,
    volumes: Vec<u32>,
    journals: Vec<Placed>,
    /// The function that jbd2 has called at the end of what it writes.
    journal_end: Option<u64>,
    /// Classes and columns that are not told, and why.
    pub(super) absent: BTreeMap<String, String>,
}

fn find_journal(file_system: &WatchedFileSystem) -> Result<Option<Vec<journal::Range>>, String> {
    let (kind, device) = (file_system.shown.kind.as_str(), &file_system.shown.device);
    let failed = |error: std::io::Error| format!("{kind} on {device}: {error}");
    let path = fs::canonicalize(Path::new("/sys/dev/block").join(device)).map_err(failed)?;
    let node = Path::new("/dev").join(path.file_name().unwrap_or_default());
    journal::ranges(kind, &File::open(node).map_err(failed)?).map_err(failed)
}

impl Watched {
    /// The disks that hold the server's file systems.
    pub(super) fn of(known: &Known, system: &System) -> Result<Self, Refusal> {
        let journal_end = KernelNames::read().address(JOURNAL_END);
        let mut watched = Self { journal_end, ..Self::default() };
        for file_system in &known.file_systems {
            let holders = system.holders(file_system)?;
            let mut places = 0;
            for disk in holders.disks {
                places |= 1 << watched.place(disk);
            }
            watched.disks_of.push(places);
            watched.volumes.extend(holders.volumes);
            watched.add_journal(file_system, holders.begins_at, places);
        }
        if watched.disks.len() > DISKS_MAX || watched.volumes.len() > DISKS_MAX {
            return Err(Refusal::from(format!("the server's files are on more than {DISKS_MAX} disks")));
        }
        watched.add_untold();
        Ok(watched)
    }

    fn place(&mut self, disk: Disk) -> usize {
        let known = self.disks.iter().position(|other| *other == disk);
        known.unwrap_or_else(|| {
            self.disks.push(disk);
            self.disks.len() - 1
        })
    }

    fn add_journal(&mut self, file_system: &WatchedFileSystem, begins_at: Option<u64>, places: u32) {
        let kind = &file_system.shown.kind;
        let found = match begins_at {
            Some(begins_at) => find_journal(file_system).map(|ranges| (begins_at, ranges)),
            None => Err(format!("{kind} on {}: it spans several disks", file_system.shown.device)),
        };
        let why = match found {
            Ok((begins_at, Some(ranges))) if self.journals.len() + ranges.len() <= RANGES => {
                let place = places.trailing_zeros() as usize;
                let placed = ranges.iter().map(|(from, to)| ((from + begins_at, to + begins_at), place));
                self.journals.extend(placed);
                return;
            }
            Ok((_, Some(_))) => format!("the journal of {kind} is in more than {RANGES} pieces"),
            Ok((_, None)) => format!("{kind} has no journal at a location of its own"),
            Err(why) => why,
        };
        if self.journal_end.is_some() && OF_JBD2.contains(&kind.as_str()) {
            return;
        }
        self.absent.insert("journal".to_owned(), format!("{why}; it is within metadata"));
    }

    fn add_untold(&mut self) {
        for disk in &self.disks {
            let path = Path::new("/sys/block").join(&disk.name).join("queue/iostats");
            if fs::read_to_string(&path).is_ok_and(|text| text.trim() == "0") {
                let why = format!("{} is 0, so the kernel may not note when a request begins", path.display());
                self.absent.insert("queue_ns".to_owned(), why);
            }
        }
    }

    /// `struct settings`.
    pub(super) fn bytes(&self, known: &Known) -> Result<Vec<u8>, Refusal> {
        let padded = |numbers: &mut dyn Iterator<Item = u32>, most: usize| {
            let mut numbers: Vec<u32> = numbers.collect();
            numbers.resize(most, 0);
            numbers
        };
        let mut words = folders::words(&known.devices(), true)?;
        words.extend(padded(&mut self.disks.iter().map(|disk| disk.number), DISKS_MAX));
        words.extend(padded(&mut self.disks_of.iter().copied(), DEVICES));
        words.extend(padded(&mut self.volumes.iter().copied(), DISKS_MAX));
        words.push(0);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.journal_end.unwrap_or(0).to_ne_bytes());
        let none = ((0, 0), 0);
        for ((from, to), place) in self.journals.iter().chain(std::iter::repeat(&none)).take(RANGES) {
            bytes.extend([*from, *to].iter().flat_map(|sector| sector.to_ne_bytes()));
            bytes.extend([*place as u32, 0].iter().flat_map(|word| word.to_ne_bytes()));
        }
        Ok(bytes)
    }
}

/// Tracepoints that only some kernels have, and what is not told without them.
pub(super) fn without(kernel: &Kernel, tracepoint: &str) -> Option<String> {
    (!kernel.has_tracepoint(tracepoint)).then(|| format!("this kernel has no tracepoint {tracepoint}"))
}
