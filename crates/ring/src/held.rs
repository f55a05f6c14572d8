//! What belongs to the kernel for now: operations under way, each under a number that it gives back.
//!
//! The fact that constrains it: a slot is used again, and a request to cancel may come when its operation has completed. So each
//! use of a slot has a number of its own.

use crate::entry::entry;
use crate::registered::Known;
use io_uring::squeue;
use io_uring::types::Timespec;
use plimsoll_session::Operation;

struct Slot<T> {
    uses: u32,
    /// Where it lies when the slots are moved, too.
    timespec: Box<Timespec>,
    held: Option<(T, Operation)>,
}

/// The operations under way.
pub(crate) struct Held<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Held<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Keeps an operation, and gives its entry. What that names by address is not moved and not freed before [`Held::release`].
    pub(crate) fn keep(&mut self, token: T, operation: Operation, known: &Known) -> squeue::Entry {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { uses: 0, timespec: Box::default(), held: None });
            (self.slots.len() - 1) as u32
        });
        let Slot { uses, timespec, held } = &mut self.slots[place as usize];
        *uses = uses.wrapping_add(1);
        let (_, operation) = held.insert((token, operation));
        entry(operation, timespec, known).user_data(number(place, *uses))
    }

    /// What has completed under `number`; `None` if nothing is under way under it.
    pub(crate) fn release(&mut self, number: u64) -> Option<(T, Operation)> {
        let (place, uses) = (number as u32, (number >> u32::BITS) as u32);
        let released = self.slots.get_mut(place as usize).filter(|slot| slot.uses == uses)?.held.take()?;
        self.free.push(place);
        Some(released)
    }

    /// The numbers of those under way whose token is meant.
    pub(crate) fn numbers(&self, is_meant: impl Fn(&T) -> bool) -> impl Iterator<Item = u64> {
        let meant = move |slot: &Slot<T>| slot.held.as_ref().is_some_and(|(token, _)| is_meant(token));
        (0..).zip(&self.slots).filter(move |(_, slot)| meant(slot)).map(|(place, slot)| number(place, slot.uses))
    }

    /// Never frees what is under way.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.slots));
        self.free.clear();
    }
}

fn number(place: u32, uses: u32) -> u64 {
    u64::from(uses) << u32::BITS | u64::from(place)
}
