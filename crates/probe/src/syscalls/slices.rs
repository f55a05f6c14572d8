//! Calls are counted in slices of time, which stand for all of it.
//!
//! The fact that constrains it: attaching a program takes the kernel milliseconds, in which it cannot be said whether it is.
//! So a slice begins when the programs are told of it after they were attached, and ends before they are detached.

use super::maps::{Maps, Target};
use super::spread::Spread;
use crate::Refusal;
use crate::bpf::Switch;
use crate::bpf::now_ns;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_millis(100);
/// A pause is half to one and a half times this, drawn: slices in step with the load would show a part of it only.
const PAUSE_MEAN_MS: u64 = 700;
/// So long a call of a kind is waited for behind the end of its slice; then it is cut off, and counted as lost. As long as
/// the shortest pause, in which the wait lies: slices that came later where calls last long would show too little of those.
const PATIENCE: Duration = Duration::from_millis(PAUSE_MEAN_MS / 2);
const LOOK: Duration = Duration::from_millis(1);

/// What the slices so far were.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    ns: i64,
    since_ns: Option<i64>,
    /// Calls that had not ended when nobody waited for them any more.
    pub(super) cut: i64,
    /// Slices that could not be opened, of which the share of the time knows.
    pub(super) missed: i64,
    pub(super) spread: Spread,
}

impl Watched {
    /// For how long calls were counted so far.
    pub(super) fn until(&self, now_ns: i64) -> i64 {
        self.ns + self.since_ns.map_or(0, |since_ns| now_ns - since_ns)
    }

    fn end(&mut self, now_ns: i64) -> i64 {
        let lasted = self.since_ns.take().map_or(0, |since_ns| now_ns - since_ns);
        self.ns += lasted;
        lasted
    }
}

/// The programs at the entry of a call, and at its end.
pub(super) struct Ends {
    pub(super) entries: Switch,
    pub(super) exits: Switch,
}

/// Slice after slice, until it goes.
pub(super) struct Slices {
    watched: Arc<Mutex<Watched>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn hold(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slices {
    /// Of what `programs` count into `maps` of the server that `target` names.
    pub(super) fn start(programs: Ends, maps: Maps, target: Target) -> Result<Self, Refusal> {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (stop, stopped) = channel();
        let mut turns = Turns { programs, maps, target, watched: Arc::clone(&watched) };
        turns.programs.entries.off();
        turns.programs.exits.off();
        let thread = Builder::new().name("system calls".to_owned()).spawn(move || turns.go_on(&stopped));
        let thread = thread.map_err(|error| Refusal::from(format!("no thread for slices of time: {error}")))?;
        Ok(Self { watched, stop: Some(stop), thread: Some(thread) })
    }

    /// What they were so far.
    pub(super) fn watched(&self) -> Watched {
        hold(&self.watched).clone()
    }

    /// The segment begins: errors are of its slices.
    pub(super) fn restart(&self) {
        hold(&self.watched).spread.restart();
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

struct Turns {
    programs: Ends,
    maps: Maps,
    target: Target,
    watched: Arc<Mutex<Watched>>,
}

impl Turns {
    /// Until nobody is left who could stop it.
    fn go_on(&mut self, stopped: &Receiver<()>) {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(now_ns() as u64);
        let lasts = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        loop {
            let opened = self.open();
            let goes_on = opened.is_err() || lasts(SLICE);
            let ended = Instant::now();
            match opened {
                Ok(since_ns) => self.close(since_ns),
                Err(_) => self.miss(),
            }
            let pause = Duration::from_millis(draws.random_range(PAUSE_MEAN_MS / 2..=PAUSE_MEAN_MS * 3 / 2));
            if !goes_on || !lasts(pause.saturating_sub(ended.elapsed())) {
                return;
            }
        }
    }

    fn open(&mut self) -> Result<i64, Refusal> {
        self.target.nothing_is_under_way()?;
        self.programs.exits.on()?;
        self.programs.entries.on()?;
        let mut watched = hold(&self.watched);
        let now = now_ns();
        self.target.tell(now, 0)?;
        watched.since_ns = Some(now);
        Ok(now)
    }

    fn close(&mut self, since_ns: i64) {
        let mut watched = hold(&self.watched);
        let until_ns = now_ns();
        // Should it not be told the programs count on until they are detached, a moment later.
        let _ = self.target.tell(since_ns, until_ns);
        let lasted_ns = watched.end(until_ns);
        drop(watched);
        self.programs.entries.off();
        let cut = self.wait_for_the_last();
        let _ = self.target.tell(0, 0);
        self.programs.exits.off();
        let mut watched = hold(&self.watched);
        watched.cut += cut;
        watched.spread.add(self.maps.calls(), lasted_ns as f64 / 1e9);
    }

    /// The kernel would not have it: nothing is attached, and the next slice may be.
    fn miss(&mut self) {
        self.programs.entries.off();
        self.programs.exits.off();
        hold(&self.watched).missed += 1;
    }

    /// How many had not come back in time.
    fn wait_for_the_last(&self) -> i64 {
        let began = Instant::now();
        while self.target.under_way() > 0 && began.elapsed() < PATIENCE {
            sleep(LOOK);
        }
        self.target.under_way()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_watched_grows_within_slices_only() {
        let mut watched = Watched { ns: 100, ..Watched::default() };
        assert_eq!(watched.until(5_000), 100);
        watched.since_ns = Some(4_000);
        assert_eq!(watched.until(5_000), 1_100);
        assert_eq!((watched.end(4_500), watched.until(9_000)), (500, 600));
    }
}
