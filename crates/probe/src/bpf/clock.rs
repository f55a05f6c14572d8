//! The clock that programs in the kernel stamp with.

use rustix::time::{ClockId, Timespec, clock_gettime};

fn ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CLOCK_MONOTONIC, as the programs stamp.
pub(crate) fn now_ns() -> i64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// By how much that clock is before one that nobody corrects, as the scheduler's is.
pub(crate) fn slew_ns() -> i64 {
    now_ns() - ns(clock_gettime(ClockId::MonotonicRaw))
}
