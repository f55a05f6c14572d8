//! Where a target's processes are when they are on a CPU: stacks at each tick of a clock; definitions in README.md.

mod clock;
mod contention;
mod images;
pub(crate) mod kernel_names;
mod locked;
mod packages;
mod program;
mod records;
mod sampling;
mod self_test;
mod spaces;
mod stacks;
mod stimulus;
mod ticks;

pub use stimulus::serve as serve_sampled;

use crate::bpf::{CostMeter, Kernel, Programs, Wanted, summed};
use crate::{Probe, Refusal};
use clock::Clock;
use contention::Locks;
use kernel_names::KernelNames;
use libbpf_rs::MapHandle;
use plimsoll_record::{Check, ProbeReport, ProbeStatus, Profile as Profiled, ProfileReport};
use program::{PROGRAM, aim};
use sampling::{Sampled, Sampling, Span, drain};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profile.bpf.o"));
/// The table that it writes: a stack a line, and its count.
const FILE: &str = "profile.folded";
/// `enum counter` and `enum lost`.
const COUNTERS: usize = 2;
const LOST: usize = 3;

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct ProfileOptions {
    /// The process whose children are sampled.
    pub parent: u32,
    /// It is sampled, too, with all of its threads.
    pub itself: bool,
    /// Samples a second on each CPU.
    pub hz: u32,
    /// Waits for the kernel's own locks are counted, too.
    pub locks: bool,
    /// Where the table goes.
    pub out: PathBuf,
    /// The program that becomes the known stimulus when it is started with the word "sampled" ([`serve_sampled`]).
    pub stimulus: PathBuf,
}

/// The probe.
pub struct Profile {
    // Declared first: the clock is stopped before its program goes.
    sampling: State,
    programs: Programs,
    counters: MapHandle,
    losses: MapHandle,
    samples: MapHandle,
    cost: CostMeter,
    locks: Option<Locks>,
    options: ProfileOptions,
    checks: Vec<Check>,
    before: Vec<i64>,
}

enum State {
    NotYet,
    Now(Sampling),
    Done(Box<Finished>),
    Failed(String),
}

struct Finished {
    profile: Profiled,
    lost_stacks: u64,
    unreadable: u64,
}

impl Profile {
    /// Loads and tests the probe.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(options: &ProfileOptions) -> Result<Self, Refusal> {
        let kernel = Kernel::read()?;
        let mut wanted = vec![Wanted { function: PROGRAM, tracepoint: None }];
        if options.locks {
            if let Some(missing) = contention::TRACEPOINTS.iter().find(|name| !kernel.has_tracepoint(name)) {
                let reason = format!("waits for the kernel's locks: this kernel has no tracepoint {missing}");
                return Err(Refusal::with_remedy(reason, "use a kernel from 5.19 on, or leave them out"));
            }
            wanted.extend(contention::PROGRAMS.map(|function| Wanted { function, tracepoint: None }));
        }
        let programs = Programs::start(OBJECT, &[], &wanted, |_| Ok(()))?;
        let samples = programs.map("samples")?;
        let locks = options.locks.then(|| Locks::of(&programs)).transpose()?;
        let checks = self_test::run(&options.stimulus, &programs, &samples, locks.as_ref())?;
        aim(&programs, options.parent, options.itself)?;
        Ok(Self {
            sampling: State::NotYet,
            counters: programs.map("counters")?,
            losses: programs.map("losses")?,
            samples,
            cost: programs.cost_meter()?,
            programs,
            locks,
            options: options.clone(),
            checks,
            before: Vec::new(),
        })
    }

    /// Samples of the server, of others, and those that were lost.
    fn counts(&self) -> Vec<i64> {
        let of = |map, numbers| summed(map, 0, numbers).unwrap_or_else(|| vec![0; numbers]);
        [of(&self.counters, COUNTERS), of(&self.losses, LOST)].concat()
    }

    fn grown(&self, at: usize) -> u64 {
        let before = self.before.get(at).copied().unwrap_or(0);
        self.counts()[at].saturating_sub(before).max(0) as u64
    }

    /// What happened before the segment is none of its business.
    fn begin(&mut self) -> io::Result<Sampling> {
        drain(&self.samples, |_| {})?;
        self.before = self.counts();
        if let Some(locks) = &self.locks {
            locks.forget();
        }
        let samples = MapHandle::try_from(&self.samples).map_err(|error| io::Error::other(error.to_string()))?;
        let clock = Clock::start(&self.programs, PROGRAM, self.options.hz);
        let clock = clock.map_err(|refusal| io::Error::other(refusal.reason))?;
        Sampling::start(samples, self.options.parent, clock)
    }

    /// Names and writes what was sampled.
    fn write(&self, sampled: &Sampled, span: Option<&Span>) -> io::Result<Finished> {
        // First, for it goes on being counted.
        let contention = self.locks.as_ref().map(|locks| locks.report(&KernelNames::read()));
        let named = sampled.stacks.named();
        let mut file = BufWriter::new(std::fs::File::create(self.options.out.join(FILE))?);
        for (stack, count) in &named.folded {
            writeln!(file, "{stack} {count}")?;
        }
        file.flush()?;
        let mut profile = Profiled {
            hz: self.options.hz,
            samples: named.samples,
            images: named.images,
            ticks: span.map(|span| span.from.until(span.to, span.cpus, self.options.hz, self.grown(0) + self.grown(1))),
            agent_cpu_ns: sampled.cpu_ns,
            contention,
        };
        profile.samples.others = self.grown(1);
        packages::advise(&mut profile.images);
        Ok(Finished { profile, lost_stacks: sampled.stacks.no_room, unreadable: sampled.stacks.unreadable })
    }

    fn finish(&mut self) {
        let sampling = match std::mem::replace(&mut self.sampling, State::NotYet) {
            State::Now(sampling) => sampling,
            other => {
                self.sampling = other;
                return;
            }
        };
        self.sampling = match sampling.finish().and_then(|(sampled, span)| self.write(&sampled, span.as_ref())) {
            Ok(finished) => State::Done(Box::new(finished)),
            Err(error) => State::Failed(format!("{FILE} cannot be written: {error}")),
        };
    }
}

impl Probe for Profile {
    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn sample(&mut self, _: &mut dyn FnMut(&[i64])) {
        self.cost.sampled(false);
        if matches!(self.sampling, State::NotYet) {
            self.sampling = match self.begin() {
                Ok(sampling) => State::Now(sampling),
                Err(error) => State::Failed(format!("sampling cannot begin: {error}")),
            };
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        // Before names are sought, which takes a while.
        let cost = self.cost.cost();
        self.finish();
        let mut report = ProfileReport {
            status: ProbeStatus::on("perf_event"),
            lost: BTreeMap::new(),
            profile: None,
            checks: self.checks.clone(),
            cost,
        };
        match &self.sampling {
            State::Failed(reason) => return Some(ProbeReport::refused(reason.clone(), None)),
            State::NotYet | State::Now(_) => {}
            State::Done(finished) => {
                report.lost = [
                    ("no_room".to_owned(), self.grown(COUNTERS)),
                    ("no_room_for_wait".to_owned(), self.grown(COUNTERS + 1)),
                    ("no_room_for_lock".to_owned(), self.grown(COUNTERS + 2)),
                    ("no_room_for_stack".to_owned(), finished.lost_stacks),
                    ("unreadable".to_owned(), finished.unreadable),
                    ("events".to_owned(), self.cost.missed(|_| true)),
                ]
                .into();
                report.profile = Some(finished.profile.clone());
            }
        }
        Some(ProbeReport::new(report))
    }
}
