//! How far a pass has come: places are given out, and who is through ends it.
//!
//! The fact that constrains it: what a pass has written has to be known to the record, so every place that was given
//! out is passed or given back. Where that does not add up (a write that failed, a thread that never came back), nobody
//! says what the file holds.

use crate::finish::Finish;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// When a pass over several files ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stop {
    /// When one of them is through, as in IOzone's throughput mode.
    #[default]
    First,
    /// When all are.
    All,
}

/// One file's; on a line of the CPU's cache of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OfFile {
    next: AtomicU64,
    passed: AtomicU64,
    bytes: AtomicU64,
    given_back: Mutex<BTreeSet<u64>>,
}

/// How far one file was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Places given out, from the first.
    pub(crate) given_out: u64,
    /// Of those, what nobody began.
    pub(crate) given_back: BTreeSet<u64>,
}

/// The progress of a pass.
#[derive(Debug)]
pub(crate) struct Progress {
    files: Vec<OfFile>,
    places: u64,
    stop: Stop,
    finish: Finish,
    through: AtomicU32,
    /// Sessions that have not been closed.
    open: AtomicU32,
    /// The pass ended itself, by its rule.
    has_ended: AtomicBool,
    has_failed: AtomicBool,
    /// Whether it is over, for those that rest until then.
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Progress {
    /// Of `sessions` sessions over so many files of so many places.
    pub(crate) fn new((files, places): (u32, u64), sessions: u32, stop: Stop, finish: Finish) -> Self {
        let files = (0..files).map(|_| OfFile::default()).collect();
        let (through, open) = (AtomicU32::new(0), AtomicU32::new(sessions));
        let (has_ended, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (is_over, over) = (Mutex::new(false), Condvar::new());
        Self { files, places, stop, finish, through, open, has_ended, has_failed, is_over, over }
    }

    /// The next place of a file; `None` if all have been given out.
    #[inline]
    pub(crate) fn claim(&self, file: u32) -> Option<u64> {
        let next = &self.files[file as usize].next;
        if next.load(Ordering::Relaxed) >= self.places {
            return None;
        }
        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&place| place < self.places)
    }

    /// A place was claimed and will never be begun.
    pub(crate) fn give_back(&self, file: u32, place: u64) {
        let given_back = &self.files[file as usize].given_back;
        given_back.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
    }

    /// An operation has come to its end, whatever that was. True for the last of the file.
    #[inline]
    pub(crate) fn pass(&self, file: u32) -> bool {
        self.files[file as usize].passed.fetch_add(1, Ordering::AcqRel) + 1 == self.places
    }

    /// A file is through, closing and all.
    pub(crate) fn file_is_through(&self, file: u32) {
        debug_assert!(self.files[file as usize].passed.load(Ordering::Acquire) >= self.places);
        let through = self.through.fetch_add(1, Ordering::AcqRel) + 1;
        if self.stop == Stop::First || through as usize == self.files.len() {
            self.has_ended.store(true, Ordering::Release);
            self.end();
        }
    }

    /// The kernel refused a call, which it would again: the pass cannot go on.
    pub(crate) fn fail(&self) {
        self.lose();
        self.end();
    }

    /// Ends the pass, and then wakes those that rest.
    fn end(&self) {
        self.finish.finish();
        self.wake();
    }

    /// It is over, by whomever.
    pub(crate) fn wake(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.notify_all();
    }

    /// Waits until it is over: whoever is through with his own keeps nobody waiting then.
    pub(crate) fn rest(&self) {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.over.wait_while(is_over, |is_over| !*is_over));
    }

    /// What a place holds, or whether it has reached the device, is in doubt.
    pub(crate) fn lose(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// A session is closed, having moved so many bytes. The last one hears what the least of any file was.
    pub(crate) fn close(&self, file: u32, bytes: u64) -> Option<u64> {
        self.files[file as usize].bytes.fetch_add(bytes, Ordering::AcqRel);
        let is_last = self.open.fetch_sub(1, Ordering::AcqRel) == 1;
        // Sessions are closed when the segment ends, by its time perhaps: nobody is to wait for this one's file.
        self.wake();
        is_last.then(|| self.files.iter().map(|file| file.bytes.load(Ordering::Acquire)).min().unwrap_or(0))
    }

    /// Whether the pass ended by its own rule, nothing having failed.
    pub(crate) fn ended_well(&self) -> bool {
        self.has_ended.load(Ordering::Acquire) && !self.has_failed.load(Ordering::Acquire)
    }

    /// How far a file was passed over; `None` if nobody can tell, because something failed or a session has not told.
    pub(crate) fn reached(&self, file: u32) -> Option<Reached> {
        let of_file = &self.files[file as usize];
        let given_out = of_file.next.load(Ordering::Acquire).min(self.places);
        let given_back = of_file.given_back.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = of_file.passed.load(Ordering::Acquire) + given_back.len() as u64;
        let is_known = told == given_out && !self.has_failed.load(Ordering::Acquire);
        is_known.then_some(Reached { given_out, given_back })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn counted(files: u32, stop: Stop) -> (Progress, Arc<AtomicU32>) {
        let ends = Arc::new(AtomicU32::new(0));
        let finish = Finish::new({
            let ends = Arc::clone(&ends);
            move || {
                ends.fetch_add(1, Ordering::Relaxed);
            }
        });
        (Progress::new((files, 3), 2, stop, finish), ends)
    }

    fn go_through(progress: &Progress, file: u32) {
        while progress.claim(file).is_some() {
            if progress.pass(file) {
                progress.file_is_through(file);
            }
        }
    }

    #[test]
    fn the_first_ends_it_or_the_last() {
        for (stop, after) in [(Stop::First, [1, 2]), (Stop::All, [0, 1])] {
            let (progress, ends) = counted(2, stop);
            for (file, after) in (0..).zip(after) {
                go_through(&progress, file);
                assert_eq!(ends.load(Ordering::Relaxed), after, "{stop:?}");
            }
            assert!(progress.ended_well());
        }
    }

    #[test]
    fn every_place_is_accounted_for_or_nothing_is_said() {
        let (progress, _) = counted(1, Stop::All);
        assert_eq!((progress.claim(0), progress.claim(0)), (Some(0), Some(1)));
        assert_eq!(progress.reached(0), None, "two are out");
        progress.pass(0);
        progress.give_back(0, 1);
        assert_eq!(progress.reached(0), Some(Reached { given_out: 2, given_back: BTreeSet::from([1]) }));
        assert_eq!((progress.claim(0), progress.claim(0), progress.claim(0)), (Some(2), None, None));
        progress.pass(0);
        assert_eq!(progress.reached(0).unwrap().given_out, 3);
    }

    #[test]
    fn what_failed_ends_it_and_nobody_says_what_it_left() {
        let (progress, ends) = counted(1, Stop::All);
        progress.claim(0);
        progress.fail();
        assert_eq!((ends.load(Ordering::Relaxed), progress.ended_well(), progress.reached(0)), (1, false, None));
        progress.rest();
    }

    #[test]
    fn the_last_session_hears_the_least_transfer() {
        let (progress, _) = counted(2, Stop::All);
        assert_eq!((progress.close(0, 700), progress.close(1, 500)), (None, Some(500)));
    }
}
