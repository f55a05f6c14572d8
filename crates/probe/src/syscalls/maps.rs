//! What the programs in the kernel are told, and what they count into.

use super::calls::{CLASSES, KINDS, SYSCALLS};
use super::spread::Place;
use crate::Refusal;
use crate::bpf::{Programs, summed};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeMap;

/// `enum number`: the columns, then both histograms.
pub(super) const COLUMNS: [&str; 6] = ["count", "errors", "asked_bytes", "returned_bytes", "ns", "sequential"];
pub(super) const NS_BUCKETS: usize = 40;
pub(super) const BYTES_BUCKETS: usize = 33;
pub(super) const NUMBERS: usize = COLUMNS.len() + NS_BUCKETS + BYTES_BUCKETS;
/// Of calls counted by number alone: count, errors, at the place of `ns` the time of some, and behind it for how many that stands.
pub(super) const OTHER_NUMBERS: usize = 6;
/// `enum lost`, and what the kernel left out.
pub(super) const LOST: [&str; 4] = ["files", "tasks", "paths", "vectors"];

/// Counts of every class and kind, then of every other number.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) by_class: BTreeMap<Place, Vec<i64>>,
    pub(super) others: BTreeMap<usize, Vec<i64>>,
    pub(super) lost: Vec<i64>,
    pub(super) at_ns: i64,
    /// For how long the tracepoints of all calls were counted at until then.
    pub(super) watched_ns: i64,
}

/// Who is watched, in which slice of time, and what of it has not ended.
pub(super) struct Target {
    map: MapHandle,
    under_way: MapHandle,
    pub(super) parent: u32,
}

impl Target {
    pub(super) fn of(programs: &Programs) -> Result<Self, Refusal> {
        let map = programs.map_of_section(".data.target")?;
        Ok(Self { map, under_way: programs.map_of_section(".data.under_way")?, parent: std::process::id() })
    }

    /// `struct target`: calls are counted that began in between; 0: none are, or the slice has no end yet.
    pub(super) fn tell(&self, slice_since_ns: i64, slice_until_ns: i64) -> Result<(), Refusal> {
        let mut target = [self.parent.to_ne_bytes(), [0; 4]].concat();
        target.extend([slice_since_ns, slice_until_ns].iter().flat_map(|ns| ns.to_ne_bytes()));
        let told = self.map.update(&0_u32.to_ne_bytes(), &target, MapFlags::ANY);
        told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
    }

    pub(super) fn nothing_is_under_way(&self) -> Result<(), Refusal> {
        let told = self.under_way.update(&0_u32.to_ne_bytes(), &0_i64.to_ne_bytes(), MapFlags::ANY);
        told.map_err(|error| Refusal::from(format!("calls under way cannot be set: {error}")))
    }

    /// Calls of a kind that began in the slice.
    pub(super) fn under_way(&self) -> i64 {
        let found = self.under_way.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        found.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_ne_bytes).max(0)
    }
}

/// What the programs count into.
pub(super) struct Maps {
    counters: MapHandle,
    others: MapHandle,
    losses: MapHandle,
}

impl Maps {
    pub(super) fn of(programs: &Programs) -> Result<Self, Refusal> {
        Ok(Self {
            counters: programs.map("counters")?,
            others: programs.map("others")?,
            losses: programs.map("losses")?,
        })
    }

    /// What was counted of a class and kind; nothing where nothing was.
    pub(super) fn of_class(&self, class: usize, kind: usize) -> Option<Vec<i64>> {
        let row = class * (KINDS.len() + 1) + kind + 1;
        summed(&self.counters, row as u32, NUMBERS).filter(|counts| counts[0] > 0)
    }

    pub(super) fn by_class(&self) -> BTreeMap<Place, Vec<i64>> {
        let places = (0..CLASSES.len()).flat_map(|class| (0..KINDS.len()).map(move |kind| (class, kind)));
        places.filter_map(|(class, kind)| Some(((class, kind), self.of_class(class, kind)?))).collect()
    }

    /// Calls of each class and kind.
    pub(super) fn calls(&self) -> BTreeMap<Place, i64> {
        self.by_class().into_iter().map(|(place, found)| (place, found[0])).collect()
    }

    pub(super) fn counts(&self, with_others: bool) -> Counts {
        let mut counts = Counts { lost: self.lost(), by_class: self.by_class(), ..Counts::default() };
        let numbers = if with_others { 0..SYSCALLS } else { 0..0 };
        let other = |number: usize| Some((number, summed(&self.others, number as u32, OTHER_NUMBERS)?));
        counts.others = numbers.filter_map(other).filter(|(_, found)| found[0] > 0).collect();
        counts
    }

    pub(super) fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }
}
