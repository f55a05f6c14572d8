//! Driving: a connection goes on until it waits; what ends is recorded.

use super::Worker;
use crate::clock::monotonic_ns;
use crate::config::EngineError;
use crate::connections::{UnderWay, Wake};
use plimsoll_record::Transaction;
use plimsoll_session::{Ending, Progress, Ready};

impl Worker<'_> {
    /// Drives a connection for which there was an event.
    pub(super) fn drive_ready(&mut self, place: usize, ready: Ready) -> Result<(), EngineError> {
        // Without bytes a rest would be taken for over.
        let resting = matches!(self.connections.slots[place].wake, Wake::Rest(_));
        if resting && ready == Ready::Nothing { Ok(()) } else { self.drive(place, ready) }
    }

    /// Lets a connection go on until it waits, starting the next transactions that are due.
    pub(super) fn drive(&mut self, place: usize, ready: Ready) -> Result<(), EngineError> {
        let (mut place, mut ready) = (place, ready);
        loop {
            let Some(session) = self.connections.slots[place].session.as_mut() else { return Ok(()) };
            match session.advance(ready) {
                Progress::Waiting { to_write } => return self.connections.set_for_writing(place, to_write),
                Progress::Resting { ns } => {
                    self.rest(place, ns);
                    return self.connections.set_for_writing(place, false);
                }
                Progress::Closed => {
                    self.lose(place, true);
                    return Ok(());
                }
                Progress::Ended(ending) => {
                    self.now_ns = monotonic_ns();
                    let Some(ended) = self.end(place, &ending) else { return Ok(()) };
                    if !ending.alive || (ready == Ready::Closing && self.has_closed(place)) {
                        self.lose(place, true);
                        return Ok(());
                    }
                    match self.next(place, ended) {
                        Some(next) => (place, ready) = (next, Ready::Nothing),
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    /// The other side closes, and no further notice will come: whether that was all it sent.
    pub(super) fn has_closed(&mut self, place: usize) -> bool {
        let session = self.connections.slots[place].session.as_mut();
        session.is_some_and(|session| session.advance(Ready::Closing) == Progress::Closed)
    }

    pub(super) fn rest(&mut self, place: usize, ns: i64) {
        // Bytes that arrive during a rest do not begin it anew.
        if !matches!(self.connections.slots[place].wake, Wake::Rest(_)) {
            self.now_ns = monotonic_ns();
            self.connections.wake_at(place, Wake::Rest(self.now_ns.saturating_add(ns)));
        }
    }

    #[inline]
    pub(super) fn end(&mut self, place: usize, ending: &Ending) -> Option<UnderWay> {
        let slot = &mut self.connections.slots[place];
        let under_way = slot.under_way.take()?;
        slot.wake = Wake::Never;
        self.busy -= 1;
        self.record(place, under_way, ending);
        Some(under_way)
    }

    /// Records a transaction that ends now.
    #[inline]
    pub(super) fn record(&mut self, place: usize, under_way: UnderWay, ending: &Ending) {
        let slot = &self.connections.slots[place];
        let row = Transaction {
            index: under_way.index,
            planned_ns: under_way.planned_ns,
            start_ns: under_way.start_ns,
            end_ns: self.now_ns,
            bytes: ending.bytes,
            connection: slot.number,
            backend_pid: slot.backend_pid,
            statements: ending.statements,
            requests: ending.requests,
            retries: ending.retries,
            error: ending.failure.as_ref().map_or(0, |failure| self.shared.errors.place(failure)),
            kind: under_way.kind,
            outcome: ending.outcome,
        };
        self.counts.ended_one(ending.outcome);
        self.tally.add(&row);
        self.lane.push(row);
    }

    pub(super) fn lose(&mut self, place: usize, reopen: bool) {
        let Some(session) = self.connections.remove(place) else { return };
        self.tally.reports.push(session.close());
        self.tally.connections_lost += 1;
        if let Some(reopening) = self.reopening.as_ref().filter(|_| reopen && self.ended.is_none()) {
            reopening.ask(place, self.connections.slots[place].number);
        }
        if self.connections.free.is_empty() {
            self.return_claim();
        }
    }

    pub(super) fn abandon_all(&mut self) {
        for place in 0..self.connections.slots.len() {
            let slot = &mut self.connections.slots[place];
            let Some(session) = slot.session.as_mut().filter(|_| slot.under_way.is_some()) else { continue };
            let ending = session.abandon();
            self.now_ns = monotonic_ns();
            self.end(place, &ending);
            self.lose(place, false);
        }
    }
}
