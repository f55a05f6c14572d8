//! What programs in the kernel take: the kernel's own run-time accounting.
//!
//! The fact that constrains it: accounting takes two readings of the clock a run, which for programs this short is a good part
//! of what they take. So it is on for one sampling interval in five, and what it finds stands for the whole segment.

use crate::Refusal;
use plimsoll_record::{Cost, ProgramCost};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What one program has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    runs: u64,
    run_ns: u64,
    missed: u64,
}

/// Intervals from one accounted interval to the next; the first of a segment is accounted.
const EVERY: u32 = 5;

/// The accounting is on while this is open.
struct Accounting {
    _descriptor: OwnedFd,
    since: Instant,
    /// Of all programs, before.
    run_ns: u64,
}

/// Reads run time and missed runs of programs.
pub(crate) struct CostMeter {
    programs: Vec<(String, OwnedFd, Reading)>,
    accounting: Option<Accounting>,
    /// How long it was on before.
    accounted: Duration,
    began: Instant,
    interval: u32,
}

/// Asks the kernel to account for run time; ends with the descriptor, so nothing is left switched on.
#[allow(unsafe_code)]
fn enable() -> Option<OwnedFd> {
    // SAFETY: takes a number and gives a new descriptor or a negative error.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    // SAFETY: the descriptor is new and nobody else's.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn reading(descriptor: &OwnedFd) -> Reading {
    let path = format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd());
    let text = fs::read_to_string(path).unwrap_or_default();
    let of = |key: &str| crate::text::keyed(&text, key).unwrap_or(0) as u64;
    Reading { runs: of("run_cnt"), run_ns: of("run_time_ns"), missed: of("recursion_misses") }
}

impl CostMeter {
    pub(crate) fn start(programs: impl Iterator<Item = (String, io::Result<OwnedFd>)>) -> Result<Self, Refusal> {
        let opened = programs.map(|(name, descriptor)| {
            let descriptor = descriptor.map_err(|error| Refusal::from(format!("{name}: {error}")))?;
            let now = reading(&descriptor);
            Ok((name, descriptor, now))
        });
        let programs = opened.collect::<Result<_, Refusal>>()?;
        Ok(Self { programs, accounting: None, accounted: Duration::ZERO, began: Instant::now(), interval: 0 })
    }

    fn run_ns(&self) -> u64 {
        self.programs.iter().map(|(_, descriptor, _)| reading(descriptor).run_ns).sum()
    }

    /// To be called at each sample; the first begins the segment. Where the interval that ends was accounted, gives for how many
    /// seconds a second the programs ran in it. `again`: the next one is, too.
    pub(crate) fn sampled(&mut self, again: bool) -> Option<f64> {
        if self.interval == 0 {
            self.programs.iter_mut().for_each(|(_, descriptor, began)| *began = reading(descriptor));
            self.began = Instant::now();
        }
        let ran = self.accounting.take().map(|accounting| {
            let lasted = accounting.since.elapsed();
            self.accounted += lasted;
            (self.run_ns() - accounting.run_ns) as f64 / lasted.as_nanos() as f64
        });
        if again || self.interval.is_multiple_of(EVERY) {
            let run_ns = self.run_ns();
            self.accounting =
                enable().map(|descriptor| Accounting { _descriptor: descriptor, since: Instant::now(), run_ns });
        }
        self.interval += 1;
        ran
    }

    /// Of the segment so far, from the part that was accounted. None where the kernel refuses to account.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let accounted = self.accounted + self.accounting.as_ref().map_or(Duration::ZERO, |on| on.since.elapsed());
        if accounted.is_zero() {
            return None;
        }
        let segment = self.began.elapsed();
        let whole = segment.as_secs_f64() / accounted.as_secs_f64();
        let since = |(name, descriptor, began): &(String, OwnedFd, Reading)| {
            let now = reading(descriptor);
            let scaled = |part: u64| (part as f64 * whole).round() as u64;
            let (runs, run_ns) = (scaled(now.runs - began.runs), scaled(now.run_ns - began.run_ns));
            ProgramCost { name: name.clone(), runs, run_ns }
        };
        let programs: Vec<ProgramCost> = self.programs.iter().map(since).collect();
        Some(Cost {
            run_ns: programs.iter().map(|program| program.run_ns).sum(),
            accounted_ns: accounted.as_nanos() as u64,
            segment_ns: segment.as_nanos() as u64,
            programs,
        })
    }

    /// Runs that the kernel left out since the segment began, because the program was already at work on that CPU; of the
    /// programs whose names are wanted.
    pub(crate) fn missed(&self, is_wanted: impl Fn(&str) -> bool) -> u64 {
        let wanted = self.programs.iter().filter(|(name, ..)| is_wanted(name));
        wanted.map(|(_, descriptor, began)| reading(descriptor).missed - began.missed).sum()
    }
}
