//! Streams that go over all files from the first byte to the last, and again.
//!
//! The fact that constrains it: several sessions may go on with one stream, as the requests of one job that are under way at a time,
//! and no two of them are given the same bytes. So a stream is where it has come to, in one number that is moved on in one step.

use super::versions::BLOCK;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of all files together a stream has passed; alone on its lines of the CPU's cache, for each operation writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Passed(AtomicU64);

/// The streams of a segment, over files that nothing comes to or goes from.
#[derive(Debug)]
pub(super) struct Streams {
    passed: Vec<Passed>,
    /// Where each file's blocks begin when all are counted; one more for the end.
    first_block: Vec<u64>,
}

impl Streams {
    /// So many (1 or more), each at the first byte. `first_block`: where the blocks of each file begin, and one more for the end.
    pub(super) fn new(count: u32, first_block: &[u64]) -> Self {
        Self { passed: (0..count).map(|_| Passed::default()).collect(), first_block: first_block.to_vec() }
    }

    /// The stream of session `number`: they are dealt out in turn.
    pub(super) fn of_session(&self, number: u32) -> usize {
        number as usize % self.passed.len()
    }

    fn first_byte(&self, place: usize) -> u64 {
        self.first_block[place] * BLOCK
    }

    /// The file with a byte of all together; `hint` is one near it.
    #[inline]
    fn place_of(&self, byte: u64, hint: usize) -> usize {
        let is_in = |place: usize| self.first_byte(place) <= byte && byte < self.first_byte(place + 1);
        if is_in(hint) {
            return hint;
        }
        self.first_block.partition_point(|&first| first * BLOCK <= byte) - 1
    }

    /// Where a stream stands: the file, which may be near `hint`.
    #[inline]
    pub(super) fn place(&self, stream: usize, hint: u32) -> u32 {
        self.place_of(self.passed[stream].0.load(Ordering::Relaxed), hint as usize) as u32
    }

    /// The next `bytes` of a stream, none of which another session is given: file and offset. What is left of a file at its end and is
    /// too short is left out; no file is shorter than `bytes`.
    #[inline]
    pub(super) fn take(&self, stream: usize, bytes: u64, hint: u32) -> (u32, u64) {
        let (passed, end) = (&self.passed[stream].0, self.first_byte(self.first_block.len() - 1));
        let mut from = passed.load(Ordering::Relaxed);
        loop {
            let (mut place, mut at) = (self.place_of(from, hint as usize), from);
            if at + bytes > self.first_byte(place + 1) {
                place = if place + 2 < self.first_block.len() { place + 1 } else { 0 };
                at = self.first_byte(place);
            }
            let next = if at + bytes < end { at + bytes } else { 0 };
            match passed.compare_exchange_weak(from, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (place as u32, at - self.first_byte(place)),
                Err(found) => from = found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;

    /// Files of 3, 1 and 2 blocks.
    fn streams(count: u32) -> Streams {
        Streams::new(count, &[0, 3, 4, 6])
    }

    #[test]
    fn a_stream_goes_over_all_files_in_their_order_and_again() {
        let streams = streams(1);
        let mut hint = 0;
        let once: Vec<(u32, u64)> = (0..6)
            .map(|_| {
                assert_eq!(streams.place(0, hint), streams.place(0, 0), "whatever the hint is");
                let taken = streams.take(0, 4096, hint);
                hint = taken.0;
                taken
            })
            .collect();
        assert_eq!(once, [(0, 0), (0, 4096), (0, 8192), (1, 0), (2, 0), (2, 4096)]);
        assert!(once.iter().all(|&taken| streams.take(0, 4096, 1) == taken));
    }

    #[test]
    fn what_is_too_short_at_a_files_end_is_left_out() {
        let streams = Streams::new(1, &[0, 3, 5]);
        let taken: Vec<_> = (0..4).map(|_| streams.take(0, 8192, 0)).collect();
        assert_eq!(taken, [(0, 0), (1, 0), (0, 0), (1, 0)]);
        let short = Streams::new(1, &[0, 1]);
        let sectors: Vec<_> = (0..4).map(|_| short.take(0, 1536, 0)).collect();
        assert_eq!(sectors, [(0, 0), (0, 1536), (0, 0), (0, 1536)]);
    }

    #[test]
    fn each_stream_stands_where_it_has_come_to() {
        let streams = streams(2);
        assert_eq!([0, 1, 2, 5].map(|number| streams.of_session(number)), [0, 1, 0, 1]);
        assert_eq!([streams.take(0, 8192, 0), streams.take(1, 4096, 0)], [(0, 0), (0, 0)]);
        assert_eq!([streams.take(0, 4096, 0), streams.take(1, 4096, 0)], [(0, 8192), (0, 4096)]);
        assert_eq!([streams.place(0, 0), streams.place(1, 0)], [1, 0]);
    }

    #[test]
    fn no_two_sessions_of_a_stream_are_given_the_same_bytes() {
        let (streams, all_are_there) = (Streams::new(1, &[0, 50_000, 200_000]), Barrier::new(4));
        let taken: Vec<Vec<(u32, u64)>> = std::thread::scope(|scope| {
            let take = || {
                all_are_there.wait();
                let mut hint = 0;
                let next = |_| {
                    let taken = streams.take(0, 4096, hint);
                    hint = taken.0;
                    taken
                };
                (0..50_000).map(next).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let all: HashSet<_> = taken.into_iter().flatten().collect();
        assert_eq!(all.len(), 200_000);
        assert_eq!(streams.take(0, 4096, 0), (0, 0), "and then from the beginning");
    }
}
