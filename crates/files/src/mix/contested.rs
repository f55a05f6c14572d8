//! A block that several writes met at once, or that one failed to write: what it may hold. Pure.
//!
//! A version may be there as long as no write has ended well that began after that version's own write had ended.

/// One write of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    version: u32,
    began: u32,
    /// `None` while it is under way.
    ended: Option<u32>,
    /// False if it failed: some of it may be there.
    is_whole: bool,
}

/// What is known of such a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contested {
    /// The newest version that was begun.
    pub(super) issued: u32,
    /// Beginnings and ends so far, by which they are ordered.
    tick: u32,
    writes: Vec<Write>,
}

impl Contested {
    /// A block that holds `settled`, while the one after it is being written if `is_under_way`.
    pub(super) fn new(settled: u32, is_under_way: bool) -> Self {
        let mut contested = Self::of(settled, &[(settled, true)]);
        if is_under_way {
            contested.begin();
        }
        contested
    }

    /// A block that may hold any of these versions, none of which is being written; false: some of it.
    pub(super) fn of(issued: u32, versions: &[(u32, bool)]) -> Self {
        let write = |&(version, is_whole)| Write { version, began: 0, ended: Some(0), is_whole };
        Self { issued, tick: 1, writes: versions.iter().map(write).collect() }
    }

    fn tick(&mut self) -> u32 {
        self.tick += 1;
        self.tick - 1
    }

    /// A write begins; gives its version.
    pub(super) fn begin(&mut self) -> u32 {
        let began = self.tick();
        self.issued += 1;
        self.writes.push(Write { version: self.issued, began, ended: None, is_whole: true });
        self.issued
    }

    /// That write has ended; `is_whole`: well.
    pub(super) fn end(&mut self, version: u32, is_whole: bool) {
        let ended = self.tick();
        let Some(write) = self.writes.iter_mut().find(|write| write.version == version) else { return };
        (write.ended, write.is_whole) = (Some(ended), is_whole);
        let began = write.began;
        if is_whole {
            self.writes.retain(|other| other.ended.is_none_or(|ended| ended >= began));
        }
    }

    /// Whoever writes it will not come back. Gives how many did.
    pub(super) fn end_all(&mut self) -> u64 {
        let under_way = self.writes.iter().filter(|write| write.ended.is_none()).map(|write| write.version);
        let under_way: Vec<u32> = under_way.collect();
        under_way.iter().for_each(|&version| self.end(version, false));
        under_way.len() as u64
    }

    /// The one version that it holds, if that is known.
    pub(super) fn settled(&self) -> Option<u32> {
        match self.writes[..] {
            [Write { version, ended: Some(_), is_whole: true, .. }] => Some(version),
            _ => None,
        }
    }

    /// Whether a version may be there.
    pub(super) fn may_hold(&self, version: u32) -> bool {
        self.writes.iter().any(|write| write.version == version)
    }

    /// Whether its sectors may differ: something is being written, or was in part.
    pub(super) fn may_be_torn(&self) -> bool {
        self.writes.iter().any(|write| write.ended.is_none() || !write.is_whole)
    }

    /// The versions that may be there, each with whether all of it was written.
    pub(super) fn versions(&self) -> impl Iterator<Item = (u32, bool)> {
        self.writes.iter().map(|write| (write.version, write.is_whole && write.ended.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(contested: &Contested) -> Vec<u32> {
        contested.versions().map(|(version, _)| version).collect()
    }

    #[test]
    fn of_two_writes_side_by_side_either_may_be_there_and_nothing_older() {
        let mut block = Contested::new(5, true);
        assert_eq!((block.begin(), held(&block)), (7, vec![5, 6, 7]));
        block.end(7, true);
        assert_eq!(held(&block), [6, 7], "5 had been written before 7 was begun");
        block.end(6, true);
        assert_eq!((held(&block), block.settled()), (vec![6, 7], None));
        assert!(!block.may_be_torn() && !block.may_hold(5));
        let last = block.begin();
        block.end(last, true);
        assert_eq!(block.settled(), Some(8));
    }

    #[test]
    fn a_version_in_the_middle_is_excluded_and_an_older_one_that_went_on_is_not() {
        let mut block = Contested::new(1, true);
        assert_eq!(block.begin(), 3);
        block.end(3, true);
        assert_eq!(block.begin(), 4);
        block.end(4, true);
        assert_eq!(held(&block), [2, 4], "2 has been under way all the time");
        block.end(2, true);
        assert_eq!((held(&block), block.settled()), (vec![2, 4], None));
    }

    #[test]
    fn what_failed_may_be_there_in_part_until_the_next_write_has_ended_well() {
        let mut block = Contested::new(1, true);
        block.end(2, false);
        assert!(block.may_hold(1) && block.may_hold(2) && block.may_be_torn());
        let next = block.begin();
        block.end(next, false);
        assert_eq!(held(&block), [1, 2, 3]);
        let next = block.begin();
        block.end(next, true);
        assert_eq!((block.settled(), block.may_be_torn()), (Some(4), false));
    }

    #[test]
    fn what_never_came_back_has_failed() {
        let mut block = Contested::new(1, true);
        block.begin();
        assert_eq!(block.end_all(), 2);
        assert_eq!(block.versions().collect::<Vec<_>>(), [(1, true), (2, false), (3, false)]);
    }
}
