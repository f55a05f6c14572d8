//! What a session's thread shares with the one that waits for it: the row under way, and all that it has counted.
//!
//! The fact that constrains it: a call that blocks may never come back, and its thread cannot be ended. Whoever takes the seat's
//! contents settles what was under way; the thread, should it return one day, finds nothing and ends.

use crate::outcomes::Ended;
use crate::recording::recorder::RowSink;
use crate::recording::tally::{Counts, Tally};
use crate::shared::{Ahead, Claim, Shared};
use crate::under_way::UnderWay;
use plimsoll_record::{KIND_NOT_DRAWN, Outcome, Transaction};
use plimsoll_session::{BlockingSession, Ending, Failure, Interrupt};
use std::io;
use std::iter::Zip;
use std::ops::RangeFrom;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Indexes with the kinds of what is to be performed.
type Dealt = Zip<RangeFrom<u64>, std::vec::IntoIter<u8>>;

/// What a thread has counted and recorded so far.
pub(super) struct Held {
    number: u32,
    /// What is left of what was settled beforehand; `None` where nothing was.
    dealt: Option<Dealt>,
    ahead: Ahead,
    pub(super) server_process: u32,
    sink: RowSink,
    pub(super) tally: Tally,
    under_way: Option<UnderWay>,
    pub(super) interrupt: Option<Arc<dyn Interrupt>>,
}

impl Held {
    /// The next index of a closed loop, or the reason why there is none; `now_ns` on the plan's clock.
    pub(super) fn next_index(&mut self, shared: &Shared, now_ns: i64) -> Result<u64, Ended> {
        match &mut self.dealt {
            Some(dealt) => dealt.next().map(|(index, _)| index).ok_or(Ended::Transactions),
            None => shared.next_index_of(&mut self.ahead, now_ns),
        }
    }

    /// An index was taken. From here on it is accounted for, whatever becomes of the thread.
    pub(super) fn took(&mut self, counts: &Counts, claim: Claim, now_ns: i64) {
        if self.dealt.is_none() {
            counts.took_one();
        }
        let Claim { index, due_ns } = claim;
        self.under_way =
            Some(UnderWay { index, planned_ns: due_ns, start_ns: now_ns.max(due_ns), kind: KIND_NOT_DRAWN });
    }

    /// Records how it ended; gives when it was due. `began`: its kind and when it was begun, if it was.
    #[inline]
    pub(super) fn ended(
        &mut self,
        shared: &Shared,
        counts: &Counts,
        began: Option<(u8, i64)>,
        (ending, now_ns): (&Ending, i64),
    ) -> i64 {
        let Some(mut under_way) = self.under_way.take() else { return now_ns };
        if let Some((kind, start_ns)) = began {
            (under_way.kind, under_way.start_ns) = (kind, start_ns);
        }
        let row = under_way.row(shared, (self.number, self.server_process), ending, now_ns);
        counts.ended_one(ending.outcome);
        if row.kind == KIND_NOT_DRAWN {
            self.tally.took(row.index)
        } else {
            self.tally.add(&row)
        }
        self.sink.push(row);
        under_way.planned_ns
    }

    /// Records an operation that is too late to be begun.
    pub(super) fn skip(&mut self, counts: &Counts, claim: Claim, now_ns: i64) {
        counts.took_one();
        counts.ended_one(Outcome::Skipped);
        self.tally.took(claim.index);
        self.sink.push(Transaction::unbegun(claim.index, claim.due_ns, now_ns));
    }

    /// Records what was settled beforehand and will not be begun any more.
    pub(super) fn skip_rest(&mut self, counts: &Counts, now_ns: i64) {
        let (connection, backend_pid) = (self.number, self.server_process);
        for (index, kind) in self.dealt.iter_mut().flatten() {
            let row = Transaction { kind, connection, backend_pid, ..Transaction::unbegun(index, now_ns, now_ns) };
            counts.ended_one(Outcome::Skipped);
            self.tally.skip(&row);
            self.sink.push_waiting(row);
        }
    }

    pub(super) fn flush(&mut self, now_ns: i64) {
        self.sink.flush(now_ns);
    }
}

/// A session's seat.
pub(super) struct Seat {
    held: Mutex<Option<Held>>,
    /// Of what is under way: its kind, once it was begun, and when that was. Beside the lock, which each operation takes often enough.
    kind: AtomicU8,
    start_ns: AtomicI64,
}

impl Seat {
    pub(super) fn new(number: u32, session: &dyn BlockingSession, sink: RowSink, shared: &Shared) -> Self {
        let (server_process, interrupt) = (session.server_process(), session.interrupt());
        let (config, place) = (&shared.config, number as usize);
        let dealt = config.dealt.get(place).map(|kinds| (config.dealt_from()[place]..).zip(kinds.clone()));
        if let Some(dealt) = &dealt {
            shared.control.counts[place].took(dealt.size_hint().0 as u64);
        }
        let tally = Tally::new(config.kinds);
        let (under_way, ahead) = (None, Ahead::default());
        let held = Held { number, dealt, ahead, server_process, sink, tally, under_way, interrupt };
        Self { held: Mutex::new(Some(held)), kind: AtomicU8::new(KIND_NOT_DRAWN), start_ns: AtomicI64::new(0) }
    }

    /// What was taken is about to be performed.
    #[inline]
    pub(super) fn began(&self, kind: u8, now_ns: i64) {
        self.start_ns.store(now_ns, Ordering::Relaxed);
        self.kind.store(kind, Ordering::Release);
    }

    /// It has ended and is recorded; to be called before anything else is taken.
    #[inline]
    pub(super) fn is_over(&self) {
        self.kind.store(KIND_NOT_DRAWN, Ordering::Relaxed);
    }

    /// Does something with what is held; `None` once it has been taken.
    #[inline]
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Held) -> T) -> Option<T> {
        self.lock().as_mut().map(act)
    }

    /// The way to end what the session waits for.
    pub(super) fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        self.with(|held| held.interrupt.clone()).flatten()
    }

    /// Takes everything; a transaction that is still under way is lost.
    pub(super) fn take(&self, shared: &Shared, counts: &Counts, now_ns: i64) -> Option<Tally> {
        let mut held = self.lock().take()?;
        if held.under_way.is_some() {
            let message = "no reply within the grace period after the segment".to_owned();
            let failure = Some(Failure { code: Failure::ABANDONED.to_owned(), message });
            let ending = Ending { failure, ..Ending::of_nothing(Outcome::Lost, false) };
            let kind = self.kind.load(Ordering::Acquire);
            let began = (kind != KIND_NOT_DRAWN).then(|| (kind, self.start_ns.load(Ordering::Relaxed)));
            held.ended(shared, counts, began, (&ending, now_ns));
            held.tally.connections_lost += 1;
        }
        held.skip_rest(counts, now_ns);
        let Held { sink, mut tally, ahead, .. } = held;
        (tally.records_dropped, tally.left_out) = (sink.finish(), ahead.left());
        Some(tally)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a thread left.
pub(super) enum Left {
    /// The segment was over, or its connection was.
    Ended(Ended),
    /// It has not begun: it was to have a table of descriptors of its own, and got none.
    Refused(io::Error),
    /// It panicked.
    Panicked,
}
