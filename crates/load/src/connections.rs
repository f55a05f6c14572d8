//! A worker's connections: where each stands, which are free, and when those that wait of their own will are to be woken.

use crate::config::EngineError;
use plimsoll_session::{Ready, Session};
use rustix::event::epoll;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A transaction under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub(crate) index: u64,
    pub(crate) planned_ns: i64,
    pub(crate) start_ns: i64,
    pub(crate) kind: u8,
}

/// What a connection is to be woken for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Never,
    /// Its session rests.
    Rest(i64),
    /// Its next transaction is due (closed loop).
    Start(i64),
}

pub(crate) struct Slot {
    pub(crate) session: Option<Box<dyn Session>>,
    pub(crate) number: u32,
    pub(crate) backend_pid: u32,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) wake: Wake,
    for_writing: bool,
}

/// Descriptors are registered once, edge-triggered, for reading; for writing only while the kernel's buffer is full.
pub(crate) struct Connections {
    pub(crate) slots: Vec<Slot>,
    /// Free connections of an open loop, the one that has been free longest in front. Never more than there are slots.
    pub(crate) free: VecDeque<usize>,
    /// (when, slot), the earliest first; an entry that its slot no longer confirms is void.
    wakes: BinaryHeap<Reverse<(i64, usize)>>,
    pub(crate) epoll: OwnedFd,
    pub(crate) alive: usize,
}

impl Connections {
    pub(crate) fn new(sessions: Vec<(u32, Box<dyn Session>)>) -> Result<Self, EngineError> {
        let count = sessions.len();
        let mut connections = Self {
            slots: Vec::with_capacity(count),
            free: VecDeque::with_capacity(count),
            // A rest that is cut short leaves a void entry behind, so there may be a few more than slots.
            wakes: BinaryHeap::with_capacity(2 * count),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?,
            alive: 0,
        };
        for (place, (number, session)) in sessions.into_iter().enumerate() {
            let (wake, for_writing) = (Wake::Never, false);
            connections.slots.push(Slot { session: None, number, backend_pid: 0, under_way: None, wake, for_writing });
            connections.admit(place, session)?;
        }
        Ok(connections)
    }

    /// Puts an open session into its slot.
    pub(crate) fn admit(&mut self, place: usize, session: Box<dyn Session>) -> Result<(), EngineError> {
        self.watch(&session, place as u64)?;
        let slot = &mut self.slots[place];
        (slot.backend_pid, slot.for_writing, slot.wake) = (session.server_process(), false, Wake::Never);
        slot.session = Some(session);
        self.alive += 1;
        Ok(())
    }

    /// Waits for `descriptor` too, under the number `data`.
    pub(crate) fn watch(&self, descriptor: impl AsFd, data: u64) -> Result<(), EngineError> {
        let data = epoll::EventData::new_u64(data);
        Ok(epoll::add(&self.epoll, descriptor, data, interest(false)).map_err(io::Error::from)?)
    }

    /// Waits for room to send, too, or no longer.
    #[inline]
    pub(crate) fn set_for_writing(&mut self, place: usize, for_writing: bool) -> Result<(), EngineError> {
        let slot = &mut self.slots[place];
        if slot.for_writing == for_writing {
            return Ok(());
        }
        slot.for_writing = for_writing;
        let Some(session) = &slot.session else { return Ok(()) };
        let data = epoll::EventData::new_u64(place as u64);
        Ok(epoll::modify(&self.epoll, session, data, interest(for_writing)).map_err(io::Error::from)?)
    }

    /// Takes the session out; closing its descriptor takes it out of the epoll set.
    pub(crate) fn remove(&mut self, place: usize) -> Option<Box<dyn Session>> {
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

fn interest(for_writing: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if for_writing { reading | epoll::EventFlags::OUT } else { reading }
}

/// The end of a stream is told once, possibly together with its last bytes.
pub(crate) fn readiness(flags: epoll::EventFlags) -> Ready {
    let closing = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    if flags.intersects(closing) {
        Ready::Closing
    } else if flags.contains(epoll::EventFlags::IN) {
        Ready::Readable
    } else {
        Ready::Nothing
    }
}
