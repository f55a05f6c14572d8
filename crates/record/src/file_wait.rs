//! The table of waits of a load on files: one row for each time that a session's thread was off its CPU.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// A row of `file_waits.npy`; units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileWaitRow {
    /// The session, as `connection` of `transactions.npy`.
    pub connection: u32,
    /// Place in the report's `places`.
    pub place: u32,
    /// When it left its CPU.
    pub left_ns: i64,
    /// When it had one again.
    pub back_ns: i64,
    /// Of that time, waiting for a CPU.
    pub run_queue_ns: i64,
    /// On a CPU in all of the thread's life up to `left_ns`, by the kernel's own sum.
    pub runtime_ns: i64,
    /// How often the thread had left a CPU, by the kernel's own count.
    pub switches: i64,
}

/// Writes the table.
#[derive(Debug)]
pub struct FileWaitWriter {
    table: TableWriter,
    packed: Vec<u8>,
}

impl FileWaitWriter {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        use FieldType::{I64, U32};
        let mut fields = vec![Field::new("connection", U32), Field::new("place", U32)];
        fields
            .extend(["left_ns", "back_ns", "run_queue_ns", "runtime_ns", "switches"].map(|name| Field::new(name, I64)));
        Ok(Self { table: TableWriter::create(&folder.join("file_waits.npy"), fields)?, packed: Vec::new() })
    }

    /// Appends a wait.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, wait: &FileWaitRow) -> io::Result<()> {
        let row = &mut self.packed;
        row.clear();
        row.extend_from_slice(&wait.connection.to_le_bytes());
        row.extend_from_slice(&wait.place.to_le_bytes());
        for number in [wait.left_ns, wait.back_ns, wait.run_queue_ns, wait.runtime_ns, wait.switches] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        self.table.row(row)
    }

    /// Hands what was appended to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.table.flush()
    }

    /// Completes the header. Gives the number of waits.
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
    fn a_row_has_its_columns_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = FileWaitWriter::create(folder.path()).unwrap();
        let (left_ns, back_ns, run_queue_ns, runtime_ns) = (3, 4, 5, 6);
        let row = FileWaitRow { connection: 1, place: 2, left_ns, back_ns, run_queue_ns, runtime_ns, switches: 7 };
        writer.append(&row).unwrap();
        assert_eq!(writer.close().unwrap(), 1);
        let table = Table::read(&folder.path().join("file_waits.npy")).unwrap();
        let names = ["connection", "place", "left_ns", "back_ns", "run_queue_ns", "runtime_ns", "switches"];
        for (name, value) in names.into_iter().zip(1..) {
            assert_eq!(table.column(name).unwrap(), [value], "{name}");
        }
    }
}
