use super::*;

fn call(xid: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [1 << 31 | 1040, xid, 0, 2, 100_003, 3, 0, 0, 0, 0, 0].into_iter().flat_map(u32::to_be_bytes).collect();
    bytes.resize(1044, 0);
    bytes
}

/// A stream that begins shortly before its numbers wrap, and what of it was found.
struct Seen {
    stream: Stream,
    counts: StreamCounts,
    found: Vec<(u32, i64)>,
}

const FIRST: u32 = u32::MAX - 1500;

impl Seen {
    fn new() -> Self {
        let mut seen = Self { stream: Stream::new(), counts: StreamCounts::default(), found: Vec::new() };
        seen.add(0, FIRST.wrapping_sub(1), &[], true);
        seen
    }

    fn add(&mut self, ns: i64, sequence: u32, data: &[u8], is_first: bool) {
        let Self { stream, counts, found } = self;
        let segment = Segment { sequence, acknowledged: None, is_first, data, missing: 0 };
        stream.add(ns, &segment, counts, &mut |message| {
            found.push((u32::from_be_bytes(message.head[..4].try_into().unwrap()), message.last_ns));
        });
    }

    /// The message of that number, in the order of numbers.
    fn message(&mut self, ns: i64, number: u32) {
        self.add(ns, FIRST.wrapping_add(number * 1044), &call(number), false);
    }
}

#[test]
fn numbers_wrap_and_late_segments_fill_gaps() {
    let mut seen = Seen::new();
    for (ns, number) in [(1, 0), (2, 2), (3, 3), (4, 1), (5, 1), (6, 4)] {
        seen.message(ns, number);
    }
    assert_eq!(seen.found, [(0, 1), (1, 4), (2, 4), (3, 4), (4, 6)]);
    let counts = StreamCounts { segments_early: 2, segments_again: 1, ..StreamCounts::default() };
    assert_eq!(seen.counts, counts);
}

#[test]
fn a_gap_that_the_other_side_acknowledged_is_waited_for_no_longer_than_a_capture_is_out_of_order() {
    let mut seen = Seen::new();
    seen.message(1, 0);
    for number in 2..60 {
        seen.message(i64::from(number), number);
    }
    assert_eq!(seen.found.len(), 1, "it may be sent again");
    seen.stream.acknowledge(FIRST.wrapping_add(60 * 1044));
    assert!(seen.stream.has_acknowledged_gap());
    for number in 60..80 {
        seen.message(i64::from(number), number);
    }
    assert_eq!(seen.found.len(), 79);
    assert_eq!(seen.found[1], (2, 2), "seen when it was");
    assert_eq!((seen.counts.gaps, seen.counts.lost_bytes, seen.counts.resynchronised), (1, 1044, 1));
    assert_eq!(seen.stream.waiting_bytes(), 0);
}

#[test]
fn what_waits_is_bounded_by_bytes_and_by_time() {
    let mut seen = Seen::new();
    seen.message(1, 0);
    for number in 2..40_000 {
        seen.message(2, number);
        assert!(seen.stream.waiting_bytes() <= WAITING_BYTES_MAX + 2000);
    }
    assert!(seen.found.len() > 10_000);
    assert_eq!(seen.counts.gaps, 1);
    let mut seen = Seen::new();
    seen.message(1, 0);
    seen.message(2, 2);
    seen.message(WAITING_NS_MAX + 3, 3);
    assert_eq!(seen.found.len(), 3);
}
