//! The table of calls of NFS as the kernel's client counts them, one row for each.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// A row of `nfs_tasks.npy`; units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsTaskRow {
    /// When the client counted it, after its end, by the monotonic clock.
    pub ended_ns: i64,
    /// From its beginning to when it was sent.
    pub backlog_ns: i64,
    /// From when it was sent to when its reply was found to be its own; absent where there was none.
    pub rtt_ns: i64,
    /// From its beginning to its end.
    pub execute_ns: i64,
    /// Place in the report's `operations`.
    pub operation: u32,
    /// RPC's number of it.
    pub xid: u32,
    /// The process that made it: of what is written behind, often one of the kernel's.
    pub pid: u32,
    /// How often it was sent.
    pub transmissions: u32,
    /// Of the call, each time that it was sent.
    pub sent_bytes: u32,
    /// Of the reply.
    pub received_bytes: u32,
    /// 0, or the number of the error that it ended with for the client.
    pub error: u32,
}

/// Writes the table.
#[derive(Debug)]
pub struct NfsTaskWriter {
    table: TableWriter,
    packed: Vec<u8>,
}

impl NfsTaskWriter {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        use FieldType::{I64, U32};
        let times = ["ended_ns", "backlog_ns", "rtt_ns", "execute_ns"].map(|name| Field::new(name, I64));
        let numbers = ["operation", "xid", "pid", "transmissions", "sent_bytes", "received_bytes", "error"];
        let fields = times.into_iter().chain(numbers.map(|name| Field::new(name, U32))).collect();
        Ok(Self { table: TableWriter::create(&folder.join("nfs_tasks.npy"), fields)?, packed: Vec::new() })
    }

    /// Appends a call.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, call: &NfsTaskRow) -> io::Result<()> {
        let row = &mut self.packed;
        row.clear();
        for ns in [call.ended_ns, call.backlog_ns, call.rtt_ns, call.execute_ns] {
            row.extend_from_slice(&ns.to_le_bytes());
        }
        for number in
            [call.operation, call.xid, call.pid, call.transmissions, call.sent_bytes, call.received_bytes, call.error]
        {
            row.extend_from_slice(&number.to_le_bytes());
        }
        self.table.row(row)
    }

    /// Completes the header. Gives the number of calls.
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
        let mut writer = NfsTaskWriter::create(folder.path()).unwrap();
        let row = NfsTaskRow {
            ended_ns: 1,
            backlog_ns: 2,
            rtt_ns: 3,
            execute_ns: 4,
            operation: 5,
            xid: 6,
            pid: 7,
            transmissions: 8,
            sent_bytes: 9,
            received_bytes: 10,
            error: 11,
        };
        writer.append(&row).unwrap();
        assert_eq!(writer.close().unwrap(), 1);
        let table = Table::read(&folder.path().join("nfs_tasks.npy")).unwrap();
        for (field, value) in table.fields.iter().zip(1..) {
            assert_eq!(table.column(&field.name).unwrap(), [value], "{}", field.name);
        }
        assert_eq!(table.fields.len(), 11);
    }
}
