//! Ticks that were due while CPUs had something to do, against those that came.
//!
//! The fact that constrains it: a tick that is late by more than a period is left out, and the kernel tells nobody. What
//! it does tell is how long each CPU was idle, in hundredths of a second.

use plimsoll_record::Ticks;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Numbers of a CPU's line in /proc/stat.
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

/// What all CPUs that have a clock had done at a moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    at_ns: u64,
    idle_ns: u64,
    stolen_ns: u64,
}

/// The sums over `cpus` of idle and of stolen time, in the kernel's units; None if one has no line.
fn sums(text: &str, cpus: &[u32]) -> Option<(u64, u64)> {
    let (mut idle, mut stolen) = (0, 0);
    for cpu in cpus {
        let key = format!("cpu{cpu}");
        let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(&key))?;
        let numbers: Vec<u64> = line.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
        idle += numbers.get(IDLE)? + numbers.get(IOWAIT)?;
        stolen += numbers.get(STEAL)?;
    }
    Some((idle, stolen))
}

impl Reading {
    pub(crate) fn of(cpus: &[u32]) -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let now = clock_gettime(ClockId::Monotonic);
        let (idle, stolen) = sums(&text, cpus)?;
        let unit_ns = 1_000_000_000 / clock_ticks_per_second();
        let at_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        Some(Self { at_ns, idle_ns: idle * unit_ns, stolen_ns: stolen * unit_ns })
    }

    /// From this one to `later`, of so many `cpus`; `came` ticks did.
    pub(crate) fn until(self, later: Self, cpus: usize, hz: u32, came: u64) -> Ticks {
        let all_ns = later.at_ns.saturating_sub(self.at_ns) * cpus as u64;
        let busy_ns = all_ns.saturating_sub(later.idle_ns.saturating_sub(self.idle_ns));
        Ticks {
            busy_ns,
            stolen_ns: later.stolen_ns.saturating_sub(self.stolen_ns),
            due: (busy_ns as f64 * 1e-9 * f64::from(hz)).round() as u64,
            came,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 2 3 400 50 6 7 80 0 0\ncpu10 0 0 0 7 0 0 0 0\n";

    #[test]
    fn idle_and_stolen_time_are_those_of_the_cpus_asked_for() {
        assert_eq!(sums(STAT, &[0, 1]), Some((495, 88)));
        assert_eq!(sums(STAT, &[1]), Some((450, 80)));
        assert_eq!(sums(STAT, &[10]), Some((7, 0)));
        assert_eq!(sums(STAT, &[2]), None);
    }

    #[test]
    fn ticks_are_due_while_a_cpu_is_not_idle() {
        let from = Reading { at_ns: 1_000, idle_ns: 7_000, stolen_ns: 500 };
        let to =
            Reading { at_ns: 1_000 + 3_000_000_000, idle_ns: 7_000 + 1_000_000_000, stolen_ns: 500 + 2_000_000_000 };
        let ticks = from.until(to, 2, 997, 2_991);
        assert_eq!(ticks, Ticks { busy_ns: 5_000_000_000, stolen_ns: 2_000_000_000, due: 4_985, came: 2_991 });
    }
}
