//! Each time that a thread of a load on files, or of a server, is off its CPU, and what it waits for; definitions in README.md.

pub(crate) mod places;
mod records;
mod self_test;
mod workers;

use crate::bpf::{CostMeter, Kernel, Programs, Wanted, summed};
use crate::profile::kernel_names::KernelNames;
use crate::{Probe, Refusal};
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};
use places::BUCKETS;
use plimsoll_record::{
    Check, FileWaitRow, FileWaitsReport, ProbeReport, ProbeStatus, RowWriter, WaitPlace, WorkerWaitsReport,
};
use records::{PREEMPTED, UNKNOWN_PLACE, Wait};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use workers::Workers;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/file_waits.bpf.o"));
/// `enum lost`, and what the kernel left out.
const LOST: [&str; 3] = ["waits", "threads", "places"];
const LOST_EVENTS: &str = "events";
const PROGRAMS: [&str; 2] = ["on_switch", "on_exit"];

/// The stacks that waits are in, numbered as the table has them.
struct Places {
    stacks: MapHandle,
    names: KernelNames,
    /// By the kernel's number: the place in `known`.
    by_number: HashMap<u32, u32>,
    known: Vec<WaitPlace>,
}

impl Places {
    fn new(stacks: MapHandle) -> Result<Self, Refusal> {
        let names = KernelNames::read();
        if names.is_empty() {
            let remedy = "set the sysctl kernel.kptr_restrict to 0 or 1";
            return Err(Refusal::with_remedy("the kernel does not show what its functions are called", remedy));
        }
        Ok(Self { stacks, names, by_number: HashMap::new(), known: Vec::new() })
    }

    /// Names the stacks that have come since.
    fn look(&mut self) {
        let keys: Vec<Vec<u8>> = self.stacks.keys().collect();
        for key in keys {
            let Ok(Some(value)) = self.stacks.lookup(&key, MapFlags::ANY) else { continue };
            let Some(number) = value.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes)) else { continue };
            if !self.by_number.contains_key(&number) {
                let place = places::of_stack(&self.names, &records::frames(&key));
                self.add(number, place);
            }
        }
    }

    fn add(&mut self, number: u32, place: WaitPlace) -> u32 {
        let at = self.known.len() as u32;
        self.by_number.insert(number, at);
        self.known.push(place);
        at
    }

    /// The place of a stack's number.
    fn of(&mut self, number: u32) -> u32 {
        if !self.by_number.contains_key(&number) && !matches!(number, PREEMPTED | UNKNOWN_PLACE) {
            self.look();
        }
        match self.by_number.get(&number) {
            Some(at) => *at,
            None => self.add(number, places::without_stack(number)),
        }
    }

    fn forget_sums(&mut self) {
        self.known.iter_mut().for_each(|place| (place.count, place.ns) = (0, 0));
    }
}

/// Whose threads are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// Those of a load, which is the process; each wait has a row.
    Load(u32),
    /// Those of a server and of the program behind it, each with its children; waits are summed up.
    Server { server: u32, program: u32 },
}

impl Watched {
    /// `struct target`.
    fn told(self) -> Vec<u8> {
        let words = match self {
            Self::Load(process) => [process, 0, 0, 0],
            Self::Server { server, program } => [0, server, program, 0],
        };
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

enum Recording {
    NotYet,
    Now(RowWriter<FileWaitRow>),
    Summing(Workers),
    Done,
    Failed(String),
}

/// The probe.
pub struct FileWaits {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    waits: MapHandle,
    losses: MapHandle,
    counters: MapHandle,
    places: Places,
    cost: CostMeter,
    checks: Vec<Check>,
    watched: Watched,
    out: PathBuf,
    recording: Recording,
    lost_before: Vec<i64>,
    unseen_before: i64,
    unreadable: u64,
}

/// Takes what is in the ring; None for what cannot be read.
fn drain(waits: &MapHandle) -> Result<Vec<Option<Wait>>, Refusal> {
    let failed = |error: libbpf_rs::Error| Refusal::from(format!("the ring of waits: {error}"));
    let records = std::cell::RefCell::new(Vec::new());
    {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(waits, |bytes| {
                records.borrow_mut().push(Wait::decode(bytes));
                0
            })
            .map_err(failed)?;
        builder.build().map_err(failed)?.consume().map_err(failed)?;
    }
    Ok(records.into_inner())
}

impl FileWaits {
    /// Loads, attaches and tests the probe, which watches the load's threads of `process`; the table goes to `out`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(process: u32, out: &Path) -> Result<Self, Refusal> {
        Self::watching(Watched::Load(process), out)
    }

    /// The same of a server's process and its children, and of the program behind it and its children; there is no table.
    ///
    /// # Errors
    /// As above.
    pub fn of_server(server: u32, program: Option<u32>, out: &Path) -> Result<Self, Refusal> {
        Self::watching(Watched::Server { server, program: program.unwrap_or(server) }, out)
    }

    fn watching(watched: Watched, out: &Path) -> Result<Self, Refusal> {
        Kernel::read()?;
        let wanted = PROGRAMS.map(|function| Wanted { function, tracepoint: None });
        let programs = Programs::start(OBJECT, &[], &wanted, |_| Ok(()))?;
        let (waits, target) = (programs.map("waits")?, programs.map_of_section(".data.target")?);
        let aim = |at: Watched| {
            let told = target.update(&0_u32.to_ne_bytes(), &at.told(), MapFlags::ANY);
            told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
        };
        let mut places = Places::new(programs.map("places")?)?;
        aim(Watched::Load(std::process::id()))?;
        let checks = self_test::run(|| {
            let waits = drain(&waits)?.into_iter().flatten();
            let mut placed = |wait: Wait| (wait, places.of(wait.place));
            let placed: Vec<(Wait, u32)> = waits.map(&mut placed).collect();
            Ok(placed.into_iter().map(|(wait, at)| (wait, places.known[at as usize].clone())).collect())
        })?;
        aim(watched)?;
        Ok(Self {
            watched,
            losses: programs.map("losses")?,
            counters: programs.map("counters")?,
            cost: programs.cost_meter()?,
            _programs: programs,
            waits,
            places,
            checks,
            out: out.to_owned(),
            recording: Recording::NotYet,
            lost_before: Vec::new(),
            unseen_before: 0,
            unreadable: 0,
        })
    }

    fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }

    /// Arrivals at a CPU that the kernel did not tell of.
    fn unseen(&self) -> i64 {
        summed(&self.counters, 0, 1).map_or(0, |counts| counts[0])
    }

    /// What was before the segment is let go.
    fn begin(&mut self) -> Result<(), String> {
        drain(&self.waits).map_err(|refusal| refusal.reason)?;
        self.places.forget_sums();
        (self.lost_before, self.unseen_before) = (self.lost(), self.unseen());
        self.recording = match self.watched {
            Watched::Load(_) => Recording::Now(RowWriter::create(&self.out).map_err(|error| error.to_string())?),
            Watched::Server { .. } => Recording::Summing(Workers::default()),
        };
        Ok(())
    }

    fn take(&mut self) -> Result<(), String> {
        let records = drain(&self.waits).map_err(|refusal| refusal.reason)?;
        for record in records {
            let Some(wait) = record else {
                self.unreadable += 1;
                continue;
            };
            let at = self.places.of(wait.place);
            let place = &mut self.places.known[at as usize];
            place.count += 1;
            place.ns += wait.asleep_ns().max(0) as u64;
            let writer = match &mut self.recording {
                Recording::Now(writer) => writer,
                Recording::Summing(workers) => {
                    workers.take(wait, &place.bucket);
                    continue;
                }
                _ => return Ok(()),
            };
            let Wait { left_ns, back_ns, run_queue_ns, runtime_ns, switches, session, .. } = wait;
            let row =
                FileWaitRow { connection: session, place: at, left_ns, back_ns, run_queue_ns, runtime_ns, switches };
            writer.append(&row).map_err(|error| error.to_string())?;
        }
        match &mut self.recording {
            Recording::Now(writer) => writer.flush().map_err(|error| error.to_string()),
            _ => Ok(()),
        }
    }

    fn go_on(&mut self) {
        let done = match self.recording {
            Recording::NotYet => self.begin(),
            Recording::Now(_) | Recording::Summing(_) => self.take(),
            Recording::Done | Recording::Failed(_) => Ok(()),
        };
        if let Err(reason) = done {
            self.recording = Recording::Failed(format!("file_waits.npy cannot be written: {reason}"));
        }
    }

    /// Takes what the threads have left when they ended; the table is as long as its header says.
    fn close(&mut self) {
        if matches!(self.recording, Recording::NotYet) {
            return;
        }
        self.go_on();
        match std::mem::replace(&mut self.recording, Recording::Done) {
            Recording::Now(writer) => {
                if let Err(error) = writer.close() {
                    self.recording = Recording::Failed(format!("file_waits.npy cannot be written: {error}"));
                }
            }
            other => self.recording = other,
        }
    }
}

impl Probe for FileWaits {
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
        let lost: std::collections::BTreeMap<String, u64> = LOST
            .map(str::to_owned)
            .into_iter()
            .zip(lost)
            .chain([("unreadable".to_owned(), self.unreadable), (LOST_EVENTS.to_owned(), self.cost.missed(|_| true))])
            .collect();
        let is_recorded = matches!(self.recording, Recording::Done);
        let arrivals_unseen = (self.unseen() - self.unseen_before).max(0) as u64;
        if let Recording::Summing(workers) = std::mem::replace(&mut self.recording, Recording::Done) {
            return Some(ProbeReport::new(WorkerWaitsReport {
                status: ProbeStatus::on("tp_btf"),
                lost,
                arrivals_unseen,
                checks: self.checks.clone(),
                buckets: BUCKETS.map(str::to_owned).to_vec(),
                workers: workers.told(),
                places: self.places.known.clone(),
                cost: self.cost.cost(),
            }));
        }
        let report = FileWaitsReport {
            status: ProbeStatus::on("tp_btf"),
            lost,
            arrivals_unseen,
            checks: self.checks.clone(),
            buckets: BUCKETS.map(str::to_owned).to_vec(),
            places: if is_recorded { self.places.known.clone() } else { Vec::new() },
            cost: self.cost.cost(),
        };
        Some(ProbeReport::new(report))
    }
}
