//! The gate of a segment in windows: while it is closed no transaction is started, and the plan's clock stands.
//!
//! The fact that constrains it: another server is measured while it is closed, so who waits at it takes no CPU time at all; and while
//! it is open it must not cost what is measured. So a worker takes a copy of its window along, sees from its own clock when that is
//! over, and comes here only when it has drained.

use crate::clock::monotonic_ns;
use crate::window::Window;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// When a window opened, closed and had drained, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTimes {
    /// From when on transactions were started.
    pub opened_ns: i64,
    /// From when on none was: its length later, or earlier where the segment ended within it.
    pub closed_ns: i64,
    /// When none was under way any more.
    pub drained_ns: i64,
}

/// What is known at the gate.
#[derive(Debug)]
struct State {
    window: Window,
    opened_ns: i64,
    /// Workers that have not ended.
    members: usize,
    /// How many of them wait here.
    arrived: usize,
    drained_ns: Option<i64>,
    is_stopped: bool,
}

impl State {
    /// Nobody is under way and somebody could be.
    fn has_drained(&self) -> bool {
        self.drained_ns.is_some() && self.members > 0 && !self.is_stopped
    }
}

/// Where workers wait between windows.
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    /// Told once a window, and once before the first.
    drained: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Gate {
    pub(crate) fn new(workers: usize, drained: impl Fn() + Send + Sync + 'static) -> Self {
        let window = Window::none_yet(0);
        let (members, arrived, drained_ns) = (workers, 0, None);
        let state = State { window, opened_ns: 0, members, arrived, drained_ns, is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), drained: Box::new(drained) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan's clock stands from `started_ns` until the first window. Before any worker is there.
    pub(crate) fn begin(&self, started_ns: i64) {
        self.lock().window = Window::none_yet(started_ns);
    }

    /// The newest window.
    pub(crate) fn window(&self) -> Window {
        self.lock().window
    }

    /// Opens it for so long and gives the time; `None` where not all wait at it, or the segment was stopped.
    pub(crate) fn open(&self, length_ns: i64) -> Option<i64> {
        let mut state = self.lock();
        if !state.has_drained() {
            return None;
        }
        let opened_ns = monotonic_ns();
        state.window = state.window.next(opened_ns, length_ns);
        (state.opened_ns, state.arrived, state.drained_ns) = (opened_ns, 0, None);
        self.changed.notify_all();
        Some(opened_ns)
    }

    /// A worker that has drained waits for the window after `own`. It may be given its own again, to see whether the segment is over.
    pub(crate) fn await_next(&self, own: &Window) -> Window {
        let mut state = self.lock();
        let is_own = |state: &State| state.window.number() == own.number();
        if is_own(&state) {
            state.arrived += 1;
            self.tell_if_drained(&mut state);
        }
        let members = state.members;
        while is_own(&state) && !state.is_stopped && state.members == members {
            state = self.wait(state);
        }
        if is_own(&state) {
            state.arrived -= 1;
        }
        state.window
    }

    /// Waits while the gate is closed and all have drained. Gives the newest window; where nothing is under way in it any more, with an
    /// end that has not come.
    pub(crate) fn rest(&self) -> Window {
        let mut state = self.lock();
        while state.has_drained() {
            state = self.wait(state);
        }
        if state.drained_ns.is_some() { state.window.closing_at(i64::MAX) } else { state.window }
    }

    /// A worker has ended. Those that wait are to see what that means for them.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.members -= 1;
        self.tell_if_drained(&mut state);
        self.changed.notify_all();
    }

    fn tell_if_drained(&self, state: &mut State) {
        let all_are_here = state.members > 0 && state.arrived == state.members;
        if all_are_here && state.drained_ns.is_none() && !state.is_stopped {
            state.drained_ns = Some(monotonic_ns());
            (self.drained)();
        }
    }

    /// Lets everybody go on to the segment's end.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// The segment began to end at `ending_ns` and was over at `ended_ns`, possibly within a window.
    pub(crate) fn end(&self, ending_ns: i64, ended_ns: i64) {
        let mut state = self.lock();
        state.is_stopped = true;
        let closed_ns = state.window.closes_ns().min(ending_ns).min(ended_ns).max(state.opened_ns);
        state.window = state.window.closing_at(closed_ns);
        state.drained_ns.get_or_insert(ended_ns);
    }

    /// The newest window's times once it has drained; `None` before the first.
    pub(crate) fn times(&self) -> Option<WindowTimes> {
        let state = self.lock();
        let drained_ns = state.drained_ns.filter(|_| state.window.number() > 0)?;
        Some(WindowTimes { opened_ns: state.opened_ns, closed_ns: state.window.closes_ns(), drained_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    const MS: i64 = 1_000_000;

    /// A gate for two workers, and how often all had drained.
    fn for_two() -> (Gate, Arc<AtomicU32>) {
        let drained = Arc::new(AtomicU32::new(0));
        let gate = Gate::new(2, {
            let drained = Arc::clone(&drained);
            move || {
                drained.fetch_add(1, Ordering::Relaxed);
            }
        });
        gate.begin(monotonic_ns());
        (gate, drained)
    }

    /// Whoever still waits is let go, so that a test which fails comes to its end.
    struct Stops<'a>(&'a Gate);

    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.stop();
        }
    }

    fn until(gate: &Gate, is_so: impl Fn(&State) -> bool) {
        let began = Instant::now();
        while !is_so(&gate.lock()) {
            assert!(began.elapsed() < Duration::from_secs(20), "{gate:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_window_begins_when_all_have_drained_and_not_before() {
        let (gate, drained) = for_two();
        let (gate, closed) = (&gate, gate.window());
        std::thread::scope(|scope| {
            let _stops = Stops(gate);
            let first = scope.spawn(|| gate.await_next(&closed));
            until(gate, |state| state.arrived == 1);
            assert_eq!((gate.open(MS), drained.load(Ordering::Relaxed)), (None, 0), "one of them has not drained");
            let second = scope.spawn(|| gate.await_next(&closed));
            until(gate, |state| state.arrived == 2);
            assert_eq!(drained.load(Ordering::Relaxed), 1);
            let opened_ns = gate.open(MS).unwrap();
            assert_eq!([first, second].map(|worker| worker.join().unwrap().number()), [1, 1]);
            assert_eq!((gate.open(MS), gate.times()), (None, None), "that window has not drained");
            let own = gate.window();
            for arrived in [1, 2] {
                scope.spawn(move || gate.await_next(&own));
                until(gate, |state| state.arrived == arrived);
            }
            let times = gate.times().unwrap();
            assert_eq!((times.opened_ns, times.closed_ns), (opened_ns, opened_ns + MS));
            assert_eq!(drained.load(Ordering::Relaxed), 2);
            gate.stop();
            assert_eq!(gate.open(MS), None, "it is over");
        });
    }

    #[test]
    fn who_has_ended_keeps_no_window_from_opening() {
        let (gate, drained) = for_two();
        let (gate, closed) = (&gate, gate.window());
        std::thread::scope(|scope| {
            let _stops = Stops(gate);
            scope.spawn(|| gate.await_next(&closed));
            until(gate, |state| state.arrived == 1);
            gate.leave();
            assert_eq!(drained.load(Ordering::Relaxed), 1);
            assert!(gate.open(MS).is_some());
        });
    }
}
