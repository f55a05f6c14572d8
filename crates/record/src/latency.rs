//! `latency.npy`: the histogram of planned-to-end latency of done transactions, by kind.

use crate::npy::{Field, FieldType, TableWriter};
use hdrhistogram::{Counter, Histogram};
use std::io;
use std::path::Path;

/// The columns of a bucket, behind whatever tells histograms apart.
pub(crate) fn bucket_fields() -> [Field; 3] {
    [("low_ns", FieldType::U64), ("high_ns", FieldType::U64), ("count", FieldType::U64)]
        .map(|(name, kind)| Field::new(name, kind))
}

/// Bytes of the columns of a bucket.
pub(crate) const BUCKET_BYTES: usize = 24;

/// The buckets of `histogram` that hold anything, lowest first, packed as their columns.
pub(crate) fn buckets<T: Counter>(histogram: &Histogram<T>) -> impl Iterator<Item = [u8; BUCKET_BYTES]> {
    histogram.iter_recorded().map(|bucket| {
        let low = histogram.lowest_equivalent(bucket.value_iterated_to());
        let high = histogram.next_non_equivalent(bucket.value_iterated_to());
        let mut packed = [0; BUCKET_BYTES];
        packed[0..8].copy_from_slice(&low.to_le_bytes());
        packed[8..16].copy_from_slice(&high.to_le_bytes());
        packed[16..24].copy_from_slice(&bucket.count_at_value().as_u64().to_le_bytes());
        packed
    })
}

/// Writes the buckets that hold anything; `by_kind` is in the order of the summary's `kinds`, in nanoseconds.
///
/// # Errors
/// When the file cannot be written.
pub fn write_latency(path: &Path, by_kind: &[Histogram<u64>]) -> io::Result<u64> {
    let fields = std::iter::once(Field::new("kind", FieldType::U8)).chain(bucket_fields()).collect();
    let mut table = TableWriter::create(path, fields)?;
    for (kind, histogram) in by_kind.iter().enumerate() {
        for bucket in buckets(histogram) {
            let mut row = [0u8; 1 + BUCKET_BYTES];
            row[0] = u8::try_from(kind).map_err(io::Error::other)?;
            row[1..].copy_from_slice(&bucket);
            table.row(&row)?;
        }
    }
    table.close()
}
