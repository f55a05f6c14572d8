//! The tables of the breakdown: one row a transaction of a backend, and one for each kind of wait within it.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// A row of `breakdown.npy`; units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BreakdownRow {
    /// The server's process.
    pub backend_pid: u32,
    /// Bits, as `schema/record.md` has them.
    pub flags: u16,
    /// When its first message woke the process, or was read if the process had not waited for it.
    pub arrived_ns: i64,
    /// When the last byte of the last answer was handed to the kernel.
    pub ended_ns: i64,
    /// On a CPU.
    pub cpu_ns: i64,
    /// Runnable, and not running.
    pub run_queue_ns: i64,
    /// Growth of the process's user time, as the kernel counts it.
    pub user_ns: u32,
    /// Growth of its system time, as the kernel counts it.
    pub system_ns: u32,
    /// On a CPU between the last answer of the transaction before and this one's first message.
    pub after_ns: u32,
    /// Requests answered.
    pub requests: u32,
    /// It is of a slice of time, of which one in so many was watched.
    pub one_in: u32,
}

/// A row of `breakdown_waits.npy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitRow {
    /// PostgreSQL's number of the wait event; see `schema/record.md` for others.
    pub wait: u32,
    /// Who ended the last of them, if it was a process of the server.
    pub waker_pid: u32,
    /// Place in the report's `buckets`.
    pub bucket: u8,
    /// Of a read: 1 asked of the device by the backend, 2 already on its way.
    pub cause: u8,
    /// Intervals.
    pub count: u32,
    /// Blocked in all.
    pub ns: i64,
}

/// Writes both tables.
#[derive(Debug)]
pub struct BreakdownWriter {
    transactions: TableWriter,
    waits: TableWriter,
    packed: Vec<u8>,
    next: u64,
}

fn fields(columns: &[(&str, FieldType)]) -> Vec<Field> {
    columns.iter().map(|(name, kind)| Field::new(name, *kind)).collect()
}

impl BreakdownWriter {
    /// Creates the files in `folder`.
    ///
    /// # Errors
    /// When one cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        use FieldType::{I64, U8, U16, U32, U64};
        let transactions = [
            ("request", U64),
            ("backend_pid", U32),
            ("flags", U16),
            ("arrived_ns", I64),
            ("ended_ns", I64),
            ("cpu_ns", I64),
            ("run_queue_ns", I64),
            ("user_ns", U32),
            ("system_ns", U32),
            ("after_ns", U32),
            ("requests", U32),
            ("one_in", U32),
        ];
        let waits = [
            ("request", U64),
            ("wait", U32),
            ("waker_pid", U32),
            ("bucket", U8),
            ("cause", U8),
            ("count", U32),
            ("ns", I64),
        ];
        Ok(Self {
            transactions: TableWriter::create(&folder.join("breakdown.npy"), fields(&transactions))?,
            waits: TableWriter::create(&folder.join("breakdown_waits.npy"), fields(&waits))?,
            packed: Vec::new(),
            next: 0,
        })
    }

    /// Appends a transaction and its waits.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, one: &BreakdownRow, waits: impl Iterator<Item = WaitRow>) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        self.packed.clear();
        let row = &mut self.packed;
        row.extend_from_slice(&number.to_le_bytes());
        row.extend_from_slice(&one.backend_pid.to_le_bytes());
        row.extend_from_slice(&one.flags.to_le_bytes());
        for ns in [one.arrived_ns, one.ended_ns, one.cpu_ns, one.run_queue_ns] {
            row.extend_from_slice(&ns.to_le_bytes());
        }
        let halves = [one.user_ns, one.system_ns, one.after_ns, one.requests, one.one_in];
        for number in halves {
            row.extend_from_slice(&number.to_le_bytes());
        }
        self.transactions.row(row)?;
        for wait in waits {
            row.clear();
            row.extend_from_slice(&number.to_le_bytes());
            row.extend_from_slice(&wait.wait.to_le_bytes());
            row.extend_from_slice(&wait.waker_pid.to_le_bytes());
            row.extend_from_slice(&[wait.bucket, wait.cause]);
            row.extend_from_slice(&wait.count.to_le_bytes());
            row.extend_from_slice(&wait.ns.to_le_bytes());
            self.waits.row(row)?;
        }
        Ok(())
    }

    /// Hands what was appended to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.transactions.flush()?;
        self.waits.flush()
    }

    /// Completes both headers. Gives the number of transactions.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn close(self) -> io::Result<u64> {
        self.waits.close()?;
        self.transactions.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn waits_point_at_their_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = BreakdownWriter::create(folder.path()).unwrap();
        let wait = WaitRow { wait: 0x0a00_0001, waker_pid: 7, bucket: 4, cause: 1, count: 70_000, ns: 5_000_000_000 };
        writer.append(&BreakdownRow { backend_pid: 3, ..BreakdownRow::default() }, std::iter::empty()).unwrap();
        let request = BreakdownRow {
            backend_pid: 9,
            flags: 5,
            arrived_ns: -1,
            ended_ns: 2,
            cpu_ns: 3,
            run_queue_ns: 4,
            user_ns: 5,
            system_ns: 6,
            after_ns: 7,
            requests: 8,
            one_in: 9,
        };
        writer.append(&request, [wait, wait].into_iter()).unwrap();
        assert_eq!(writer.close().unwrap(), 2);
        let of = |file: &str, column: &str| {
            let table = Table::read(&folder.path().join(file)).unwrap();
            table.column(column).unwrap()
        };
        for (column, second) in [
            ("request", 1),
            ("backend_pid", 9),
            ("flags", 5),
            ("arrived_ns", -1),
            ("ended_ns", 2),
            ("cpu_ns", 3),
            ("run_queue_ns", 4),
            ("user_ns", 5),
            ("system_ns", 6),
            ("after_ns", 7),
            ("requests", 8),
            ("one_in", 9),
        ] {
            assert_eq!(of("breakdown.npy", column)[1], second, "{column}");
        }
        for (column, value) in [
            ("request", 1),
            ("wait", 0x0a00_0001),
            ("waker_pid", 7),
            ("bucket", 4),
            ("cause", 1),
            ("count", 70_000),
            ("ns", 5_000_000_000),
        ] {
            assert_eq!(of("breakdown_waits.npy", column), [value; 2], "{column}");
        }
    }
}
