//! The places for files: which there are, under which names, and how long. Twice as many as are laid out: there is room for as many
//! that are created.
//!
//! The fact that constrains it: what an operation on names does has to be known at the end whatever went on beside it. So it takes a
//! file that nobody uses, and nobody uses that file until it has ended; it waits for nobody, but another file is drawn.

use crate::stamp::Stamps;
use plimsoll_keys::Words;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// No file is there.
const ABSENT: u32 = 1 << 31;
/// An operation on its name is under way.
const TAKEN: u32 = 1 << 30;
/// What became of its name is not known.
const UNSURE: u32 = 1 << 29;
/// Beside these: how many operations are under way on it.
const FLAGS: u32 = ABSENT | TAKEN | UNSURE;

/// The words of bytes that are appended.
const TAILS: u64 = 5;
/// So many removals are remembered for sessions that still hold the files open.
const REMOVED_KEPT: usize = 1 << 16;

/// One place.
#[derive(Debug, Default)]
pub(super) struct Place {
    state: AtomicU32,
    /// How often its file was renamed.
    pub(super) generation: AtomicU32,
    /// How many files it had before.
    pub(super) incarnation: AtomicU32,
    /// Bytes that the file was made with, which reads and writes are about.
    pub(super) body: AtomicU64,
    /// Bytes appended, those under way too.
    pub(super) tail: AtomicU64,
    /// Where the last append ends that has ended well, from the body's end.
    pub(super) tail_ended: AtomicU64,
}

/// A place as it is kept from segment to segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) is_absent: bool,
    pub(super) is_unsure: bool,
    pub(super) generation: u32,
    pub(super) incarnation: u32,
    pub(super) body: u64,
    pub(super) tail: u64,
    pub(super) tail_ended: u64,
}

impl Place {
    pub(super) fn of(kept: &Kept) -> Self {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        Self {
            state: (flag(kept.is_absent, ABSENT) | flag(kept.is_unsure, UNSURE)).into(),
            generation: kept.generation.into(),
            incarnation: kept.incarnation.into(),
            body: kept.body.into(),
            tail: kept.tail.into(),
            tail_ended: kept.tail_ended.into(),
        }
    }

    /// To be kept, when nobody uses it any more: an operation on its name that is still under way will not come back.
    pub(super) fn kept(&self) -> Kept {
        let state = self.state.load(Ordering::Acquire);
        Kept {
            is_absent: state & ABSENT != 0,
            is_unsure: state & (UNSURE | TAKEN) != 0,
            generation: self.generation.load(Ordering::Acquire),
            incarnation: self.incarnation.load(Ordering::Acquire),
            body: self.body.load(Ordering::Acquire),
            tail: self.tail.load(Ordering::Acquire),
            tail_ended: self.tail_ended.load(Ordering::Acquire),
        }
    }

    /// Uses the file with others; false if there is none, or an operation on its name is under way.
    pub(super) fn share(&self) -> bool {
        let more = |state: u32| (state & FLAGS == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    /// The end of [`Place::share`].
    pub(super) fn leave(&self) {
        self.state.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes the file for an operation on its name; false if there is none or somebody uses it.
    pub(super) fn take(&self) -> bool {
        self.state.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes a place that has no file.
    pub(super) fn take_absent(&self) -> bool {
        self.state.compare_exchange(ABSENT, ABSENT | TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The end of [`Place::take`]: there is a file or not, or that is not known, and nobody will use it.
    pub(super) fn give(&self, is_there: Option<bool>) {
        let state = match is_there {
            Some(true) => 0,
            Some(false) => ABSENT,
            None => UNSURE,
        };
        self.state.store(state, Ordering::Release);
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Places {
    seed: u64,
    fanout: u64,
    all: Vec<Place>,
    /// Those without a file.
    absent: Mutex<Vec<u32>>,
    /// Ranges of files' tails, from the body's end, whose appending failed: some of it may be there.
    holes: Mutex<HashMap<u32, Vec<(u64, u64)>>>,
    removed: Mutex<Vec<u32>>,
    removals: AtomicU64,
}

impl Places {
    pub(super) fn new(seed: u64, fanout: u64, all: Vec<Place>, holes: HashMap<u32, Vec<(u64, u64)>>) -> Self {
        let absent = (0..).zip(&all).filter(|(_, place)| place.kept().is_absent && !place.kept().is_unsure);
        let mut absent: Vec<u32> = absent.map(|(place, _)| place).collect();
        absent.reverse();
        let (absent, holes) = (Mutex::new(absent), Mutex::new(holes));
        Self { seed, fanout, all, absent, holes, removed: Mutex::default(), removals: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn at(&self, place: u32) -> &Place {
        &self.all[place as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Place)> {
        (0..).zip(&self.all)
    }

    /// Whether the first `count` places have a file each, and no other has.
    pub(super) fn are_as_laid_out(&self, count: u64) -> bool {
        self.iter().all(|(place, each)| {
            let kept = each.kept();
            !kept.is_unsure && kept.is_absent == (u64::from(place) >= count)
        })
    }

    /// The directories there are.
    pub(super) fn directories(&self) -> u64 {
        (self.all.len() as u64).div_ceil(self.fanout)
    }

    pub(super) fn directory_of(&self, place: u32) -> u64 {
        u64::from(place) / self.fanout
    }

    /// Writes the name of a directory.
    pub(super) fn directory_name(directory: u64, name: &mut String) {
        name.clear();
        let _ = write!(name, "d{directory:06}");
    }

    /// Writes the name of a place's file after so many renames.
    pub(super) fn name_of(&self, place: u32, generation: u32, name: &mut String) {
        Self::directory_name(self.directory_of(place), name);
        let _ = write!(name, "/f{place:09}.{generation}");
    }

    /// Writes the name of a place's file.
    pub(super) fn name(&self, place: u32, name: &mut String) {
        self.name_of(place, self.at(place).generation.load(Ordering::Acquire), name);
    }

    /// What tells the file from all that there were.
    fn number(&self, place: u32) -> u64 {
        u64::from(self.at(place).incarnation.load(Ordering::Acquire)) << u32::BITS | u64::from(place)
    }

    /// The stamps of a place's file.
    #[inline]
    pub(super) fn stamps(&self, place: u32) -> Stamps {
        Stamps::of_file(self.seed, self.number(place))
    }

    /// Makes `bytes` what is appended to a place's file at byte `offset`: a function of file and offset alone.
    pub(super) fn tail_bytes(&self, place: u32, offset: u64, bytes: &mut [u8]) {
        let words = Words::new(self.seed, TAILS, self.number(place));
        let skipped = (offset % 8) as usize;
        let head = bytes.len().min(8 - skipped);
        let (first, rest) = bytes.split_at_mut(if skipped == 0 { 0 } else { head });
        let end = skipped + first.len();
        first.copy_from_slice(&words.word(offset / 8).to_le_bytes()[skipped..end]);
        for (at, chunk) in (offset.div_ceil(8)..).zip(rest.chunks_mut(8)) {
            chunk.copy_from_slice(&words.word(at).to_le_bytes()[..chunk.len()]);
        }
    }

    /// A place without a file, taken.
    pub(super) fn take_absent(&self) -> Option<u32> {
        let place = self.absent.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        self.at(place).take_absent().then_some(place)
    }

    /// Gives back a place that has no file.
    pub(super) fn give_absent(&self, place: u32) {
        self.at(place).give(Some(false));
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).push(place);
    }

    /// A taken place has a new file of so many bytes.
    pub(super) fn created(&self, place: u32, bytes: u64) {
        let at = self.at(place);
        at.generation.store(0, Ordering::Release);
        at.body.store(bytes, Ordering::Release);
        at.tail.store(0, Ordering::Release);
        at.tail_ended.store(0, Ordering::Release);
        self.holes.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }

    /// The file of a taken place is gone. Its next one is another.
    pub(super) fn removed(&self, place: u32) {
        self.at(place).incarnation.fetch_add(1, Ordering::AcqRel);
        let mut removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.removals.load(Ordering::Relaxed);
        if removed.len() < REMOVED_KEPT {
            removed.push(place);
        } else {
            removed[number as usize % REMOVED_KEPT] = place;
        }
        self.removals.store(number + 1, Ordering::Release);
    }

    /// Whether files were removed since `seen` removals.
    #[inline]
    pub(super) fn has_removed_since(&self, seen: u64) -> bool {
        self.removals.load(Ordering::Acquire) != seen
    }

    /// Tells which; `None`: too many to be told. Gives how many removals there are now.
    pub(super) fn removed_since(&self, seen: u64, mut tell: impl FnMut(Option<u32>)) -> u64 {
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.removals.load(Ordering::Relaxed);
        if now - seen > REMOVED_KEPT as u64 {
            tell(None);
        } else {
            (seen..now).for_each(|number| tell(Some(removed[number as usize % REMOVED_KEPT])));
        }
        now
    }

    /// Where so many bytes are to be appended, from the body's end.
    pub(super) fn reserve(&self, place: u32, bytes: u64) -> u64 {
        self.at(place).tail.fetch_add(bytes, Ordering::AcqRel)
    }

    /// What was reserved has been appended, or has not.
    pub(super) fn appended(&self, place: u32, (from, bytes): (u64, u64), is_whole: bool) {
        let at = self.at(place);
        if is_whole {
            at.tail_ended.fetch_max(from + bytes, Ordering::AcqRel);
            return;
        }
        let mut holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        let holes = holes.entry(place).or_default();
        match holes.iter_mut().find(|(other, _)| *other == from) {
            Some((_, longest)) => *longest = (*longest).max(bytes),
            None => holes.push((from, bytes)),
        }
        // The next one may have its room, if none has been given any behind it.
        let _ = at.tail.compare_exchange(from + bytes, from, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// How long a place's file may be.
    pub(super) fn longest(&self, place: u32) -> u64 {
        let holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.at(place).kept();
        let failed = holes.get(&place).into_iter().flatten().map(|(from, bytes)| from + bytes);
        kept.body + failed.max().unwrap_or(0).max(kept.tail)
    }

    /// Where appending failed.
    pub(super) fn holes(&self) -> HashMap<u32, Vec<(u64, u64)>> {
        self.holes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let there = |is_absent| Place::of(&Kept { is_absent, body: 8192, ..Kept::default() });
        Places::new(3, 2, vec![there(false), there(false), there(true), there(true)], HashMap::new())
    }

    #[test]
    fn an_operation_on_a_name_meets_no_other_on_its_file() {
        let places = places();
        let file = places.at(0);
        assert!(file.share() && file.share() && !file.take());
        file.leave();
        assert!(!file.take());
        file.leave();
        assert!(file.take() && !file.take() && !file.share());
        file.give(None);
        assert!(!file.share() && !file.take(), "what is not known is left alone");
        assert_eq!((places.take_absent(), places.take_absent(), places.take_absent()), (Some(2), Some(3), None));
        places.give_absent(3);
        assert!(!places.at(3).share() && places.take_absent() == Some(3));
    }

    #[test]
    fn names_tell_place_and_generation() {
        let (places, mut name) = (places(), String::new());
        places.at(3).generation.store(7, Ordering::Relaxed);
        places.name(3, &mut name);
        assert_eq!((name.as_str(), places.directories()), ("d000001/f000000003.7", 2));
    }

    #[test]
    fn bytes_that_are_appended_are_a_function_of_file_and_offset() {
        let places = places();
        let mut whole = [0; 64];
        places.tail_bytes(1, 0, &mut whole);
        for (from, to) in [(0, 64), (3, 5), (3, 40), (8, 16), (13, 64), (63, 64), (5, 5)] {
            let mut part = vec![0; to - from];
            places.tail_bytes(1, from as u64, &mut part);
            assert_eq!(part, whole[from..to], "{from} to {to}");
        }
        let mut other = [0; 64];
        places.tail_bytes(0, 0, &mut other);
        assert_ne!(other, whole);
        places.removed(1);
        places.tail_bytes(1, 0, &mut other);
        assert_ne!(other, whole, "the place's next file is another");
    }

    #[test]
    fn appends_follow_one_another_and_what_failed_is_remembered() {
        let places = places();
        assert_eq!((places.reserve(0, 100), places.reserve(0, 50)), (0, 100));
        places.appended(0, (100, 50), true);
        places.appended(0, (0, 100), false);
        assert_eq!((places.reserve(0, 10), places.holes()[&0].clone()), (150, vec![(0, 100)]));
        places.appended(0, (150, 10), false);
        assert_eq!(places.reserve(0, 20), 150, "the last one's room is given again");
        places.appended(0, (150, 20), true);
        assert_eq!(places.at(0).kept().tail_ended, 170);
    }

    #[test]
    fn sessions_hear_of_every_file_that_is_removed() {
        let places = places();
        [1, 0, 1].into_iter().for_each(|place| places.removed(place));
        let mut heard = Vec::new();
        assert!(places.has_removed_since(1));
        assert_eq!(places.removed_since(1, |place| heard.push(place)), 3);
        assert_eq!((heard, places.has_removed_since(3)), (vec![Some(0), Some(1)], false));
        (0..REMOVED_KEPT).for_each(|_| places.removed(0));
        let mut heard = Vec::new();
        places.removed_since(2, |place| heard.push(place));
        assert_eq!(heard, [None], "after too many all is closed");
    }
}
