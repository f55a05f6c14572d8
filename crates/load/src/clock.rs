//! The one clock of a record: CLOCK_MONOTONIC, in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_SECOND: i64 = 1_000_000_000;

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * NS_PER_SECOND + time.tv_nsec
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn monotonic_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// What to add to a monotonic time to get nanoseconds since 1970.
pub fn epoch_minus_monotonic_ns() -> i64 {
    let before = monotonic_ns();
    let epoch = nanoseconds(clock_gettime(ClockId::Realtime));
    let after = monotonic_ns();
    epoch - (before + (after - before) / 2)
}

/// A duration for the kernel; negative ones count as none.
pub(crate) fn timespec(duration_ns: i64) -> Timespec {
    let duration_ns = duration_ns.max(0);
    Timespec { tv_sec: duration_ns / NS_PER_SECOND, tv_nsec: duration_ns % NS_PER_SECOND }
}
