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
    /// Sessions that have a place of it, or are about to see that there is none.
    busy: AtomicU64,
    /// Somebody closes it.
    is_closing: AtomicBool,
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
    /// Whether the pass has every file's closing in it.
    closes: bool,
    /// No more places are given out.
    is_stopping: AtomicBool,
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
    /// Of `sessions` sessions over so many files of so many places. With `closes` a file is through when it is closed,
    /// and whoever is stopped closes his, too: what he has written is in the pass, and so is the time that it takes to
    /// reach the device.
    pub(crate) fn new((files, places): (u32, u64), sessions: u32, stop: Stop, closes: bool, finish: Finish) -> Self {
        let files = (0..files).map(|_| OfFile::default()).collect();
        let is_stopping = AtomicBool::new(false);
        let (through, open) = (AtomicU32::new(0), AtomicU32::new(sessions));
        let (has_ended, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (is_over, over) = (Mutex::new(false), Condvar::new());
        Self { files, places, stop, finish, closes, is_stopping, through, open, has_ended, has_failed, is_over, over }
    }

    /// The next place of a file; `None` if all have been given out.
    #[inline]
    pub(crate) fn claim(&self, file: u32) -> Option<u64> {
        let OfFile { next, busy, .. } = &self.files[file as usize];
        // Noted before it is looked, so that who is to close the file never does while a place is out.
        busy.fetch_add(1, Ordering::SeqCst);
        if !self.has_no_more(file) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place < self.places {
                return Some(place);
            }
        }
        busy.fetch_sub(1, Ordering::SeqCst);
        None
    }

    fn has_no_more(&self, file: u32) -> bool {
        self.is_stopping.load(Ordering::SeqCst) || self.files[file as usize].next.load(Ordering::SeqCst) >= self.places
    }

    /// Whether who asks is to close the file: there is nothing more to do with it and nobody is at it. True for one.
    pub(crate) fn may_close(&self, file: u32) -> bool {
        let OfFile { busy, is_closing, .. } = &self.files[file as usize];
        self.closes
            && self.has_no_more(file)
            && busy.load(Ordering::SeqCst) == 0
            && !is_closing.swap(true, Ordering::SeqCst)
    }

    /// A place was claimed and will never be begun.
    pub(crate) fn give_back(&self, file: u32, place: u64) {
        let given_back = &self.files[file as usize].given_back;
        given_back.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        self.files[file as usize].busy.fetch_sub(1, Ordering::SeqCst);
    }

    /// An operation has come to its end, whatever that was.
    #[inline]
    pub(crate) fn pass(&self, file: u32) {
        let OfFile { passed, busy, .. } = &self.files[file as usize];
        let is_last = passed.fetch_add(1, Ordering::AcqRel) + 1 == self.places;
        if is_last && self.stop == Stop::First {
            self.is_stopping.store(true, Ordering::SeqCst);
        }
        busy.fetch_sub(1, Ordering::SeqCst);
        if is_last && !self.closes {
            self.file_is_through(self.stop == Stop::First);
        }
    }

    /// A file is closed, as far as that belongs to the pass.
    pub(crate) fn file_is_closed(&self) {
        self.file_is_through(false);
    }

    fn file_is_through(&self, is_enough: bool) {
        let through = self.through.fetch_add(1, Ordering::AcqRel) + 1;
        if is_enough || through as usize == self.files.len() {
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
        (Progress::new((files, 3), 2, stop, false, finish), ends)
    }

    fn go_through(progress: &Progress, file: u32) {
        while progress.claim(file).is_some() {
            progress.pass(file);
        }
    }

    #[test]
    fn the_first_ends_it_or_the_last() {
        // Once it is over no other file is given places.
        for (stop, after) in [(Stop::First, [1, 1]), (Stop::All, [0, 1])] {
            let (progress, ends) = counted(2, stop);
            for (file, after) in (0..).zip(after) {
                go_through(&progress, file);
                assert_eq!(ends.load(Ordering::Relaxed), after, "{stop:?}");
            }
            assert!(progress.ended_well());
        }
    }

    #[test]
    fn with_its_closings_a_pass_ends_when_every_file_is_closed_whoever_stopped_it() {
        for stop in [Stop::First, Stop::All] {
            let finish = Finish::new(|| {});
            let progress = Progress::new((2, 3), 3, stop, true, finish);
            let (first, second) = (progress.claim(1), progress.claim(1));
            assert_eq!((first, second, progress.may_close(1)), (Some(0), Some(1), false));
            go_through(&progress, 0);
            let stopped = stop == Stop::First;
            assert_eq!(progress.claim(1).is_none(), stopped, "{stop:?}: there is no more after the first is through");
            if !stopped {
                progress.pass(1);
            }
            assert!(progress.may_close(0) && !progress.may_close(0), "one closes it");
            progress.file_is_closed();
            progress.pass(1);
            assert!(!progress.may_close(1) && !progress.ended_well(), "{stop:?}: one is still at it");
            progress.pass(1);
            assert!(progress.may_close(1));
            progress.file_is_closed();
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
