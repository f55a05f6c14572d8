//! One row a window.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// A row of `windows.npy`; times in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowRow {
    /// As it was asked for.
    pub round: u32,
    /// As it was asked for.
    pub position: u32,
    /// From when on transactions were started.
    pub opened_ns: i64,
    /// From when on none was: its length later, or earlier where the segment ended within it.
    pub closed_ns: i64,
    /// When none was under way any more.
    pub drained_ns: i64,
    /// Index of its first transaction.
    pub first_index: u64,
    /// Index of the first transaction after it.
    pub next_index: u64,
    /// Of its transactions, by outcome: this and what follows add up to all of them.
    pub done: u64,
    /// See [`crate::Outcome`].
    pub failed: u64,
    /// See [`crate::Outcome`].
    pub skipped: u64,
    /// See [`crate::Outcome`].
    pub lost: u64,
}

const WORDS: [&str; 2] = ["round", "position"];
const TIMES: [&str; 3] = ["opened_ns", "closed_ns", "drained_ns"];
const COUNTS: [&str; 6] = ["first_index", "next_index", "done", "failed", "skipped", "lost"];

impl WindowRow {
    fn fields() -> Vec<Field> {
        let words = WORDS.iter().map(|name| Field::new(name, FieldType::U32));
        let times = TIMES.iter().map(|name| Field::new(name, FieldType::I64));
        words.chain(times).chain(COUNTS.iter().map(|name| Field::new(name, FieldType::U64))).collect()
    }

    fn packed(&self) -> Vec<u8> {
        let mut row = Vec::new();
        [self.round, self.position].iter().for_each(|word| row.extend_from_slice(&word.to_le_bytes()));
        let times = [self.opened_ns, self.closed_ns, self.drained_ns];
        times.iter().for_each(|time| row.extend_from_slice(&time.to_le_bytes()));
        let counts = [self.first_index, self.next_index, self.done, self.failed, self.skipped, self.lost];
        counts.iter().for_each(|count| row.extend_from_slice(&count.to_le_bytes()));
        row
    }
}

/// Writes `windows.npy`. Each row reaches the kernel at once: a window lasts long, and a kill should lose none that has drained.
#[derive(Debug)]
pub struct WindowWriter {
    table: TableWriter,
}

impl WindowWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { table: TableWriter::create(path, WindowRow::fields())? })
    }

    /// Appends `row` and hands it to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, row: &WindowRow) -> io::Result<()> {
        self.table.row(&row.packed())?;
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
