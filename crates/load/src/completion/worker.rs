//! One thread's connections on one io_uring: starts what is due, hands its operations over, and waits for what completes.
//!
//! The fact that constrains it: an operation outlives the transaction that asked for it, if that ended without it or was given
//! up. So a completion names its transaction, and is dropped if that is no longer under way.

use crate::clock::{TICK_NS, monotonic_ns};
use crate::config::EngineError;
use crate::dispatch::Dispatcher;
use crate::outcomes::Ended;
use crate::recording::tally::Tally;
use plimsoll_ring::Ring;
use plimsoll_session::{Completed, CompletionSession, Operation};
use std::time::Duration;

/// The transaction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    place: usize,
    index: u64,
}

pub(super) struct Worker {
    dispatcher: Dispatcher<dyn CompletionSession>,
    ring: Ring<Token>,
    /// Of each slot, how many operations of its transaction are under way.
    under_way: Vec<usize>,
    /// What a session hands out, on its way to the ring.
    operations: Vec<Operation>,
}

impl Worker {
    pub(super) fn new(dispatcher: Dispatcher<dyn CompletionSession>, ring: Ring<Token>) -> Self {
        let under_way = vec![0; dispatcher.slots.len()];
        Self { dispatcher, ring, under_way, operations: Vec::new() }
    }

    /// What is still under way at the end was given up; the ring cancels it.
    pub(super) fn run(mut self) -> Result<(Tally, Ended), EngineError> {
        loop {
            self.dispatcher.begin_turn();
            while self.dispatcher.reopened().is_some() {}
            self.dispatcher.notice_the_end();
            while let Some(place) = self.dispatcher.woken() {
                self.drive(place, None);
            }
            while let Some(place) = self.dispatcher.start_claim() {
                self.drive(place, None);
            }
            if self.dispatcher.is_over() {
                return Ok(self.dispatcher.finish());
            }
            if self.dispatcher.has_drained() {
                self.dispatcher.await_window();
                continue;
            }
            self.dispatcher.flush();
            self.wait()?;
            while let Some((token, completed)) = self.ring.completed() {
                self.take(token, completed);
            }
        }
    }

    /// Until something completes or is due; a stop, and what was opened again, are noticed within a tick.
    fn wait(&mut self) -> Result<(), EngineError> {
        let until_ns = self.dispatcher.due_ns().min(self.dispatcher.now_ns.saturating_add(TICK_NS));
        let timeout = Duration::from_nanos((until_ns - monotonic_ns()).max(0).unsigned_abs());
        Ok(self.ring.submit_and_wait(timeout)?)
    }

    /// Gives an operation that has completed to the session whose transaction asked for it.
    fn take(&mut self, token: Token, completed: Completed) {
        if self.token(token.place) == Some(token) {
            self.under_way[token.place] -= 1;
            self.drive(token.place, Some(completed));
        }
    }

    /// The transaction under way on a connection.
    fn token(&self, place: usize) -> Option<Token> {
        self.dispatcher.slots[place].under_way.map(|under_way| Token { place, index: under_way.index })
    }

    /// Lets a connection go on until it waits, starting the next transactions that are due.
    fn drive(&mut self, place: usize, completed: Option<Completed>) {
        let (mut place, mut completed) = (place, completed);
        while let Some(token) = self.token(place) {
            let Some(session) = self.dispatcher.slots[place].session.as_mut() else { return };
            let Some(ending) = session.advance(completed.take(), &mut self.operations) else {
                self.under_way[place] += self.operations.len();
                self.operations.drain(..).for_each(|operation| self.ring.push(token, operation));
                return;
            };
            self.operations.clear();
            if std::mem::take(&mut self.under_way[place]) > 0 {
                self.ring.cancel(|&other| other == token);
            }
            let Some(ended) = self.dispatcher.end(place, &ending) else { return };
            if !ending.alive {
                return self.dispatcher.lose(place, true);
            }
            match self.dispatcher.next(place, ended) {
                Some(next) => place = next,
                None => return,
            }
        }
    }
}
