//! The table of calls of NFS: one row for each, from a packet capture.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// A row of `nfs_calls.npy`; units are in the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsCallRow {
    /// When the packet with its first byte was seen, since 1970.
    pub sent_ns: i64,
    /// When its last byte was seen, with all before it.
    pub sent_last_ns: i64,
    /// When the packet with the first byte of its first reply was seen.
    pub reply_first_ns: i64,
    /// When the last byte of that was seen, with all before it.
    pub reply_ns: i64,
    /// Place in `connections`.
    pub connection: u32,
    /// RPC's number of it.
    pub xid: u32,
    /// Place in `operations`.
    pub operation: u32,
    /// Place in `compounds`.
    pub compound: u32,
    /// Number of the file.
    pub file: u32,
    /// Length of the call.
    pub call_bytes: u32,
    /// Length of the reply.
    pub reply_bytes: u32,
    /// Of a read or write: bytes asked for.
    pub asked_bytes: u32,
    /// Of a read or write: bytes that the server says it was.
    pub answered_bytes: u32,
    /// How often it was sent again.
    pub retransmissions: u32,
    /// Replies after the first.
    pub further_replies: u32,
    /// NFS' status.
    pub status: u32,
    /// RPC's verdict.
    pub rpc_status: u8,
    /// Bits, as `schema/record.md` has them.
    pub flags: u8,
}

/// Writes the table.
#[derive(Debug)]
pub struct NfsCallWriter {
    table: TableWriter,
    packed: Vec<u8>,
}

impl NfsCallWriter {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        use FieldType::{I64, U8, U32};
        let times = ["sent_ns", "sent_last_ns", "reply_first_ns", "reply_ns"].map(|name| Field::new(name, I64));
        let places = ["connection", "xid", "operation", "compound", "file"].map(|name| Field::new(name, U32));
        let numbers = [
            "call_bytes",
            "reply_bytes",
            "asked_bytes",
            "answered_bytes",
            "retransmissions",
            "further_replies",
            "status",
        ];
        let mut fields: Vec<Field> = times.into_iter().chain(places).collect();
        fields.extend(numbers.map(|name| Field::new(name, U32)));
        fields.extend(["rpc_status", "flags"].map(|name| Field::new(name, U8)));
        Ok(Self { table: TableWriter::create(&folder.join("nfs_calls.npy"), fields)?, packed: Vec::new() })
    }

    /// Appends a call.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, call: &NfsCallRow) -> io::Result<()> {
        let row = &mut self.packed;
        row.clear();
        for ns in [call.sent_ns, call.sent_last_ns, call.reply_first_ns, call.reply_ns] {
            row.extend_from_slice(&ns.to_le_bytes());
        }
        for place in [call.connection, call.xid, call.operation, call.compound, call.file] {
            row.extend_from_slice(&place.to_le_bytes());
        }
        for number in [
            call.call_bytes,
            call.reply_bytes,
            call.asked_bytes,
            call.answered_bytes,
            call.retransmissions,
            call.further_replies,
            call.status,
        ] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        row.extend_from_slice(&[call.rpc_status, call.flags]);
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
        let mut writer = NfsCallWriter::create(folder.path()).unwrap();
        let row = NfsCallRow {
            sent_ns: 1,
            sent_last_ns: 2,
            reply_first_ns: 3,
            reply_ns: 4,
            connection: 5,
            xid: 6,
            operation: 7,
            compound: 8,
            file: 9,
            call_bytes: 10,
            reply_bytes: 11,
            asked_bytes: 12,
            answered_bytes: 13,
            retransmissions: 14,
            further_replies: 15,
            status: 16,
            rpc_status: 17,
            flags: 18,
        };
        writer.append(&row).unwrap();
        assert_eq!(writer.close().unwrap(), 1);
        let table = Table::read(&folder.path().join("nfs_calls.npy")).unwrap();
        for (field, value) in table.fields.iter().zip(1..) {
            assert_eq!(table.column(&field.name).unwrap(), [value], "{}", field.name);
        }
        assert_eq!(table.fields.len(), 18);
    }
}
