//! The one clock of a record: CLOCK_MONOTONIC, in nanoseconds; a tick; and the time that a thread took.

use crate::outcomes::CpuNs;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::time::{ClockId, Timespec, clock_gettime};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

const NS_PER_SECOND: i64 = 1_000_000_000;
/// From one tick to the next.
pub(crate) const TICK_NS: i64 = 50_000_000;

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

/// A descriptor that becomes readable [`TICK_NS`] from now and, after [`heard`], at the next multiple.
pub(crate) fn tick() -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let every = Itimerspec { it_interval: timespec(TICK_NS), it_value: timespec(TICK_NS) };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every)?;
    Ok(timer)
}

/// Sets the tick going again: the kernel goes on with a timer when it is read.
pub(crate) fn heard(tick: &OwnedFd) -> io::Result<()> {
    match rustix::io::read(tick, &mut [0; 8]) {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Has the kernel wake this thread no later than asked; otherwise it may be by 50 us (the timer slack).
pub(crate) fn wake_in_time() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// CPU time of this thread so far.
pub fn thread_cpu_ns() -> CpuNs {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(CpuNs::default(), |usage| CpuNs {
        user: usage.user_time().num_nanoseconds(),
        system: usage.system_time().num_nanoseconds(),
    })
}
