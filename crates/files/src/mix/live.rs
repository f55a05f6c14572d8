//! What the sessions of a segment share: the places and their blocks' versions.

use super::descriptors::Descriptors;
use super::places::{Place, Places};
use super::plan::Plan;
use super::state::State;
use super::streams::Streams;
use super::versions::{BLOCK, Versions};
use crate::workload::FilesError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A tree under load.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) plan: Arc<Plan>,
    pub(super) places: Places,
    pub(super) versions: Versions,
    /// Of each place, where its blocks begin in the table; one more for the end.
    first_block: Vec<u64>,
    /// Every file that was laid out is there, no other is, and nothing changes that.
    pub(super) is_still: bool,
    /// Operations draw among so many places.
    pub(super) drawn_among: u64,
    /// Where operations go on from one another instead of drawing; `None` too where what was laid out is no longer all there is.
    pub(super) streams: Option<Streams>,
    gone: AtomicU64,
    failed: AtomicU64,
    /// What sessions had open: closing it is no part of the load.
    open: Mutex<Vec<Descriptors>>,
}

impl Live {
    /// The tree as `state` has it.
    pub(super) fn new(plan: &Arc<Plan>, state: State) -> Self {
        let of_created = plan.created_bytes_max() / BLOCK;
        let mut blocks = 0;
        let mut first_block = vec![0];
        first_block.extend(state.places.iter().map(|place| {
            blocks += of_created.max(if place.is_absent { 0 } else { place.body / BLOCK });
            blocks
        }));
        let versions = Versions::new(blocks);
        let mut kept = state.versions.into_iter();
        for (place, first) in state.places.iter().zip(&first_block).filter(|(place, _)| !place.is_absent) {
            (*first..first + place.body / BLOCK)
                .zip(&mut kept)
                .for_each(|(block, version)| versions.put(block, version));
        }
        for (place, block, contested) in state.unknown {
            versions.put_unknown(first_block[place as usize] + block, contested);
        }
        let all: Vec<Place> = state.places.iter().map(Place::of).collect();
        let places = Places::new(plan.seed, plan.fanout, all, state.holes);
        let is_still = !plan.changes_names() && places.are_as_laid_out(plan.count);
        let has_created = state.places.iter().skip(plan.count as usize).any(|place| !place.is_absent);
        let among = if of_created > 0 || plan.changes_names() || has_created { 2 } else { 1 } * plan.count;
        let over = &first_block[..=plan.count as usize];
        let streams = plan.streams.filter(|_| is_still).map(|count| Streams::new(count, over));
        Self {
            plan: Arc::clone(plan),
            places,
            versions,
            first_block,
            is_still,
            drawn_among: among,
            streams,
            gone: state.gone.into(),
            failed: state.failed.into(),
            open: Mutex::default(),
        }
    }

    /// Takes what a session had open.
    pub(super) fn keep(&self, descriptors: Descriptors) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(descriptors);
    }

    /// Closes what sessions had open.
    ///
    /// # Errors
    /// When the kernel says of a close, this one or one within the load, that what was written is lost.
    pub(super) fn close(&self) -> Result<(), FilesError> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = open.into_iter().map(Descriptors::end).fold(Ok(()), Result::and);
        ended.map_err(|error| FilesError::Content(format!("a file of the load cannot be closed: {error}")))
    }

    /// To be kept for the next segment.
    pub(super) fn state(&self) -> State {
        self.count_failed(BLOCK * self.versions.settle_all());
        let mut state = State {
            gone: self.gone.load(Ordering::Acquire),
            failed: self.failed.load(Ordering::Acquire),
            places: self.places.iter().map(|(_, place)| place.kept()).collect(),
            versions: Vec::new(),
            unknown: Vec::new(),
            holes: self.places.holes(),
        };
        for (place, kept) in (0..).zip(&state.places).filter(|(_, kept)| !kept.is_absent) {
            state.versions.extend(self.blocks(place, kept.body).map(|block| self.versions.kept(block)));
        }
        for (block, contested) in self.versions.unknown() {
            let place = self.first_block.partition_point(|&first| first <= block) - 1;
            state.unknown.push((place as u32, block - self.first_block[place], contested));
        }
        state
    }

    /// Where the blocks of a place's file begin in the table.
    #[inline]
    pub(super) fn first_block(&self, place: u32) -> u64 {
        self.first_block[place as usize]
    }

    fn blocks(&self, place: u32, body: u64) -> std::ops::Range<u64> {
        let first = self.first_block(place);
        first..first + body / BLOCK
    }

    /// Bytes that were written to a place's file since it was laid out; those with which it was created, too.
    pub(super) fn bytes_written(&self, place: u32) -> u64 {
        let kept = self.places.at(place).kept();
        let was_laid_out = u64::from(place) < self.plan.count && kept.incarnation == 0;
        let created = if was_laid_out { 0 } else { kept.body };
        let writes: u64 = self.blocks(place, kept.body).map(|block| self.versions.writes(block)).sum();
        created + kept.tail_ended + BLOCK * writes
    }

    /// A place has a new file of so many bytes, each block of version 1.
    pub(super) fn created(&self, place: u32, bytes: u64) {
        self.versions.renew(self.first_block(place), bytes / BLOCK);
        self.places.created(place, bytes);
        self.places.at(place).give(Some(true));
    }

    /// The file of a place is gone, and with it what was not known of its blocks: the place's next file may have fewer.
    pub(super) fn removed(&self, place: u32) {
        self.gone.fetch_add(self.bytes_written(place), Ordering::AcqRel);
        self.versions.renew(self.first_block(place), self.places.at(place).kept().body / BLOCK);
        self.places.removed(place);
        self.places.give_absent(place);
    }

    /// Bytes were to be written, and some of them may have been.
    pub(super) fn count_failed(&self, bytes: u64) {
        self.failed.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Bytes of files that are gone, and of writes that failed.
    pub(super) fn gone_and_failed(&self) -> (u64, u64) {
        (self.gone.load(Ordering::Acquire), self.failed.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::request::plan_of;
    use serde_json::json;

    fn live(mix: serde_json::Value) -> Live {
        let plan = Arc::new(plan_of(json!({"count": 3, "file_bytes": 8192, "mix": mix})));
        Live::new(&plan, State::laid_out(&plan))
    }

    #[test]
    fn what_is_not_known_of_a_file_goes_with_it() {
        let live = live(json!([{"operation": "create", "weight": 1, "bytes": 4096}]));
        for place in [0, 1] {
            // Two writes at once of its second block: either may be there.
            let block = live.first_block(place) + 1;
            let versions = [live.versions.begin(block), live.versions.begin(block)];
            versions.into_iter().for_each(|version| live.versions.end(block, version.unwrap(), true));
            assert!(live.places.at(place).take());
            live.removed(place);
        }
        let created = live.places.take_absent().unwrap();
        live.created(created, 4096);
        assert_eq!((created, live.gone_and_failed().0), (1, 4 * 4096));
        let again = Live::new(&live.plan, live.state());
        assert_eq!(again.versions.unknown(), []);
        let last = again.first_block(2);
        assert_eq!([last, last + 1].map(|block| again.versions.kept(block)), [1, 1], "the file beside them");
    }

    #[test]
    fn what_was_written_is_kept() {
        let live = live(json!([{"operation": "create", "weight": 1, "bytes": 16384}]));
        let block = live.first_block(1) + 1;
        let version = live.versions.begin(block).unwrap();
        live.versions.end(block, version, true);
        live.versions.begin(live.first_block(2)).unwrap();
        assert_eq!(live.places.reserve(0, 100), 0);
        live.places.appended(0, (0, 100), true);
        let place = live.places.take_absent().unwrap();
        live.created(place, 16384);
        assert_eq!([0, 1, 2, place].map(|place| live.bytes_written(place)), [100, 4096, 4096, 16384]);
        let again = Live::new(&live.plan, live.state());
        assert_eq!([0, 1, 2, place].map(|place| again.bytes_written(place)), [100, 4096, 4096, 16384]);
        assert_eq!((again.versions.kept(block), again.versions.unknown().len()), (2, 1));
        assert!(again.places.at(0).take());
        again.removed(0);
        assert_eq!((again.gone_and_failed().0, again.bytes_written(place)), (100, 16384));
        assert_eq!(Live::new(&live.plan, again.state()).state(), again.state());
    }

    #[test]
    fn names_stand_still_where_nothing_changes_them() {
        assert!(live(json!([{"operation": "stat", "weight": 1}])).is_still);
        let renamed = live(json!([{"operation": "rename", "weight": 1}]));
        assert!(!renamed.is_still && renamed.drawn_among == 6);
    }
}
