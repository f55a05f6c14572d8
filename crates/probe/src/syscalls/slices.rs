//! Calls of no kind are counted in slices of time, which stand for all of it.
//!
//! The fact that constrains it: attaching a program takes the kernel milliseconds, in which it cannot be said whether it is.
//! So a slice begins when the programs are told of it after they were attached, and ends before they are detached.

use super::Target;
use crate::Refusal;
use crate::bpf::Switch;
use crate::breakdown::target::now_ns;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const SLICE: Duration = Duration::from_millis(100);
/// A pause is half to one and a half times this, drawn: slices in step with the load would show a part of it only.
const PAUSE_MEAN_MS: u64 = 700;

/// For how long calls were counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    ns: i64,
    since_ns: Option<i64>,
}

impl Watched {
    fn until(self, now_ns: i64) -> i64 {
        self.ns + self.since_ns.map_or(0, |since_ns| now_ns - since_ns)
    }
}

/// Slice after slice, until it goes.
pub(super) struct Slices {
    watched: Arc<Mutex<Watched>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Slices {
    /// Of what `programs` count of the server that `target` names.
    pub(super) fn start(programs: Switch, target: Target) -> Result<Self, Refusal> {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (stop, stopped) = channel();
        let mut turns = Turns { programs, target, watched: Arc::clone(&watched) };
        turns.programs.off();
        let thread = Builder::new().name("system calls".to_owned()).spawn(move || turns.go_on(&stopped));
        let thread = thread.map_err(|error| Refusal::from(format!("no thread for slices of time: {error}")))?;
        Ok(Self { watched, stop: Some(stop), thread: Some(thread) })
    }

    /// For how long calls were counted so far.
    pub(super) fn watched_ns(&self) -> i64 {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).until(now_ns())
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say: where a slice could not be opened, none was watched from there on.
            let _ = thread.join();
        }
    }
}

struct Turns {
    programs: Switch,
    target: Target,
    watched: Arc<Mutex<Watched>>,
}

impl Turns {
    /// Until nobody is left who could stop it.
    fn go_on(&mut self, stopped: &Receiver<()>) {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(now_ns() as u64);
        let lasts = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        while self.open().is_ok() {
            let goes_on = lasts(SLICE);
            self.close();
            let pause = draws.random_range(PAUSE_MEAN_MS / 2..=PAUSE_MEAN_MS * 3 / 2);
            if !goes_on || !lasts(Duration::from_millis(pause)) {
                return;
            }
        }
    }

    fn open(&mut self) -> Result<(), Refusal> {
        self.programs.on()?;
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now_ns();
        self.target.tell(now as u64)?;
        watched.since_ns = Some(now);
        Ok(())
    }

    fn close(&mut self) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // Should it not be told the programs count on until they are detached, a moment later.
        let _ = self.target.tell(0);
        *watched = Watched { ns: watched.until(now_ns()), since_ns: None };
        drop(watched);
        self.programs.off();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_watched_grows_within_slices_only() {
        let mut watched = Watched { ns: 100, since_ns: None };
        assert_eq!(watched.until(5_000), 100);
        watched.since_ns = Some(4_000);
        assert_eq!(watched.until(5_000), 1_100);
    }
}
