//! What the programs have counted: the layouts of block.h, read from their maps.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::{Bucket, RequestTotals};
use std::collections::BTreeMap;

/// Classes in the record, in the program's order; behind them the file of the self-test, which is in none.
pub(super) const CLASSES: [&str; 12] =
    ["data", "wal", "global", "temp", "other", "metadata", "journal", "swap", "direct", "none", "elsewhere", "unknown"];
pub(super) const OWN: usize = CLASSES.len();
const REQUEST_CLASSES: usize = CLASSES.len() + 1;
/// `enum operation`.
pub(super) const OPERATIONS: [&str; 6] = ["read", "write", "flush", "discard", "write_zeroes", "other"];
const DISKS: usize = super::disks::DISKS_MAX;
const ROWS_OF_SEGMENT: usize = DISKS * REQUEST_CLASSES * OPERATIONS.len();

/// `enum number`.
pub(super) const NUMBERS: usize = 16;
const COUNT: usize = 0;
const ERRORS: usize = 1;
const BYTES: usize = 2;
const QUEUED: usize = 5;
const QUEUE_NS: usize = 6;
const DEVICE_NS: usize = 9;
const MARKS: usize = 12;
/// Sums with their extremes behind them, and the number that says whether there are any.
const SPANS: [(usize, usize); 3] = [(BYTES, COUNT), (QUEUE_NS, QUEUED), (DEVICE_NS, COUNT)];

/// `enum distribution`.
const DISTRIBUTIONS: usize = 3;
const KEY_BYTES: usize = 8;
/// `PARTS_LOG2` of histogram.bpf.h.
const PARTS_LOG2: u32 = 5;

/// `enum segment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    SelfTest,
    Measured,
    Ended,
}

/// Numbers of one row.
pub(super) type Row = [u64; NUMBERS];

/// A disk, a class and an operation, by their places.
pub(super) type Place = (usize, usize, usize);

fn row_of(segment: Segment, (disk, class, operation): Place) -> u32 {
    let row = (disk * REQUEST_CLASSES + class) * OPERATIONS.len() + operation;
    (segment as usize * ROWS_OF_SEGMENT + row) as u32
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a CPU has counted is added: sums to sums, of extremes the further one.
fn add(sum: &mut Row, of_cpu: &Row) {
    for (span, told_by) in SPANS {
        if of_cpu[told_by] == 0 {
            continue;
        }
        let is_first = sum[told_by] == 0;
        sum[span + 1] = if is_first { of_cpu[span + 1] } else { sum[span + 1].min(of_cpu[span + 1]) };
        sum[span + 2] = sum[span + 2].max(of_cpu[span + 2]);
    }
    let is_extreme = |at: usize| SPANS.iter().any(|(span, _)| at == span + 1 || at == span + 2);
    for at in (0..NUMBERS).filter(|at| !is_extreme(*at)) {
        sum[at] += of_cpu[at];
    }
}

/// The row of a place; nothing where nothing was counted.
pub(super) fn row(counters: &MapHandle, segment: Segment, place: Place) -> Option<Row> {
    let cpus = counters.lookup_percpu(&row_of(segment, place).to_ne_bytes(), MapFlags::ANY).ok()??;
    let mut sum = [0; NUMBERS];
    for cpu in &cpus {
        let mut of_cpu = [0; NUMBERS];
        of_cpu.iter_mut().zip(cpu.chunks_exact(8)).for_each(|(to, from)| *to = number(from));
        add(&mut sum, &of_cpu);
    }
    (sum[COUNT] > 0).then_some(sum)
}

/// What the self-test compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) queue_ns: u64,
    pub(super) device_ns: u64,
}

impl Sums {
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            count: self.count - before.count,
            bytes: self.bytes - before.bytes,
            queue_ns: self.queue_ns - before.queue_ns,
            device_ns: self.device_ns - before.device_ns,
        }
    }
}

/// Of the self-test's file, its reads and its writes, on all disks together.
pub(super) fn own_sums(counters: &MapHandle, disks: usize) -> [Sums; 2] {
    [0, 1].map(|operation| {
        let rows = (0..disks).filter_map(|disk| row(counters, Segment::SelfTest, (disk, OWN, operation)));
        rows.fold(Sums::default(), |sums, row| Sums {
            count: sums.count + row[COUNT],
            bytes: sums.bytes + row[BYTES],
            queue_ns: sums.queue_ns + row[QUEUE_NS],
            device_ns: sums.device_ns + row[DEVICE_NS],
        })
    })
}

/// All rows of a segment.
pub(super) fn rows(counters: &MapHandle, segment: Segment, disks: usize) -> BTreeMap<Place, Row> {
    let places = (0..disks).flat_map(|disk| {
        (0..CLASSES.len()).flat_map(move |class| (0..OPERATIONS.len()).map(move |operation| (disk, class, operation)))
    });
    places.filter_map(|place| Some((place, row(counters, segment, place)?))).collect()
}

/// The columns of block.npy, behind the place.
pub(super) const COLUMNS: [&str; 7] = ["count", "errors", "bytes", "synchronous", "queued", "queue_ns", "device_ns"];

/// Of a row.
pub(super) fn columns(row: &Row) -> [i64; COLUMNS.len()] {
    [COUNT, ERRORS, BYTES, MARKS, QUEUED, QUEUE_NS, DEVICE_NS].map(|at| row[at] as i64)
}

/// The least value of a bucket (`bucket_of` of histogram.bpf.h the other way round).
fn least_of(bucket: u32) -> u64 {
    let shift = (bucket >> PARTS_LOG2).saturating_sub(1);
    u64::from(bucket - (shift << PARTS_LOG2)) << shift
}

/// Distributions of a segment by place.
pub(super) type Distributions = BTreeMap<u32, [Vec<Bucket>; DISTRIBUTIONS]>;

/// Reads them.
pub(super) fn distributions(buckets: &MapHandle) -> Distributions {
    let mut found = Distributions::new();
    for key in buckets.keys().filter(|key| key.len() == KEY_BYTES) {
        let Ok(Some(count)) = buckets.lookup(&key, MapFlags::ANY) else { continue };
        let (row, distribution, bucket) = (number(&key[..4]), number(&key[4..6]) as usize, number(&key[6..]));
        let of_row = found.entry(row as u32).or_default();
        if let Some(of_row) = of_row.get_mut(distribution) {
            of_row.push((least_of(bucket as u32), number(&count)));
        }
    }
    found.values_mut().flatten().for_each(|buckets| buckets.sort_unstable());
    found
}

/// A row in the record's form.
pub(super) fn totals(place: Place, row: &Row, distributions: &mut Distributions) -> RequestTotals {
    let of_row = distributions.remove(&row_of(Segment::Measured, place));
    let [bytes_buckets, queue_ns_buckets, device_ns_buckets] = of_row.unwrap_or_default();
    let [synchronous, meta, fua, ahead] = [MARKS, MARKS + 1, MARKS + 2, MARKS + 3].map(|at| row[at]);
    RequestTotals {
        count: row[COUNT],
        errors: row[ERRORS],
        bytes: row[BYTES],
        bytes_min: row[BYTES + 1],
        bytes_max: row[BYTES + 2],
        synchronous,
        meta,
        fua,
        ahead,
        queued: row[QUEUED],
        queue_ns: row[QUEUE_NS],
        queue_ns_min: row[QUEUE_NS + 1],
        queue_ns_max: row[QUEUE_NS + 2],
        device_ns: row[DEVICE_NS],
        device_ns_min: row[DEVICE_NS + 1],
        device_ns_max: row[DEVICE_NS + 2],
        bytes_buckets,
        queue_ns_buckets,
        device_ns_buckets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program does it.
    fn bucket_of(value: u64) -> u32 {
        let log = value.max(1).ilog2();
        if log < PARTS_LOG2 {
            return value as u32;
        }
        ((log - PARTS_LOG2) << PARTS_LOG2) + (value >> (log - PARTS_LOG2)) as u32
    }

    #[test]
    fn a_bucket_is_at_most_one_in_32_wide() {
        for value in
            (0..5_000).chain((12..63).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 12_345 % (1 << log)]))
        {
            let least = least_of(bucket_of(value));
            let next = least_of(bucket_of(value) + 1);
            assert!(least <= value && value < next, "{least} <= {value} < {next}");
            assert!((next - least) * 32 <= least.max(32), "{least} to {next}");
        }
        assert_eq!(least_of(bucket_of(8192)), 8192);
    }

    #[test]
    fn extremes_of_a_cpu_that_counted_nothing_are_none() {
        let (mut sum, mut first, mut second) = ([0; NUMBERS], [0; NUMBERS], [0; NUMBERS]);
        (first[COUNT], first[BYTES], first[BYTES + 1], first[BYTES + 2]) = (2, 12_288, 4_096, 8_192);
        (second[COUNT], second[BYTES], second[BYTES + 1], second[BYTES + 2]) = (1, 16_384, 16_384, 16_384);
        (second[QUEUED], second[QUEUE_NS], second[QUEUE_NS + 1], second[QUEUE_NS + 2]) = (1, 70, 70, 70);
        for cpu in [&[0; NUMBERS], &first, &second] {
            add(&mut sum, cpu);
        }
        let mut distributions = Distributions::new();
        let found = totals((0, 1, 1), &sum, &mut distributions);
        assert_eq!((found.count, found.bytes, found.bytes_min, found.bytes_max), (3, 28_672, 4_096, 16_384));
        assert_eq!((found.queued, found.queue_ns, found.queue_ns_min, found.queue_ns_max), (1, 70, 70, 70));
    }

    #[test]
    fn segments_and_places_have_rows_of_their_own() {
        let mut rows = std::collections::BTreeSet::new();
        for segment in [Segment::SelfTest, Segment::Measured] {
            for disk in 0..DISKS {
                for class in 0..=OWN {
                    rows.extend((0..OPERATIONS.len()).map(|operation| row_of(segment, (disk, class, operation))));
                }
            }
        }
        assert_eq!((rows.len(), rows.last().copied()), (2 * ROWS_OF_SEGMENT, Some(2 * ROWS_OF_SEGMENT as u32 - 1)));
    }
}
