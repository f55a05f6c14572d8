//! What programs in the kernel take: the kernel's own run-time accounting, switched on for as long as somebody asks.

use crate::Refusal;
use plimsoll_record::{Cost, ProgramCost};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What one program has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    runs: u64,
    run_ns: u64,
    missed: u64,
}

/// Reads run time and missed runs of programs.
pub(crate) struct CostMeter {
    programs: Vec<(String, OwnedFd, Reading)>,
    /// The accounting is on while this is open. None where the kernel refuses: then run times are not known.
    accounting: Option<OwnedFd>,
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
        let accounting = enable();
        let opened = programs.map(|(name, descriptor)| {
            let descriptor = descriptor.map_err(|error| Refusal::from(format!("{name}: {error}")))?;
            let now = reading(&descriptor);
            Ok((name, descriptor, now))
        });
        Ok(Self { programs: opened.collect::<Result<_, Refusal>>()?, accounting })
    }

    /// What has been counted so far is left out from here on.
    pub(crate) fn restart(&mut self) {
        self.programs.iter_mut().for_each(|(_, descriptor, began)| *began = reading(descriptor));
    }

    /// Since the last restart.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.accounting.as_ref()?;
        let since = |(name, descriptor, began): &(String, OwnedFd, Reading)| {
            let now = reading(descriptor);
            ProgramCost { name: name.clone(), runs: now.runs - began.runs, run_ns: now.run_ns - began.run_ns }
        };
        let programs: Vec<ProgramCost> = self.programs.iter().map(since).collect();
        Some(Cost { run_ns: programs.iter().map(|program| program.run_ns).sum(), programs })
    }

    /// Runs that the kernel left out since the last restart, because the program was already at work on that CPU.
    pub(crate) fn missed(&self) -> u64 {
        self.programs.iter().map(|(_, descriptor, began)| reading(descriptor).missed - began.missed).sum()
    }
}
