//! The table of syncs: one row for each fsync and fdatasync of a server's processes, with what it waited for.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// Where the time of a sync goes; every moment of it is in one of them.
pub const SYNC_PARTS: [&str; 10] =
    ["writeback", "writing", "write_io", "journal", "metadata", "flush", "commit", "run_queue", "cpu", "other_wait"];

/// A row of `sync.npy`; units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRow {
    /// When the call was entered.
    pub t_ns: i64,
    /// The server's process.
    pub pid: u32,
    /// Place in the report's `calls`.
    pub call: u8,
    /// Place in the report's `classes`.
    pub class: u8,
    /// 0, or why it failed.
    pub error: u16,
    /// From its entry to its end.
    pub ns: i64,
    /// In the order of [`SYNC_PARTS`].
    pub parts_ns: [i64; SYNC_PARTS.len()],
    /// Of waiting for the journal: while the device was emptying its cache.
    pub journal_flush_ns: i64,
    /// Pages that the call itself wrote.
    pub pages: u32,
}

/// Writes the table.
#[derive(Debug)]
pub struct SyncWriter {
    table: TableWriter,
    packed: Vec<u8>,
}

impl SyncWriter {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        use FieldType::{I64, U8, U16, U32};
        let mut fields = vec![
            Field::new("t_ns", I64),
            Field::new("pid", U32),
            Field::new("call", U8),
            Field::new("class", U8),
            Field::new("error", U16),
            Field::new("ns", I64),
        ];
        fields.extend(SYNC_PARTS.iter().map(|part| Field::new(&format!("{part}_ns"), I64)));
        fields.extend([Field::new("journal_flush_ns", I64), Field::new("pages", U32)]);
        Ok(Self { table: TableWriter::create(&folder.join("sync.npy"), fields)?, packed: Vec::new() })
    }

    /// Appends a sync.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, sync: &SyncRow) -> io::Result<()> {
        let row = &mut self.packed;
        row.clear();
        row.extend_from_slice(&sync.t_ns.to_le_bytes());
        row.extend_from_slice(&sync.pid.to_le_bytes());
        row.extend_from_slice(&[sync.call, sync.class]);
        row.extend_from_slice(&sync.error.to_le_bytes());
        for ns in std::iter::once(&sync.ns).chain(&sync.parts_ns).chain([&sync.journal_flush_ns]) {
            row.extend_from_slice(&ns.to_le_bytes());
        }
        row.extend_from_slice(&sync.pages.to_le_bytes());
        self.table.row(row)
    }

    /// Hands what was appended to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.table.flush()
    }

    /// Completes the header. Gives the number of syncs.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn close(self) -> io::Result<u64> {
        self.table.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn a_row_has_its_parts_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SyncWriter::create(folder.path()).unwrap();
        let row = SyncRow {
            t_ns: 1,
            pid: 2,
            call: 1,
            class: 3,
            error: 5,
            ns: 55,
            parts_ns: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            journal_flush_ns: 11,
            pages: 10,
        };
        writer.append(&row).unwrap();
        assert_eq!(writer.close().unwrap(), 1);
        let table = Table::read(&folder.path().join("sync.npy")).unwrap();
        for (column, value) in [("t_ns", 1), ("pid", 2), ("call", 1), ("class", 3), ("error", 5), ("ns", 55)] {
            assert_eq!(table.column(column).unwrap(), [value], "{column}");
        }
        for (place, part) in SYNC_PARTS.iter().enumerate() {
            assert_eq!(table.column(&format!("{part}_ns")).unwrap(), [place as i128 + 1], "{part}");
        }
        assert_eq!((table.column("journal_flush_ns").unwrap()[0], table.column("pages").unwrap()[0]), (11, 10));
    }
}
