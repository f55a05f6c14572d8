//! Which version each block holds: what a read is held to, exactly, while others write.
//!
//! The fact that constrains it: a word of four bytes for each block of 4096, a thousandth of the files. A block that one write at a
//! time meets needs no more: the version that it holds, and whether the next one is being written. The few that several writes
//! meet at once, or that one failed to write, lie beside ([`Contested`]).

use super::contested::Contested;
use crate::stamp::VERSION_MAX;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a block that has a version.
pub(super) const BLOCK: u64 = 4096;
const UNDER_WAY: u32 = 1 << 30;
const CONTESTED: u32 = 1 << 31;
const FLAGS: u32 = UNDER_WAY | CONTESTED;

/// What was known of a block before it was read.
#[derive(Clone, Debug)]
pub(super) struct Before {
    word: u32,
    contested: Option<Box<Contested>>,
}

/// What a block that was read may hold.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    before: Before,
    /// The newest version that was begun before the read had ended.
    issued: u32,
}

impl Allowed {
    /// Whether this version may have been read.
    pub(super) fn has(&self, version: u64) -> bool {
        let Ok(version) = u32::try_from(version) else { return false };
        match &self.before.contested {
            Some(before) => before.may_hold(version) || (before.issued < version && version <= self.issued),
            None => (settled(self.before.word)..=self.issued).contains(&version),
        }
    }

    /// Whether sectors of different versions may have been read: a write overlapped the read, or had failed.
    pub(super) fn may_be_torn(&self) -> bool {
        match &self.before.contested {
            Some(before) => before.may_be_torn() || self.issued > before.issued,
            None => self.issued > settled(self.before.word),
        }
    }

    /// The oldest and the newest version that it may hold, for messages.
    pub(super) fn ends(&self) -> (u32, u32) {
        let oldest = match &self.before.contested {
            Some(before) => before.versions().map(|(version, _)| version).min().unwrap_or(self.issued),
            None => settled(self.before.word),
        };
        (oldest, self.issued)
    }
}

fn settled(word: u32) -> u32 {
    word & !FLAGS
}

/// The table.
#[derive(Debug)]
pub(super) struct Versions {
    words: Vec<AtomicU32>,
    contested: Mutex<HashMap<u64, Contested>>,
}

impl Versions {
    /// Of so many blocks, each of version 1.
    pub(super) fn new(blocks: u64) -> Self {
        Self { words: (0..blocks).map(|_| AtomicU32::new(1)).collect(), contested: Mutex::default() }
    }

    #[inline]
    fn word(&self, block: u64) -> &AtomicU32 {
        &self.words[block as usize]
    }

    fn beside(&self) -> MutexGuard<'_, HashMap<u64, Contested>> {
        self.contested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write of the block begins; gives its version, or `None` if there is none left.
    #[inline]
    pub(super) fn begin(&self, block: u64) -> Option<u32> {
        let word = self.word(block);
        let found = word.load(Ordering::Relaxed);
        let is_alone = found & FLAGS == 0 && u64::from(found) < VERSION_MAX;
        let taken =
            is_alone && word.compare_exchange(found, found | UNDER_WAY, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let version = if taken { Some(found + 1) } else { self.begin_beside(block) };
        // Whoever reads what is written from here on sees that it is being written.
        fence(Ordering::SeqCst);
        version
    }

    #[cold]
    fn begin_beside(&self, block: u64) -> Option<u32> {
        let (word, mut beside) = (self.word(block), self.beside());
        loop {
            let found = word.load(Ordering::Acquire);
            if found & FLAGS == 0 {
                if u64::from(found) >= VERSION_MAX {
                    return None;
                }
                if word.compare_exchange(found, found | UNDER_WAY, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    return Some(found + 1);
                }
                continue;
            }
            if found & CONTESTED == 0 {
                let is_ours = word.compare_exchange(found, CONTESTED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
                if !is_ours {
                    continue;
                }
                beside.insert(block, Contested::new(settled(found), true));
            }
            let contested = beside.get_mut(&block)?;
            return (u64::from(contested.issued) < VERSION_MAX).then(|| contested.begin());
        }
    }

    /// That write has ended; `is_whole`: well.
    #[inline]
    pub(super) fn end(&self, block: u64, version: u32, is_whole: bool) {
        let alone = (version - 1) | UNDER_WAY;
        let word = self.word(block);
        if !is_whole || word.compare_exchange(alone, version, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            self.end_beside(block, version, is_whole);
        }
    }

    #[cold]
    fn end_beside(&self, block: u64, version: u32, is_whole: bool) {
        let (word, mut beside) = (self.word(block), self.beside());
        let found = word.load(Ordering::Acquire);
        if found & CONTESTED == 0 {
            // It is under way alone, and others come in only by the lock that is held here.
            word.store(CONTESTED, Ordering::Release);
            beside.insert(block, Contested::new(settled(found), true));
        }
        let Some(contested) = beside.get_mut(&block) else { return };
        contested.end(version, is_whole);
        if let Some(settled) = contested.settled() {
            beside.remove(&block);
            word.store(settled, Ordering::Release);
        }
    }

    /// What is known of a block that is about to be read.
    #[inline]
    pub(super) fn before(&self, block: u64) -> Before {
        let word = self.word(block).load(Ordering::Acquire);
        if word & CONTESTED == 0 { Before { word, contested: None } } else { self.before_beside(block) }
    }

    #[cold]
    fn before_beside(&self, block: u64) -> Before {
        let beside = self.beside();
        let contested = beside.get(&block).cloned().map(Box::new);
        Before { word: self.word(block).load(Ordering::Acquire), contested }
    }

    /// The version that a block has to hold which nothing wrote while it was read.
    #[inline]
    pub(super) fn undisturbed(&self, block: u64, before: &Before) -> Option<u32> {
        // What was read was read before this is.
        fence(Ordering::Acquire);
        let word = self.word(block).load(Ordering::Relaxed);
        (word == before.word && word & FLAGS == 0).then_some(word)
    }

    /// What a block may hold that was read since then.
    #[cold]
    pub(super) fn allowed(&self, block: u64, before: &Before) -> Allowed {
        fence(Ordering::Acquire);
        let beside = self.beside();
        let issued = match (self.word(block).load(Ordering::Acquire), beside.get(&block)) {
            (word, Some(contested)) if word & CONTESTED != 0 => contested.issued,
            (word, _) => settled(word) + u32::from(word & UNDER_WAY != 0),
        };
        Allowed { before: before.clone(), issued }
    }

    /// Makes blocks those of a new file, of version 1.
    pub(super) fn renew(&self, first: u64, count: u64) {
        for block in first..first + count {
            if self.word(block).swap(1, Ordering::AcqRel) & CONTESTED != 0 {
                self.beside().remove(&block);
            }
        }
    }

    /// How often a block was begun to be written since it was laid out.
    pub(super) fn writes(&self, block: u64) -> u64 {
        let known = self.kept(block);
        let issued = if known > 0 { known } else { self.allowed(block, &Before { word: 1, contested: None }).issued };
        u64::from(issued) - 1
    }

    /// Whoever still writes will not come back. Gives how many blocks were being written.
    pub(super) fn settle_all(&self) -> u64 {
        let mut under_way = 0;
        for (block, word) in (0..).zip(&self.words) {
            if word.load(Ordering::Acquire) & UNDER_WAY != 0 {
                self.end_beside(block, settled(word.load(Ordering::Acquire)) + 1, false);
                under_way += 1;
            }
        }
        under_way + self.beside().values_mut().map(Contested::end_all).sum::<u64>()
    }

    /// The version of a block, 0 if that is not known.
    pub(super) fn kept(&self, block: u64) -> u32 {
        let word = self.word(block).load(Ordering::Acquire);
        if word & FLAGS == 0 { word } else { 0 }
    }

    /// Takes back what was kept.
    pub(super) fn put(&self, block: u64, version: u32) {
        self.word(block).store(version, Ordering::Release);
    }

    /// The blocks whose version is not known.
    pub(super) fn unknown(&self) -> Vec<(u64, Contested)> {
        self.beside().iter().map(|(&block, contested)| (block, contested.clone())).collect()
    }

    /// Takes one of those back.
    pub(super) fn put_unknown(&self, block: u64, contested: Contested) {
        self.word(block).store(CONTESTED, Ordering::Release);
        self.beside().insert(block, contested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_held_to_the_last_write_that_had_ended_before_it() {
        let versions = Versions::new(3);
        let first = versions.begin(1).unwrap();
        versions.end(1, first, true);
        let before = versions.before(1);
        assert_eq!((first, versions.undisturbed(1, &before)), (2, Some(2)));
        let during = versions.begin(1).unwrap();
        assert_eq!(versions.undisturbed(1, &before), None);
        let allowed = versions.allowed(1, &before);
        assert!(!allowed.has(1) && allowed.has(2) && allowed.has(3) && !allowed.has(4) && allowed.may_be_torn());
        versions.end(1, during, true);
        let allowed = versions.allowed(1, &versions.before(1));
        assert!(!allowed.has(2) && allowed.has(3) && !allowed.may_be_torn());
        assert_eq!((versions.writes(1), versions.writes(0)), (2, 0));
    }

    #[test]
    fn of_two_writes_at_once_either_is_right_and_a_third_settles_it() {
        let versions = Versions::new(1);
        let (one, two) = (versions.begin(0).unwrap(), versions.begin(0).unwrap());
        versions.end(0, two, true);
        versions.end(0, one, true);
        let allowed = versions.allowed(0, &versions.before(0));
        assert!(!allowed.has(1) && allowed.has(2) && allowed.has(3) && !allowed.may_be_torn());
        assert_eq!((versions.kept(0), versions.unknown().len()), (0, 1));
        let three = versions.begin(0).unwrap();
        versions.end(0, three, true);
        assert_eq!((versions.kept(0), versions.unknown().len()), (4, 0));
    }

    #[test]
    fn a_write_that_failed_leaves_both_and_so_does_one_that_never_ended() {
        let versions = Versions::new(2);
        let failed = versions.begin(0).unwrap();
        versions.end(0, failed, false);
        versions.begin(1).unwrap();
        versions.settle_all();
        for block in 0..2 {
            let allowed = versions.allowed(block, &versions.before(block));
            assert!(allowed.has(1) && allowed.has(2) && !allowed.has(3) && allowed.may_be_torn(), "{block}");
        }
        let mut unknown = versions.unknown();
        versions.renew(0, 2);
        assert_eq!((versions.kept(0), versions.kept(1), versions.unknown().len()), (1, 1, 0));
        let (block, contested) = unknown.pop().unwrap();
        versions.put_unknown(block, contested);
        assert_eq!((versions.kept(block), versions.writes(block)), (0, 1));
    }

    #[test]
    fn versions_end() {
        let versions = Versions::new(1);
        versions.put(0, VERSION_MAX as u32 - 1);
        let last = versions.begin(0).unwrap();
        assert_eq!((last, versions.begin(0)), (VERSION_MAX as u32, None));
        versions.end(0, last, true);
        assert_eq!(versions.begin(0), None);
    }

    /// A block as a word that writers replace whole: readers are given nothing that the table does not allow, and once all
    /// is over it allows what is there.
    #[test]
    fn it_is_exact_while_threads_write_and_read() {
        let (versions, content) = (Versions::new(1), AtomicU32::new(1));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let version = versions.begin(0).unwrap();
                        content.store(version, Ordering::SeqCst);
                        versions.end(0, version, true);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let before = versions.before(0);
                    let read = content.load(Ordering::SeqCst);
                    match versions.undisturbed(0, &before) {
                        Some(version) => assert_eq!(version, read),
                        None => {
                            let allowed = versions.allowed(0, &before);
                            assert!(allowed.has(read.into()), "{read} is not one of {allowed:?}");
                        }
                    }
                }
            });
        });
        assert_eq!(versions.writes(0), 60_000);
        assert!(versions.allowed(0, &versions.before(0)).has(content.into_inner().into()));
        let last = versions.begin(0).unwrap();
        versions.end(0, last, true);
        assert_eq!((versions.kept(0), versions.unknown().len()), (60_002, 0), "what nobody disturbs settles");
    }
}
