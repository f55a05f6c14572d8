//! One direction of a TCP connection put in order: early, late, repeated and lost segments.
//!
//! The fact that constrains it: a gap may be filled later (the network reordered, or the sender sent again) or never (the
//! capture missed it), and only the other side's acknowledgement tells: what is acknowledged has arrived, so that a capture
//! that has not shown it by now hardly will. What waits behind a gap is bounded by bytes and by time.

use crate::message::Message;
use crate::packet::Segment;
use crate::records::{Records, Seen};
use std::collections::BTreeMap;

/// Bytes that may wait behind a gap: more than a TCP window.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Segments that may wait behind a gap once the other side has acknowledged it: what a capture may be out of order by.
const WAITING_ACKNOWLEDGED_MAX: usize = 64;
const ACKNOWLEDGED_NS_MAX: i64 = 100_000_000;
/// For how long anything waits.
const WAITING_NS_MAX: i64 = 10_000_000_000;
/// What a waiting segment costs beside its bytes.
const SEGMENT_COST: usize = 96;

/// What became of a stream's segments: the fields of `Totals` of the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamCounts {
    pub(crate) segments_again: u64,
    pub(crate) segments_early: u64,
    pub(crate) gaps: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) resynchronised: u64,
    pub(crate) records_lost: u64,
}

#[derive(Debug)]
struct Waiting {
    ns: i64,
    data: Vec<u8>,
    missing: usize,
}

impl Waiting {
    fn cost(&self) -> usize {
        self.data.len() + SEGMENT_COST
    }
}

#[derive(Debug)]
pub(crate) struct Stream {
    records: Records,
    /// Where the next byte is that was not yet handed on: TCP's number, continued beyond 32 bits.
    next: u64,
    is_begun: bool,
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
    gap_since_ns: i64,
    /// Up to where the other side has everything.
    acknowledged: u64,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            records: Records::from_anywhere(),
            next: 0,
            is_begun: false,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            gap_since_ns: 0,
            acknowledged: 0,
        }
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// TCP's number as a place, near to where the stream is.
    fn place(&self, sequence: u32) -> u64 {
        let distance = sequence.wrapping_sub(self.next as u32) as i32;
        self.next.wrapping_add_signed(i64::from(distance))
    }

    /// The other side has everything up to here.
    pub(crate) fn acknowledge(&mut self, sequence: u32) {
        if self.is_begun {
            self.acknowledged = self.acknowledged.max(self.place(sequence));
        }
    }

    /// Whether the other side has what is missing here.
    pub(crate) fn has_acknowledged_gap(&self) -> bool {
        !self.waiting.is_empty() && self.acknowledged > self.next
    }

    pub(crate) fn add(
        &mut self,
        ns: i64,
        segment: &Segment<'_>,
        counts: &mut StreamCounts,
        each: &mut impl FnMut(Message<'_>),
    ) {
        let sequence = segment.sequence.wrapping_add(u32::from(segment.is_first));
        if segment.is_first {
            if self.is_begun && self.place(sequence) == self.next && self.waiting.is_empty() {
                counts.segments_again += 1;
            } else {
                self.finish(counts, each);
                self.begin(sequence, Records::from_start());
            }
        }
        let length = segment.data.len() + segment.missing;
        if length == 0 {
            return;
        }
        if !self.is_begun {
            self.begin(sequence, Records::from_anywhere());
        }
        let at = self.place(sequence);
        let end = at.wrapping_add(length as u64);
        if end <= self.next {
            counts.segments_again += 1;
            return;
        }
        if at > self.next {
            self.wait(ns, at, segment, counts);
            self.end_of_patience(ns, counts, each);
            return;
        }
        self.hand_on(Seen { own_ns: ns, whole_ns: ns }, at, segment.data, segment.missing, each);
        self.drain(ns, each);
        self.count(counts);
    }

    fn begin(&mut self, sequence: u32, records: Records) {
        // Far from 0, so that nothing that is before it is below 0.
        self.next = (1 << 40) | u64::from(sequence);
        self.acknowledged = self.next;
        self.records = records;
        self.is_begun = true;
    }

    fn wait(&mut self, ns: i64, at: u64, segment: &Segment<'_>, counts: &mut StreamCounts) {
        if self.waiting.is_empty() {
            self.gap_since_ns = ns;
        }
        let new = Waiting { ns, data: segment.data.to_vec(), missing: segment.missing };
        let length = new.data.len() + new.missing;
        if self.waiting.get(&at).is_some_and(|old| old.data.len() + old.missing >= length) {
            counts.segments_again += 1;
            return;
        }
        counts.segments_early += 1;
        self.waiting_bytes += new.cost();
        if let Some(old) = self.waiting.insert(at, new) {
            self.waiting_bytes -= old.cost();
        }
    }

    fn end_of_patience(&mut self, ns: i64, counts: &mut StreamCounts, each: &mut impl FnMut(Message<'_>)) {
        let waited_ns = ns.saturating_sub(self.gap_since_ns);
        let is_missed = self.has_acknowledged_gap()
            && (self.waiting.len() > WAITING_ACKNOWLEDGED_MAX || waited_ns > ACKNOWLEDGED_NS_MAX);
        // Nothing waits for the middle of what has no beginning.
        while self.records.is_searching() && !self.waiting.is_empty() {
            self.pass_gap(counts, each);
        }
        if is_missed || self.waiting_bytes > WAITING_BYTES_MAX || waited_ns > WAITING_NS_MAX {
            self.pass_gap(counts, each);
        }
    }

    /// Goes on behind the first gap, and tells of what is missing.
    pub(crate) fn pass_gap(&mut self, counts: &mut StreamCounts, each: &mut impl FnMut(Message<'_>)) {
        let Some((&at, first)) = self.waiting.first_key_value() else { return };
        let (missing, ns) = (at - self.next.min(at), first.ns);
        if self.records.has_found() {
            counts.gaps += 1;
            counts.lost_bytes += missing;
        }
        self.records.skip(ns, usize::try_from(missing).unwrap_or(usize::MAX), each);
        self.next = at;
        self.gap_since_ns = ns;
        self.drain(0, each);
        self.count(counts);
    }

    /// Hands on what waits no longer. It was seen at its own time, but did not count before `filled_ns`.
    fn drain(&mut self, filled_ns: i64, each: &mut impl FnMut(Message<'_>)) {
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() > self.next {
                return;
            }
            let (at, segment) = first.remove_entry();
            self.waiting_bytes -= segment.cost();
            let seen = Seen { own_ns: segment.ns, whole_ns: segment.ns.max(filled_ns) };
            self.hand_on(seen, at, &segment.data, segment.missing, each);
        }
    }

    /// Hands on what of a segment is new.
    fn hand_on(&mut self, seen: Seen, at: u64, data: &[u8], missing: usize, each: &mut impl FnMut(Message<'_>)) {
        let known = usize::try_from(self.next - at.min(self.next)).unwrap_or(usize::MAX);
        if known >= data.len() + missing {
            return;
        }
        let new = data.get(known..).unwrap_or(&[]);
        let missing = missing.min(data.len() + missing - known);
        self.records.feed(seen, new, each);
        self.records.skip(seen.whole_ns, missing, each);
        self.next += (new.len() + missing) as u64;
    }

    fn count(&mut self, counts: &mut StreamCounts) {
        let given = self.records.given();
        counts.resynchronised += given.resynchronised;
        counts.records_lost += given.records_lost;
    }

    /// Nothing more will come: what waits is handed on, what is incomplete given up.
    pub(crate) fn finish(&mut self, counts: &mut StreamCounts, each: &mut impl FnMut(Message<'_>)) {
        while !self.waiting.is_empty() {
            self.pass_gap(counts, each);
        }
        self.count(counts);
    }
}

#[cfg(test)]
#[path = "stream/tests.rs"]
mod tests;
