//! One row a transaction.

use crate::npy::{Field, FieldType, TableWriter};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Outcome {
    /// Every answer came and was right.
    Done = 0,
    /// It did not happen: the server refused it, an answer was wrong, or the connection broke before it could count.
    Failed = 1,
    /// Its draw says that nothing is to be done; or it was due in an open loop and not begun, being too late.
    Skipped = 2,
    /// No reply, so it may or may not have happened.
    Lost = 3,
}

impl Outcome {
    /// In the order of their numbers in a row.
    pub const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Skipped, Self::Lost];
}

/// The kind of a transaction that was skipped before its kind was drawn.
pub const KIND_NOT_DRAWN: u8 = u8::MAX;

/// The connection of a transaction that was skipped before it was given one.
pub const NO_CONNECTION: u32 = u32::MAX;

/// A row of `transactions.npy`; units are in the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Number in the trial; with the seed it decides what is done.
    pub index: u64,
    /// When it was due.
    pub planned_ns: i64,
    /// When its first byte was handed to the kernel.
    pub start_ns: i64,
    /// When its last reply was complete.
    pub end_ns: i64,
    /// Of its payload, read and written, so much was moved; 0 of a workload that is not counted in bytes.
    pub bytes: u64,
    /// The connection, from 0, or [`NO_CONNECTION`].
    pub connection: u32,
    /// The server's process, 0 if unknown.
    pub backend_pid: u32,
    /// Statements sent, BEGIN and COMMIT not counted, those of earlier tries too.
    pub statements: u32,
    /// Round trips begun for it, those of earlier tries and a rollback too.
    pub requests: u32,
    /// How often it was tried again.
    pub retries: u32,
    /// 0, or place in the summary's `errors`, from 1.
    pub error: u16,
    /// Place in the summary's `kinds`, or [`KIND_NOT_DRAWN`].
    pub kind: u8,
    /// How it ended.
    pub outcome: Outcome,
}

const ROW_BYTES: usize = 64;

impl Transaction {
    /// The row of one that was due at `planned_ns` and had not been begun when that was given up, at `now_ns`.
    pub const fn unbegun(index: u64, planned_ns: i64, now_ns: i64) -> Self {
        Self {
            index,
            planned_ns,
            start_ns: now_ns,
            end_ns: now_ns,
            bytes: 0,
            connection: NO_CONNECTION,
            backend_pid: 0,
            statements: 0,
            requests: 0,
            retries: 0,
            error: 0,
            kind: KIND_NOT_DRAWN,
            outcome: Outcome::Skipped,
        }
    }

    fn fields() -> Vec<Field> {
        let column = |(name, kind): (&str, FieldType)| Field::new(name, kind);
        [
            ("index", FieldType::U64),
            ("planned_ns", FieldType::I64),
            ("start_ns", FieldType::I64),
            ("end_ns", FieldType::I64),
            ("bytes", FieldType::U64),
            ("connection", FieldType::U32),
            ("backend_pid", FieldType::U32),
            ("statements", FieldType::U32),
            ("requests", FieldType::U32),
            ("retries", FieldType::U32),
            ("error", FieldType::U16),
            ("kind", FieldType::U8),
            ("outcome", FieldType::U8),
        ]
        .into_iter()
        .map(column)
        .collect()
    }

    fn packed(&self) -> [u8; ROW_BYTES] {
        let mut row = [0; ROW_BYTES];
        row[0..8].copy_from_slice(&self.index.to_le_bytes());
        row[8..16].copy_from_slice(&self.planned_ns.to_le_bytes());
        row[16..24].copy_from_slice(&self.start_ns.to_le_bytes());
        row[24..32].copy_from_slice(&self.end_ns.to_le_bytes());
        row[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        let words = [self.connection, self.backend_pid, self.statements, self.requests, self.retries];
        for (place, word) in row[40..60].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        row[60..62].copy_from_slice(&self.error.to_le_bytes());
        row[62..64].copy_from_slice(&[self.kind, self.outcome as u8]);
        row
    }
}

/// Writes `transactions.npy`.
#[derive(Debug)]
pub struct TransactionWriter {
    table: TableWriter,
    packed: Vec<u8>,
}

impl TransactionWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { table: TableWriter::create(path, Transaction::fields())?, packed: Vec::new() })
    }

    /// Appends `rows` and hands them to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, rows: &[Transaction]) -> io::Result<()> {
        self.packed.clear();
        rows.iter().for_each(|row| self.packed.extend_from_slice(&row.packed()));
        self.table.rows(&self.packed)?;
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
