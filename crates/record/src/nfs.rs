//! The tables of calls of NFS, one row for each: from a packet capture, and as the kernel's client counts them.

use crate::rows::table_row;

table_row! {
    /// A row of `nfs_calls.npy`, from a packet capture; units are in the names.
    pub NfsCallRow in "nfs_calls.npy" {
        /// When the packet with its first byte was seen, since 1970.
        sent_ns: i64,
        /// When its last byte was seen, with all before it.
        sent_last_ns: i64,
        /// When the packet with the first byte of its first reply was seen.
        reply_first_ns: i64,
        /// When the last byte of that was seen, with all before it.
        reply_ns: i64,
        /// Place in `connections`.
        connection: u32,
        /// RPC's number of it.
        xid: u32,
        /// Place in `operations`.
        operation: u32,
        /// Place in `compounds`.
        compound: u32,
        /// Number of the file.
        file: u32,
        /// Length of the call.
        call_bytes: u32,
        /// Length of the reply.
        reply_bytes: u32,
        /// Of a read or write: bytes asked for.
        asked_bytes: u32,
        /// Of a read or write: bytes that the server says it was.
        answered_bytes: u32,
        /// How often it was sent again.
        retransmissions: u32,
        /// Replies after the first.
        further_replies: u32,
        /// NFS' status.
        status: u32,
        /// RPC's verdict.
        rpc_status: u8,
        /// Bits, as `schema/record.md` has them.
        flags: u8,
    }
}

table_row! {
    /// A row of `nfs_tasks.npy`, as the kernel's client counts it; units are in the names.
    pub NfsTaskRow in "nfs_tasks.npy" {
        /// When the client counted it, after its end, by the monotonic clock.
        ended_ns: i64,
        /// From its beginning to when it was sent.
        backlog_ns: i64,
        /// From when it was sent to when its reply was found to be its own; absent where there was none.
        rtt_ns: i64,
        /// From its beginning to its end.
        execute_ns: i64,
        /// Place in the report's `operations`.
        operation: u32,
        /// RPC's number of it.
        xid: u32,
        /// The process that made it: of what is written behind, often one of the kernel's.
        pid: u32,
        /// How often it was sent.
        transmissions: u32,
        /// Of the call, each time that it was sent.
        sent_bytes: u32,
        /// Of the reply.
        received_bytes: u32,
        /// 0, or the number of the error that it ended with for the client.
        error: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::read_back;

    #[test]
    fn a_call_of_packets_has_its_columns_by_name() {
        let row = NfsCallRow {
            sent_ns: 1,
            xid: 2,
            answered_bytes: 3,
            status: 4,
            rpc_status: 5,
            flags: 6,
            ..NfsCallRow::default()
        };
        let table = read_back(row);
        for (name, value) in
            [("sent_ns", 1), ("xid", 2), ("answered_bytes", 3), ("status", 4), ("rpc_status", 5), ("flags", 6)]
        {
            assert_eq!(table.column(name).unwrap(), [value], "{name}");
        }
        assert_eq!(table.fields.len(), 18);
    }

    #[test]
    fn a_call_of_the_client_has_its_columns_by_name() {
        let row = NfsTaskRow { ended_ns: 1, rtt_ns: 2, xid: 3, error: 4, ..NfsTaskRow::default() };
        let table = read_back(row);
        for (name, value) in [("ended_ns", 1), ("rtt_ns", 2), ("xid", 3), ("error", 4)] {
            assert_eq!(table.column(name).unwrap(), [value], "{name}");
        }
        assert_eq!(table.fields.len(), 11);
    }
}
