//! Each fsync and fdatasync of a target's processes, and what it waits for; definitions in README.md.

mod nfs;
mod records;
mod self_test;
mod totals;

use crate::bpf::{CostMeter, Functions, Kernel, Programs, Wanted, WatchedFileSystem, summed};
use crate::folders::{self, Known};
use crate::nfs_calls;
use crate::subject::Subject;
use crate::{Probe, Refusal};
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};
use plimsoll_record::{Check, ProbeReport, ProbeStatus, SyncReport, SyncTotals, SyncWriter};
use records::{OF_A_JOURNAL, OF_NFS, OF_WRITING, Record, Tells};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sync.bpf.o"));

/// Classes in the program's order: those of the server's files, and all other files.
const CLASSES: [&str; 6] = ["data", "wal", "global", "temp", "other", "elsewhere"];
/// `enum call`.
const CALLS: [&str; 2] = ["fsync", "fdatasync"];
/// `enum lost`, and what the kernel left out.
const LOST: [&str; 3] = ["files", "tasks", "records"];
const LOST_EVENTS: &str = "events";
/// File systems that tell when they write pages and when a commit of their journal has ended.
const TELLING: &str = "ext4";
/// NFS has no tracepoint in the kernel itself but that of each page that is handed over; its waits are told by the stacks that they are in.
const PAGE_OF_NFS: (&str, &str) = ("on_page_of_nfs", "wbc_writepage");
const DEVICES: usize = 8;

/// Programs and their tracepoints: what bounds a call, on any file system and where all of them are ext4; the others tell parts.
type Bounds = [(&'static str, &'static str); 2];
const OF_CALLS: Bounds = [("on_sys_enter", "sys_enter"), ("on_sys_exit", "sys_exit")];
const OF_EXT4: Bounds = [("on_ext4_enter", "ext4_sync_file_enter"), ("on_ext4_exit", "ext4_sync_file_exit")];
const OF_PARTS: [(&str, &str); 7] = [
    ("on_switch", "sched_switch"),
    ("on_wait_for_page", "folio_wait_writeback"),
    ("on_bio", "block_bio_queue"),
    ("on_issue", "block_rq_issue"),
    ("on_complete", "block_rq_complete"),
    ("on_writing", "ext4_writepages"),
    ("on_written", "ext4_writepages_result"),
];
/// Only where there is a journal, for the first runs at every wake-up of the machine.
const OF_JOURNAL: [(&str, &str); 3] =
    [("on_waking", "sched_waking"), ("on_start_commit", "jbd2_start_commit"), ("on_end_commit", "jbd2_end_commit")];
/// A folder for each journal of ext4 that is in use: `vda-8` of a device's own, the name of a device that is another's.
const JOURNALS: &str = "/proc/fs/jbd2";
/// What is not told without a tracepoint; it is then within `cpu` and `other_wait`.
const NEEDED_BY: [(&str, &str); 2] = [("folio_wait_writeback", "write_io"), ("block_bio_queue", "flush")];

/// The probe.
pub struct Syncs {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    ended: MapHandle,
    losses: MapHandle,
    cost: CostMeter,
    checks: Vec<Check>,
    bounds: Bounds,
    file_systems: Vec<WatchedFileSystem>,
    absent: BTreeMap<String, String>,
    out: PathBuf,
    recording: Recording,
    lost_before: Vec<i64>,
}

enum Recording {
    NotYet,
    Now(Box<Recorded>),
    Failed(String),
}

struct Recorded {
    /// Until the table is closed.
    writer: Option<SyncWriter>,
    totals: BTreeMap<(u8, u8), SyncTotals>,
    open_ns_max: i64,
    unreadable: u64,
}

impl Recorded {
    fn take(&mut self, records: &[Option<Record>]) -> io::Result<()> {
        for record in records {
            let Some(record) = record else {
                self.unreadable += 1;
                continue;
            };
            self.open_ns_max = self.open_ns_max.max(record.open_ns().abs());
            totals::add(self.totals.entry((record.row.class, record.row.call)).or_default(), record);
            if let Some(writer) = &mut self.writer {
                writer.append(&record.row)?;
            }
        }
        self.writer.as_mut().map_or(Ok(()), SyncWriter::flush)
    }
}

/// Takes what is in the ring; None for what cannot be read.
fn drain(ended: &MapHandle) -> Result<Vec<Option<Record>>, Refusal> {
    let failed = |error: libbpf_rs::Error| Refusal::from(format!("the ring of syncs: {error}"));
    let records = std::cell::RefCell::new(Vec::new());
    {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(ended, |bytes| {
                records.borrow_mut().push(Record::decode(bytes));
                0
            })
            .map_err(failed)?;
        builder.build().map_err(failed)?.consume().map_err(failed)?;
    }
    Ok(records.into_inner())
}

/// The number of the disk that a device is, or is a part of; 0 if it is none.
fn disk_of(device: &str) -> u32 {
    let number = |path: &Path| {
        let text = fs::read_to_string(path.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
    };
    let Ok(own) = fs::canonicalize(Path::new("/sys/dev/block").join(device)) else { return 0 };
    let whole = if own.join("partition").exists() { own.parent().map(Path::to_owned) } else { Some(own) };
    whole.and_then(|folder| number(&folder)).unwrap_or(0)
}

/// How parts are told where files are on NFS: None where there is none, else where the kernel's functions are, or why that is not known.
fn by_stack(kernel: &Kernel, file_systems: &[WatchedFileSystem]) -> Option<Result<Functions, Refusal>> {
    if !file_systems.iter().any(is_by_stack) {
        return None;
    }
    if !kernel.has_tracepoint(PAGE_OF_NFS.1) {
        return Some(Err(Refusal::from(format!("this kernel has no tracepoint {}", PAGE_OF_NFS.1))));
    }
    Some(nfs::functions())
}

fn is_by_stack(one: &WatchedFileSystem) -> bool {
    nfs_calls::KINDS.contains(&one.shown.kind.as_str())
}

/// `enum tells`.
fn tells(one: &WatchedFileSystem, knows_stacks: bool) -> Tells {
    if one.shown.kind == TELLING {
        Tells::OfAJournal
    } else if is_by_stack(one) && knows_stacks {
        Tells::ByStack
    } else {
        Tells::Nothing
    }
}

/// `struct settings`.
fn settings(known: &Known, knows_stacks: bool) -> Result<Vec<u8>, Refusal> {
    let mut words = folders::words(&known.devices(), true)?;
    let of_each = |of: &dyn Fn(&WatchedFileSystem) -> u32| {
        let mut found: Vec<u32> = known.file_systems.iter().map(of).collect();
        found.resize(DEVICES, 0);
        found
    };
    words.extend(of_each(&|one| disk_of(&one.shown.device)));
    words.extend(of_each(&|one| tells(one, knows_stacks) as u32));
    words.extend([libc::SYS_fsync as u32, libc::SYS_fdatasync as u32, u32::from(knows_stacks)]);
    Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// Parts that are not told here, and why.
fn absent(
    kernel: &Kernel,
    file_systems: &[WatchedFileSystem],
    by_stack: Option<&Result<Functions, Refusal>>,
) -> BTreeMap<String, String> {
    let mut absent = BTreeMap::new();
    let others = file_systems.iter().filter(|one| one.shown.kind != TELLING && !is_by_stack(one));
    let others: Vec<&str> = others.map(|one| one.shown.kind.as_str()).collect();
    if !others.is_empty() {
        let why = format!("not reported by {}; included in cpu, write_io and other_wait", others.join(", "));
        absent.extend(OF_WRITING.iter().chain(&OF_A_JOURNAL).map(|part| ((*part).to_owned(), why.clone())));
    }
    if let Some(Err(refusal)) = by_stack {
        let why = format!("on NFS: {}; included in cpu, write_io and other_wait", refusal.with_its_remedy());
        absent.extend(OF_WRITING.iter().chain(&OF_NFS).map(|part| ((*part).to_owned(), why.clone())));
    }
    for (tracepoint, part) in NEEDED_BY.into_iter().filter(|(tracepoint, _)| !kernel.has_tracepoint(tracepoint)) {
        absent.insert(part.to_owned(), format!("this kernel has no tracepoint {tracepoint}"));
    }
    absent
}

fn bounds(kernel: &Kernel, file_systems: &[WatchedFileSystem]) -> Bounds {
    let all_tell = file_systems.iter().all(|one| one.shown.kind == TELLING);
    let known = OF_EXT4.iter().all(|(_, tracepoint)| kernel.has_tracepoint(tracepoint));
    if all_tell && known { OF_EXT4 } else { OF_CALLS }
}

/// Whether one of `journals`, folders of `JOURNALS`, is that of a file system on the device called `device`.
fn has_journal(journals: &[String], device: &str) -> bool {
    journals.iter().any(|journal| journal.rsplit_once('-').is_some_and(|(of, _)| of == device))
}

/// Whether a file system of the server may have a journal; it has where that cannot be told.
fn journals(file_systems: &[WatchedFileSystem]) -> bool {
    let name = |one: &WatchedFileSystem| {
        let link = fs::canonicalize(Path::new("/sys/dev/block").join(&one.shown.device)).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    };
    let Ok(folders) = fs::read_dir(JOURNALS) else { return Path::new(JOURNALS).exists() };
    let folders: Vec<String> = folders.flatten().map(|one| one.file_name().to_string_lossy().into_owned()).collect();
    if folders.iter().any(|name| Path::new("/sys/class/block").join(name).exists()) {
        // A journal on a device of its own, of whichever file system.
        return true;
    }
    let telling = file_systems.iter().filter(|one| one.shown.kind == TELLING);
    telling.map(name).any(|name| name.is_none_or(|name| has_journal(&folders, &name)))
}

fn wanted(kernel: &Kernel, bounds: Bounds, journals: bool, knows_stacks: bool) -> Vec<Wanted> {
    let of_journal: &[(&str, &str)] = if journals { &OF_JOURNAL } else { &[] };
    let of_nfs = knows_stacks.then_some(&PAGE_OF_NFS);
    let parts = OF_PARTS.iter().chain(of_journal).chain(of_nfs).copied();
    let told = parts.filter(|(_, tracepoint)| kernel.has_tracepoint(tracepoint));
    bounds.into_iter().chain(told).map(|(function, _)| Wanted { function, tracepoint: None }).collect()
}

impl Syncs {
    /// Loads, attaches and tests the probe; the table goes to `out`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(subject: &Subject, out: &Path) -> Result<Self, Refusal> {
        let known = subject.files.known()?;
        let kernel = Kernel::read()?;
        let by_stack = by_stack(&kernel, &known.file_systems);
        let absent = absent(&kernel, &known.file_systems, by_stack.as_ref());
        let bounds = bounds(&kernel, &known.file_systems);
        let functions = by_stack.and_then(Result::ok);
        let wanted = wanted(&kernel, bounds, journals(&known.file_systems), functions.is_some());
        let programs = Programs::start(OBJECT, &settings(&known, functions.is_some())?, &wanted, |programs| {
            functions.as_ref().map_or(Ok(()), |functions| functions.fill(programs))?;
            known.fill(programs, false)
        })?;
        let target = programs.map_of_section(".data.target")?;
        let aim = |parent: u32| {
            let told = [parent.to_ne_bytes(), [0; 4]].concat();
            let told = target.update(&0_u32.to_ne_bytes(), &told, MapFlags::ANY);
            told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
        };
        let ended = programs.map("ended")?;
        aim(std::process::id())?;
        let checks = self_test::run(&subject.files.folder, &|| drain(&ended))?;
        aim(subject.process)?;
        Ok(Self {
            losses: programs.map("losses")?,
            cost: programs.cost_meter()?,
            _programs: programs,
            ended,
            checks,
            bounds,
            file_systems: known.file_systems,
            absent,
            out: out.to_owned(),
            recording: Recording::NotYet,
            lost_before: Vec::new(),
        })
    }

    fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }

    /// What was before the segment is let go.
    fn begin(&mut self) -> Result<(), String> {
        drain(&self.ended).map_err(|refusal| refusal.reason)?;
        self.lost_before = self.lost();
        let writer = SyncWriter::create(&self.out).map_err(|error| error.to_string())?;
        let recorded = Recorded { writer: Some(writer), totals: BTreeMap::new(), open_ns_max: 0, unreadable: 0 };
        self.recording = Recording::Now(Box::new(recorded));
        Ok(())
    }

    fn go_on(&mut self) {
        let done = match &mut self.recording {
            Recording::NotYet => self.begin(),
            Recording::Now(recorded) => {
                let records = drain(&self.ended).map_err(|refusal| refusal.reason);
                records.and_then(|records| recorded.take(&records).map_err(|error| error.to_string()))
            }
            Recording::Failed(_) => Ok(()),
        };
        if let Err(reason) = done {
            self.recording = Recording::Failed(format!("sync.npy cannot be written: {reason}"));
        }
    }

    /// The table is as long as its header says.
    fn close(&mut self) {
        let Recording::Now(recorded) = &mut self.recording else { return };
        if let Some(Err(error)) = recorded.writer.take().map(SyncWriter::close) {
            self.recording = Recording::Failed(format!("sync.npy cannot be written: {error}"));
        }
    }

    fn add_totals(&self, recorded: &Recorded, report: &mut SyncReport) {
        for (&(class, call), totals) in &recorded.totals {
            let class = CLASSES.get(usize::from(class)).copied().unwrap_or("elsewhere").to_owned();
            let call = CALLS[usize::from(call).min(CALLS.len() - 1)].to_owned();
            report.sync_totals.entry(class).or_default().insert(call, totals.clone());
        }
        report.open_ns_max = Some(recorded.open_ns_max);
        report.lost.insert("unreadable".to_owned(), recorded.unreadable);
    }
}

impl Probe for Syncs {
    /// It writes a table of its own.
    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn sample(&mut self, _: &mut dyn FnMut(&[i64])) {
        self.go_on();
        self.cost.sampled(false);
    }

    fn report(&mut self) -> Option<ProbeReport> {
        self.close();
        if let Recording::Failed(reason) = &self.recording {
            return Some(ProbeReport::refused(reason.clone(), None));
        }
        let before = |at: usize| self.lost_before.get(at).copied().unwrap_or(0);
        let lost = self.lost().into_iter().enumerate().map(|(at, now)| (now - before(at)).max(0) as u64);
        let mut report = SyncReport {
            status: ProbeStatus::on("tp_btf").without(self.absent.clone()),
            boundaries: [("begin", self.bounds[0].1), ("end", self.bounds[1].1)]
                .map(|(what, how)| (what.to_owned(), how.to_owned()))
                .into(),
            classes: CLASSES.map(str::to_owned).to_vec(),
            calls: CALLS.map(str::to_owned).to_vec(),
            file_systems: self.file_systems.iter().map(|one| one.shown.clone()).collect(),
            checks: self.checks.clone(),
            lost: LOST.map(str::to_owned).into_iter().zip(lost).collect(),
            sync_totals: BTreeMap::new(),
            open_ns_max: None,
            cost: self.cost.cost(),
        };
        report.lost.insert(LOST_EVENTS.to_owned(), self.cost.missed(|_| true));
        if let Recording::Now(recorded) = &self.recording {
            self.add_totals(recorded, &mut report);
        }
        Some(ProbeReport::new(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_told_by_its_device() {
        let folders = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(has_journal(&folders(&["loop0-8", "vda-8"]), "vda"));
        assert!(!has_journal(&folders(&["vda1-8"]), "vda"));
        assert!(has_journal(&folders(&["dm-3-8"]), "dm-3"));
        assert!(!has_journal(&[], "vda"));
    }
}
