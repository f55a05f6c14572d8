//! `latency.npy`: the histogram of planned-to-end latency of done transactions, by kind.

use crate::npy::{Field, FieldType, TableWriter};
use hdrhistogram::Histogram;
use std::io;
use std::path::Path;

/// Writes the buckets that hold anything; `by_kind` is in the order of the summary's `kinds`, in nanoseconds.
///
/// # Errors
/// When the file cannot be written.
pub fn write_latency(path: &Path, by_kind: &[Histogram<u64>]) -> io::Result<u64> {
    let fields = vec![
        Field::new("kind", FieldType::U8),
        Field::new("low_ns", FieldType::U64),
        Field::new("high_ns", FieldType::U64),
        Field::new("count", FieldType::U64),
    ];
    let mut table = TableWriter::create(path, fields)?;
    for (kind, histogram) in by_kind.iter().enumerate() {
        for bucket in histogram.iter_recorded() {
            let low = histogram.lowest_equivalent(bucket.value_iterated_to());
            let high = histogram.next_non_equivalent(bucket.value_iterated_to());
            let mut row = [0u8; 25];
            row[0] = u8::try_from(kind).map_err(io::Error::other)?;
            row[1..9].copy_from_slice(&low.to_le_bytes());
            row[9..17].copy_from_slice(&high.to_le_bytes());
            row[17..25].copy_from_slice(&bucket.count_at_value().to_le_bytes());
            table.row(&row)?;
        }
    }
    table.close()
}
