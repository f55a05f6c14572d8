//! The thread of one CPU: it stays there, wakes at its times, and does the three pieces.
//!
//! The fact that constrains it: times are absolute. A beat that is late moves none after it, and those that could not be done are
//! counted and not made up for.

use super::chain::Chain;
use super::pieces::{ADDITIONS, MEMORY_STEPS, MULTIPLICATIONS, add, multiply, step, thread_cpu_ns, timed};
use super::totals::{Shared, Totals};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread's own calls are a few deep.
const STACK_BYTES: usize = 128 << 10;

/// The CPUs that a thread of this process may be put on: those of its control group, also where a caller has kept the process
/// to a part of them, since a server's CPUs are of as much interest as the load's.
pub(super) fn cpus() -> io::Result<Vec<usize>> {
    let ask = || {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        // The kernel takes of these what it allows. Where it refuses, there are those that the process has.
        let _ = sched_setaffinity(None, &all);
        sched_getaffinity(None)
    };
    // In a thread of its own, whose end undoes it.
    let asked = std::thread::scope(|scope| scope.spawn(ask).join());
    let allowed = asked.unwrap_or(Err(rustix::io::Errno::AGAIN))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// When a thread beats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) first: Instant,
    pub(super) every: Duration,
}

impl Times {
    /// When the next beat after one that was due at `due` is, and how many before that cannot be done any more.
    fn following(&self, due: Instant, now: Instant) -> (Instant, u64) {
        let missed = now.saturating_duration_since(due).as_nanos() / self.every.as_nanos().max(1);
        // A process that was stopped for years would find the first time that it can have.
        let missed = u32::try_from(missed).unwrap_or(u32::MAX - 1);
        (due + self.every * (missed + 1), missed.into())
    }
}

/// A thread under way; it ends with this.
#[derive(Debug)]
pub(super) struct Beating {
    pub(super) cpu: usize,
    shared: Arc<Shared>,
    /// The newest that was read.
    read: Totals,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pinned: Receiver<io::Result<()>>,
}

impl Beating {
    /// Starts one; [`Self::is_pinned`] tells whether it may stay on `cpu`.
    pub(super) fn start(cpu: usize, times: Times, chain: Arc<Chain>, at: u32) -> io::Result<Self> {
        let (shared, ended): (Arc<Shared>, Arc<AtomicBool>) = Default::default();
        let (tell, pinned) = channel();
        let mut thread = Thread { cpu, times, chain, at, shared: Arc::clone(&shared), ended: Arc::clone(&ended) };
        let beat = move || {
            let stays = stay_on(cpu);
            let is_pinned = stays.is_ok();
            if tell.send(stays).is_ok() && is_pinned {
                thread.beat_until_ended();
            }
        };
        let thread = std::thread::Builder::new().name("speed".to_owned()).stack_size(STACK_BYTES).spawn(beat)?;
        Ok(Self { cpu, shared, read: Totals::default(), ended, thread: Some(thread), pinned })
    }

    /// Waits for its word.
    pub(super) fn is_pinned(&self) -> io::Result<()> {
        self.pinned.recv().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")))
    }

    /// The sums of all beats that are done.
    pub(super) fn totals(&mut self) -> Totals {
        self.read = self.shared.now().unwrap_or(self.read);
        self.read
    }

    /// Has it end after the beat that it is in; nobody waits.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Thread {
    cpu: usize,
    times: Times,
    chain: Arc<Chain>,
    at: u32,
    shared: Arc<Shared>,
    ended: Arc<AtomicBool>,
}

impl Thread {
    fn beat_until_ended(&mut self) {
        let (mut due, mut cpu_ns) = (self.times.first, 0);
        while self.waited_until(due) {
            let mut beat = self.beat();
            let (next, missed) = self.times.following(due, Instant::now());
            due = next;
            beat.missed += missed;
            let before_ns = std::mem::replace(&mut cpu_ns, thread_cpu_ns());
            beat.cpu_ns = cpu_ns - before_ns;
            self.shared.add(&beat);
        }
    }

    /// Whether it goes on then.
    fn waited_until(&self, due: Instant) -> bool {
        while !self.ended.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::park_timeout(left);
        }
        false
    }

    fn beat(&mut self) -> Totals {
        let Self { chain, at, .. } = self;
        let beat = Totals {
            beats: 1,
            multiply_ns: timed(|| multiply(MULTIPLICATIONS)),
            add_ns: timed(|| add(ADDITIONS)),
            memory_ns: timed(|| step(chain, at, MEMORY_STEPS)),
            ..Totals::default()
        };
        // Somebody else moved the thread, or the CPU was switched off: what was found is of another.
        let is_here = sched_getcpu() == self.cpu;
        if is_here { beat } else { Totals { missed: 1, ..Totals::default() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_beat_moves_none_after_it_and_those_that_cannot_be_done_are_counted() {
        let (first, second) = (Instant::now(), Duration::from_secs(1));
        let times = Times { first, every: second };
        let after = |late: Duration| times.following(first, first + late);
        assert_eq!(after(Duration::ZERO), (first + second, 0));
        assert_eq!(after(second * 9 / 10), (first + second, 0));
        assert_eq!(after(second * 23 / 10), (first + 3 * second, 2));
        assert_eq!(times.following(first + second, first), (first + 2 * second, 0));
    }

    #[test]
    fn a_caller_that_is_kept_to_a_cpu_is_so_afterwards() {
        let ask = || {
            let before = sched_getaffinity(None).unwrap();
            let all = cpus().unwrap();
            stay_on(all[0]).unwrap();
            assert_eq!(cpus().unwrap(), all);
            (sched_getaffinity(None).unwrap().count(), before.count() as usize <= all.len())
        };
        assert_eq!(std::thread::spawn(ask).join().unwrap(), (1, true));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let times = Times { first: Instant::now(), every: Duration::from_secs(1) };
        let beating = Beating::start(CpuSet::MAX_CPU - 1, times, Arc::new(Chain::of(4096).unwrap()), 0).unwrap();
        assert!(beating.is_pinned().is_err());
    }
}
