//! The driver of sessions whose calls block: a thread for each, and one that waits for them.
//!
//! The fact that constrains it: a blocking call is waited for without knowing whether it ends. So the segment waits for its threads
//! no longer than its patience, and borrows them nothing.

mod seat;
mod thread;

use crate::clock::{TICK_NS, monotonic_ns, wake_in_time};
use crate::config::EngineError;
use crate::driver::{Carried, Member};
use crate::gate::Gate;
use crate::opening::LEFT_BEHIND_AFTER;
use crate::outcomes::Ended;
use crate::recording::recorder::Recorder;
use crate::shared::Shared;
use crate::window::Window;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use plimsoll_descriptors::enter_thread;
use plimsoll_session::{BlockingOpener, BlockingSession, Interrupt};
use seat::{Left, Seat};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thread::Carrier;

/// From one request to end what is under way to the next: it may have met what was begun before or after.
const CANCEL_EVERY: Duration = Duration::from_secs(1);

/// Tells how its thread left, however it did.
struct Leaving {
    number: usize,
    left: Option<Left>,
    tell: Sender<(usize, Left)>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // Who listens may have given this thread up.
        let _ = self.tell.send((self.number, self.left.take().unwrap_or(Left::Panicked)));
    }
}

/// The threads, from their making to their end or to that of patience.
pub(crate) fn carry(
    sessions: Vec<Box<dyn BlockingSession>>,
    opener: Option<&Arc<dyn BlockingOpener>>,
    shared: &Arc<Shared>,
    recorder: &Recorder,
) -> Result<Carried, EngineError> {
    let (tell, heard) = unbounded();
    let mut seats = Vec::with_capacity(sessions.len());
    let mut refused = None;
    for (number, session) in sessions.into_iter().enumerate() {
        let sink = recorder.sink(shared.started_ns);
        let seat = Arc::new(Seat::new(number as u32, session.as_ref(), sink, shared));
        seats.push(Arc::clone(&seat));
        let (of_thread, opener, tell) = (Arc::clone(shared), opener.cloned(), tell.clone());
        let leaving = Leaving { number, left: None, tell };
        let carry = move || {
            let mut leaving = leaving;
            // As the threads of the other drivers, which they may be compared with; where it cannot be had it is late by 50 us.
            let _ = wake_in_time();
            let member = Member::new(&of_thread);
            if of_thread.config.own_descriptors
                && let Err(error) = enter_thread()
            {
                leaving.left = Some(Left::Refused(error));
                return;
            }
            let counts = &of_thread.control.counts[number];
            let carrier = Carrier::new(&of_thread, &seat, counts, opener.as_deref(), number as u32);
            leaving.left = Some(Left::Ended(carrier.run(session)));
            member.leave();
        };
        // By this name a probe tells whose thread it is.
        if let Err(error) = std::thread::Builder::new().name(format!("load{number}")).spawn(carry) {
            refused = Some(error);
            shared.control.stop();
            break;
        }
    }
    drop(tell);
    let left = wait(&heard, &seats, shared);
    let now_ns = monotonic_ns();
    let taken = seats.iter().zip(&shared.control.counts).map(|(seat, counts)| seat.take(shared, counts, now_ns));
    let tallies: Vec<_> = taken.collect();
    if let Some(error) = refused {
        return Err(EngineError::System(error));
    }
    let mut threads = Vec::with_capacity(tallies.len());
    for (tally, left) in tallies.into_iter().zip(left) {
        let ended = match left {
            Some(Left::Panicked) => return Err(EngineError::Panicked),
            Some(Left::Refused(error)) => return Err(EngineError::System(error)),
            Some(Left::Ended(ended)) => ended,
            None => shared.stopped().unwrap_or(Ended::Seconds),
        };
        threads.extend(tally.map(|tally| (tally, ended)));
    }
    Ok(Carried { threads, opening: None })
}

/// Waits for the threads until patience is over, and a little longer for those that were told to hang up. Gives how each left; `None`
/// of those that have not come back.
fn wait(heard: &Receiver<(usize, Left)>, seats: &[Arc<Seat>], shared: &Shared) -> Vec<Option<Left>> {
    let mut left: Vec<Option<Left>> = seats.iter().map(|_| None).collect();
    let mut interrupts = Interrupts { seats, asking: None, asked: None };
    let mut out = 0;
    let mut hung_up: Option<Instant> = None;
    while out < seats.len() && hung_up.is_none_or(|at| at.elapsed() < LEFT_BEHIND_AFTER) {
        match heard.recv_timeout(Duration::from_nanos(TICK_NS as u64)) {
            Ok((number, how)) => {
                left[number] = Some(how);
                out += 1;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let window = shared.control.gate.as_ref().map_or(Window::ALWAYS, Gate::rest);
        let is_over = |since_ns: i64| monotonic_ns() >= since_ns.saturating_add(shared.config.patience_ns);
        let ends = is_over(shared.ending_since_ns(&window));
        if ends || is_over(window.closes_ns()) {
            if hung_up.is_none() {
                if !ends {
                    shared.control.give_up();
                }
                interrupts.hang_up();
                hung_up = Some(Instant::now());
            }
        } else if shared.stopped().is_some() {
            interrupts.cancel();
        }
    }
    left
}

/// The ways to end what the sessions wait for; asked from a thread of their own, because a server that stands still may keep who
/// asks waiting, too.
struct Interrupts<'a> {
    seats: &'a [Arc<Seat>],
    asking: Option<JoinHandle<()>>,
    asked: Option<Instant>,
}

impl Interrupts<'_> {
    fn all(&self) -> Vec<Arc<dyn Interrupt>> {
        self.seats.iter().filter_map(|seat| seat.interrupt()).collect()
    }

    /// Asks all of them, once in a while.
    fn cancel(&mut self) {
        let is_asked = self.asked.is_some_and(|at| at.elapsed() < CANCEL_EVERY);
        if is_asked || self.asking.as_ref().is_some_and(|asking| !asking.is_finished()) {
            return;
        }
        let all = self.all();
        self.asking = Some(std::thread::spawn(move || all.iter().for_each(|one| one.cancel())));
        self.asked = Some(Instant::now());
    }

    /// Ends all conversations. Nobody waits for that, either.
    fn hang_up(&self) {
        let all = self.all();
        std::thread::spawn(move || all.iter().for_each(|one| one.hang_up()));
    }
}
