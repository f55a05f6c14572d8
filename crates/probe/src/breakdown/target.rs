//! The server to be watched: where its processes keep their wait event; and what the programs are told of it.

use super::wait_place::WaitPlace;
use crate::Refusal;
use crate::bpf::slew_ns;
use crate::folders::Tree;
use crate::postgres::{self, Cluster};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::path::Path;

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    /// Where its processes have their wait event; None if the program does not tell.
    pub(crate) wait_place: Option<WaitPlace>,
    /// Its folders by class, if it does not.
    pub(crate) trees: Vec<Tree>,
}

impl Server {
    /// The one that runs on the cluster in `folder`. With `by_system_call` it is taken for one whose program does not tell its
    /// wait events, as those are that do not.
    pub(crate) fn of(folder: &Path, by_system_call: bool) -> Result<Self, Refusal> {
        let cluster = Cluster::of(folder)?;
        let wait_place = WaitPlace::of(cluster.postmaster, cluster.major).filter(|_| !by_system_call);
        let trees = if wait_place.is_none() { postgres::files(folder)?.trees } else { Vec::new() };
        Ok(Self { cluster, wait_place, trees })
    }
}

/// `enum phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opened = 0,
    Closing = 1,
    Closed = 2,
}

/// What the programs watch: `struct target`.
#[derive(Debug)]
pub(crate) struct Aim {
    map: MapHandle,
    parent: u32,
    wait_place: Option<WaitPlace>,
    until_ns: i64,
    phase: Phase,
    slice: u32,
    one_in: u32,
}

impl Aim {
    /// At nothing yet.
    pub(crate) fn new(map: MapHandle) -> Self {
        Self { map, parent: 0, wait_place: None, until_ns: 0, phase: Phase::Opened, slice: 0, one_in: 1 }
    }

    /// Makes the children of `parent`, who have their wait event at `wait_place`, the ones that are watched.
    pub(crate) fn at(&mut self, parent: u32, wait_place: Option<WaitPlace>) -> Result<(), Refusal> {
        (self.parent, self.wait_place) = (parent, wait_place);
        self.tell()
    }

    /// Tells the clock's slew, which changes all the time.
    pub(crate) fn keep(&mut self) -> Result<(), Refusal> {
        self.tell()
    }

    /// The number of the present slice.
    pub(crate) fn slice(&self) -> u32 {
        self.slice
    }

    /// Begins a slice, one of so many.
    pub(crate) fn open(&mut self, one_in: u32) -> Result<(), Refusal> {
        (self.slice, self.one_in) = (self.slice.wrapping_add(1), one_in);
        // First the number: whoever sees an open slice with the number before believes what it knew then.
        self.tell()?;
        self.phase = Phase::Opened;
        self.tell()
    }

    /// What begins from now on is not followed.
    pub(crate) fn close_at(&mut self, now_ns: i64) -> Result<(), Refusal> {
        self.until_ns = now_ns;
        self.tell()?;
        self.phase = Phase::Closing;
        self.tell()
    }

    /// Ends a slice.
    pub(crate) fn close(&mut self) -> Result<(), Refusal> {
        self.phase = Phase::Closed;
        self.tell()
    }

    fn tell(&self) -> Result<(), Refusal> {
        let (pointer, offset) = self.wait_place.map_or((0, 0), |place| (place.pointer, place.offset));
        let mut target = pointer.to_ne_bytes().to_vec();
        target.extend(slew_ns().to_ne_bytes());
        target.extend(self.until_ns.to_ne_bytes());
        for number in [self.parent, self.phase as u32, self.slice, self.one_in, offset, 0] {
            target.extend(number.to_ne_bytes());
        }
        let told = self.map.update(&0_u32.to_ne_bytes(), &target, MapFlags::ANY);
        told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
    }
}
