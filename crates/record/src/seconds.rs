//! `latency_seconds.npy` and `lag_seconds.npy`: a histogram for each second of the segment.
//!
//! The fact that constrains it: they are written however long a segment lasts and however few transactions have a row of
//! their own, so a second is written once, when it is over, and nothing is kept of it.

use crate::latency::{bucket_fields, buckets};
use crate::npy::{Field, FieldType, TableWriter};
use hdrhistogram::{Counter, Histogram};
use std::io;
use std::path::Path;

/// Writes histograms second by second. Rows of one second, kind and bucket add up.
#[derive(Debug)]
pub struct SecondsWriter {
    table: TableWriter,
    with_kind: bool,
    packed: Vec<u8>,
}

impl SecondsWriter {
    /// Creates `latency_seconds.npy`: planned-to-end latency of done transactions, by the second in which they ended and by
    /// kind.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn latency(path: &Path) -> io::Result<Self> {
        Self::create(path, true)
    }

    /// Creates `lag_seconds.npy`: start - planned of every transaction that was started, by the second in which it ended.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn lag(path: &Path) -> io::Result<Self> {
        Self::create(path, false)
    }

    fn create(path: &Path, with_kind: bool) -> io::Result<Self> {
        let kind = with_kind.then(|| Field::new("kind", FieldType::U8));
        let fields = std::iter::once(Field::new("second", FieldType::U32)).chain(kind).chain(bucket_fields());
        Ok(Self { table: TableWriter::create(path, fields.collect())?, with_kind, packed: Vec::new() })
    }

    /// Appends the buckets of `histogram` that hold anything. `kind` is left out of a table without kinds.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn second<T: Counter>(&mut self, second: u32, kind: u8, histogram: &Histogram<T>) -> io::Result<()> {
        self.packed.clear();
        for bucket in buckets(histogram) {
            self.packed.extend_from_slice(&second.to_le_bytes());
            if self.with_kind {
                self.packed.push(kind);
            }
            self.packed.extend_from_slice(&bucket);
        }
        self.table.rows(&self.packed)
    }

    /// Hands what was written to the kernel, so that a kill of this process loses none of it.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.table.flush()
    }

    /// Completes the header. Gives the number of rows.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn close(self) -> io::Result<u64> {
        self.table.close()
    }
}
