//! One thread's connections on one epoll instance: waits, drives what is ready, and starts what is due.

use super::poll::{EVENTS_A_WAIT, Poll};
use crate::clock::{TICK_NS, monotonic_ns};
use crate::config::EngineError;
use crate::dispatch::Dispatcher;
use crate::outcomes::Ended;
use crate::recording::tally::Tally;
use crate::slots::Wake;
use plimsoll_session::{Ending, Progress, Ready, Session};

pub(super) struct Worker {
    dispatcher: Dispatcher<dyn Session>,
    poll: Poll,
    /// When those are given up next that have waited too long.
    next_look_ns: i64,
}

impl Worker {
    pub(super) fn new(dispatcher: Dispatcher<dyn Session>) -> Result<Self, EngineError> {
        let poll = Poll::new(dispatcher.slots.len())?;
        if let Some(reopening) = dispatcher.reopening() {
            poll.watch_bell(reopening.bell())?;
        }
        let mut worker = Self { dispatcher, poll, next_look_ns: 0 };
        for place in 0..worker.dispatcher.slots.len() {
            worker.watch(place)?;
        }
        Ok(worker)
    }

    pub(super) fn run(mut self) -> Result<(Tally, Ended), EngineError> {
        let mut events = Vec::with_capacity(EVENTS_A_WAIT);
        loop {
            self.dispatcher.begin_turn();
            while let Some(place) = self.dispatcher.reopened() {
                self.watch(place)?;
            }
            self.dispatcher.notice_the_end();
            self.give_up_overdue()?;
            while let Some(place) = self.dispatcher.woken() {
                self.drive(place, Ready::Nothing)?;
            }
            while let Some(place) = self.dispatcher.start_claim() {
                self.drive(place, Ready::Nothing)?;
            }
            if self.dispatcher.is_over() {
                return Ok(self.dispatcher.finish());
            }
            if self.dispatcher.has_drained() {
                self.dispatcher.await_window();
                continue;
            }
            self.dispatcher.flush();
            self.poll.wait(&mut events, self.dispatcher.due_ns(), self.dispatcher.now_ns)?;
            for event in events.drain(..) {
                if let Some((place, ready)) = self.poll.slot_of(event)? {
                    self.drive_ready(place, ready)?;
                }
            }
        }
    }

    /// Waits for the session of a slot.
    fn watch(&mut self, place: usize) -> Result<(), EngineError> {
        let session = self.dispatcher.slots[place].session.as_ref();
        session.map_or(Ok(()), |session| self.poll.watch(place, session, false))
    }

    /// Drives a connection for which there was an event.
    fn drive_ready(&mut self, place: usize, ready: Ready) -> Result<(), EngineError> {
        // Without bytes a rest would be taken for over.
        let resting = matches!(self.dispatcher.slots[place].wake, Wake::Rest(_));
        if resting && ready == Ready::Nothing { Ok(()) } else { self.drive(place, ready) }
    }

    /// Lets a connection go on until it waits, starting the next transactions that are due.
    fn drive(&mut self, place: usize, ready: Ready) -> Result<(), EngineError> {
        let (mut place, mut ready) = (place, ready);
        loop {
            let Some(session) = self.dispatcher.slots[place].session.as_mut() else { return Ok(()) };
            match session.advance(ready) {
                Progress::Waiting { to_write } => return self.poll.set_for_writing(place, session, to_write),
                Progress::Moved { to_write } => return self.poll.watch(place, session, to_write),
                Progress::Resting { ns } => {
                    self.poll.set_for_writing(place, session, false)?;
                    self.rest(place, ns);
                    return Ok(());
                }
                Progress::Closed => {
                    self.dispatcher.lose(place, true);
                    return Ok(());
                }
                Progress::Ended(ending) => match self.after(place, ready, &ending) {
                    Some(next) => (place, ready) = (next, Ready::Nothing),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Records how a connection's transaction has ended, and gives the connection that is to be driven next, if there is one.
    fn after(&mut self, place: usize, ready: Ready, ending: &Ending) -> Option<usize> {
        let ended = self.dispatcher.end(place, ending)?;
        if !ending.alive || (ready == Ready::Closing && self.has_closed(place)) {
            self.dispatcher.lose(place, true);
            return None;
        }
        self.dispatcher.next(place, ended)
    }

    /// Gives up what has been under way for longer than its session waits.
    fn give_up_overdue(&mut self) -> Result<(), EngineError> {
        if self.dispatcher.now_ns < self.next_look_ns {
            return Ok(());
        }
        self.next_look_ns = self.dispatcher.now_ns.saturating_add(TICK_NS);
        for place in 0..self.dispatcher.slots.len() {
            let now_ns = self.dispatcher.now_ns;
            let slot = &mut self.dispatcher.slots[place];
            let (Some(session), Some(under_way)) = (slot.session.as_mut(), slot.under_way) else { continue };
            if now_ns - under_way.start_ns >= session.patience_ns() {
                let ending = session.abandon();
                if let Some(next) = self.after(place, Ready::Nothing, &ending) {
                    self.drive(next, Ready::Nothing)?;
                }
            }
        }
        Ok(())
    }

    /// The other side closes, and no further notice will come: whether that was all it sent.
    fn has_closed(&mut self, place: usize) -> bool {
        let session = self.dispatcher.slots[place].session.as_mut();
        session.is_some_and(|session| session.advance(Ready::Closing) == Progress::Closed)
    }

    fn rest(&mut self, place: usize, ns: i64) {
        // Bytes that arrive during a rest do not begin it anew.
        if !matches!(self.dispatcher.slots[place].wake, Wake::Rest(_)) {
            self.dispatcher.now_ns = monotonic_ns();
            self.dispatcher.slots.wake_at(place, Wake::Rest(self.dispatcher.now_ns.saturating_add(ns)));
        }
    }
}
