//! A worker's epoll instance: its connections' descriptors, a tick, and the bell of connections that were opened again.
//!
//! Descriptors are registered once, edge-triggered, for reading; for writing only while the kernel's buffer is full. Closing one
//! takes it out of the set.

use crate::clock::{TICK_NS, heard, monotonic_ns, tick, timespec};
use crate::config::EngineError;
use plimsoll_session::Ready;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A wake-up nearer than this is waited for by the wait's own timeout, a later one by a tick.
const NEAR_NS: i64 = 2 * TICK_NS;
pub(super) const EVENTS_A_WAIT: usize = 256;
/// The numbers under which the tick and the bell are in the epoll set; no slot has them.
const TICK: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

pub(super) struct Poll {
    epoll: OwnedFd,
    /// Wakes the worker now and then.
    tick: OwnedFd,
    /// Of each slot, whether it is woken for room to send, too.
    for_writing: Vec<bool>,
}

impl Poll {
    pub(super) fn new(slots: usize) -> Result<Self, EngineError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let poll = Self { epoll, tick: tick()?, for_writing: vec![false; slots] };
        poll.add(&poll.tick, TICK, false)?;
        Ok(poll)
    }

    /// Waits for a slot's new session, or for one on another descriptor; for room to send, too, if `for_writing`.
    pub(super) fn watch(&mut self, place: usize, session: impl AsFd, for_writing: bool) -> Result<(), EngineError> {
        self.for_writing[place] = for_writing;
        self.add(session, place as u64, for_writing)
    }

    pub(super) fn watch_bell(&self, bell: impl AsFd) -> Result<(), EngineError> {
        self.add(bell, BELL, false)
    }

    fn add(&self, descriptor: impl AsFd, data: u64, for_writing: bool) -> Result<(), EngineError> {
        let data = epoll::EventData::new_u64(data);
        Ok(epoll::add(&self.epoll, descriptor, data, interest(for_writing)).map_err(io::Error::from)?)
    }

    /// Waits for room to send, too, or no longer.
    #[inline]
    pub(super) fn set_for_writing(
        &mut self,
        place: usize,
        session: impl AsFd,
        for_writing: bool,
    ) -> Result<(), EngineError> {
        if self.for_writing[place] == for_writing {
            return Ok(());
        }
        self.for_writing[place] = for_writing;
        let data = epoll::EventData::new_u64(place as u64);
        Ok(epoll::modify(&self.epoll, session, data, interest(for_writing)).map_err(io::Error::from)?)
    }

    /// Until something happens or `due_ns` has come; `now_ns` is about now.
    pub(super) fn wait(&self, events: &mut Vec<epoll::Event>, due_ns: i64, now_ns: i64) -> Result<(), EngineError> {
        // Without a timeout the kernel has no timer to set and to take back in each wait.
        let is_near = due_ns < now_ns.saturating_add(NEAR_NS);
        let timeout = is_near.then(|| timespec(due_ns - monotonic_ns()));
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// The slot of an event, and what is known of its descriptor; `None` if it only wakes.
    pub(super) fn slot_of(&self, event: epoll::Event) -> Result<Option<(usize, Ready)>, EngineError> {
        match event.data.u64() {
            TICK => heard(&self.tick)?,
            BELL => {}
            place => return Ok(Some((place as usize, readiness(event.flags)))),
        }
        Ok(None)
    }
}

fn interest(for_writing: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if for_writing { reading | epoll::EventFlags::OUT } else { reading }
}

/// The end of a stream is told once, possibly together with its last bytes.
fn readiness(flags: epoll::EventFlags) -> Ready {
    let closing = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    if flags.intersects(closing) {
        Ready::Closing
    } else if flags.contains(epoll::EventFlags::IN) {
        Ready::Readable
    } else {
        Ready::Nothing
    }
}
