//! A worker's connections: where each stands, which are free, and when those that wait of their own will are to be woken.

use crate::conversation::Conversation;
use crate::under_way::UnderWay;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Index, IndexMut};

/// What a connection is to be woken for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Never,
    /// Its session rests.
    Rest(i64),
    /// Its next transaction is due (closed loop).
    Start(i64),
}

pub(crate) struct Slot<S: ?Sized> {
    pub(crate) session: Option<Box<S>>,
    pub(crate) number: u32,
    pub(crate) backend_pid: u32,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) wake: Wake,
}

pub(crate) struct Slots<S: ?Sized> {
    slots: Vec<Slot<S>>,
    /// Free connections of an open loop, the one that has been free longest in front. Never more than there are slots.
    pub(crate) free: VecDeque<usize>,
    /// (when, slot), the earliest first; an entry that its slot no longer confirms is void.
    wakes: BinaryHeap<Reverse<(i64, usize)>>,
    pub(crate) alive: usize,
}

impl<S: Conversation + ?Sized> Slots<S> {
    pub(crate) fn new(sessions: Vec<(u32, Box<S>)>) -> Self {
        let count = sessions.len();
        let mut slots = Self {
            slots: Vec::with_capacity(count),
            free: VecDeque::with_capacity(count),
            // A rest that is cut short leaves a void entry behind, so there may be a few more than slots.
            wakes: BinaryHeap::with_capacity(2 * count),
            alive: 0,
        };
        for (place, (number, session)) in sessions.into_iter().enumerate() {
            slots.slots.push(Slot { session: None, number, backend_pid: 0, under_way: None, wake: Wake::Never });
            slots.admit(place, session);
        }
        slots
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Puts an open session into its slot.
    pub(crate) fn admit(&mut self, place: usize, session: Box<S>) {
        let slot = &mut self.slots[place];
        (slot.backend_pid, slot.wake) = (session.server_process(), Wake::Never);
        slot.session = Some(session);
        self.alive += 1;
    }

    /// Takes the session out.
    pub(crate) fn remove(&mut self, place: usize) -> Option<Box<S>> {
        let session = self.slots[place].session.take()?;
        self.alive -= 1;
        self.slots[place].wake = Wake::Never;
        self.free.retain(|&free| free != place);
        Some(session)
    }

    pub(crate) fn wake_at(&mut self, place: usize, wake: Wake) {
        self.slots[place].wake = wake;
        if let Wake::Rest(at_ns) | Wake::Start(at_ns) = wake {
            self.wakes.push(Reverse((at_ns, place)));
        }
    }

    /// Has a transaction that is due wait for [`Slots::postpone`].
    pub(crate) fn hold(&mut self, place: usize, due_ns: i64) {
        self.slots[place].wake = Wake::Start(due_ns);
    }

    /// Wakes those whose next transaction is due so much later. Nothing is under way, so none of them rests.
    pub(crate) fn postpone(&mut self, by_ns: i64) {
        self.wakes.clear();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let Wake::Start(at_ns) = &mut slot.wake {
                *at_ns = at_ns.saturating_add(by_ns);
                self.wakes.push(Reverse((*at_ns, place)));
            }
        }
    }

    /// The earliest wake-up, void or not.
    pub(crate) fn next_wake_ns(&self) -> Option<i64> {
        self.wakes.peek().map(|&Reverse((at_ns, _))| at_ns)
    }

    /// A connection that is to be woken by now, and what for.
    pub(crate) fn woken(&mut self, now_ns: i64) -> Option<(usize, Wake)> {
        while let Some(&Reverse((at_ns, place))) = self.wakes.peek() {
            if at_ns > now_ns {
                return None;
            }
            self.wakes.pop();
            let wake = self.slots[place].wake;
            if wake == Wake::Rest(at_ns) || wake == Wake::Start(at_ns) {
                self.slots[place].wake = Wake::Never;
                return Some((place, wake));
            }
        }
        None
    }
}

impl<S: ?Sized> Index<usize> for Slots<S> {
    type Output = Slot<S>;

    #[inline]
    fn index(&self, place: usize) -> &Slot<S> {
        &self.slots[place]
    }
}

impl<S: ?Sized> IndexMut<usize> for Slots<S> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut Slot<S> {
        &mut self.slots[place]
    }
}
