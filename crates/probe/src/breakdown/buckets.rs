//! Which bucket a wait event belongs to.

use crate::postgres_waits::WaitNames;

/// Names in the record; the order is the program's (`enum bucket`).
pub(crate) const BUCKETS: [&str; 17] = [
    "cpu_user",
    "cpu_kernel",
    "run_queue",
    "lock",
    "wal_sync",
    "wal_wait",
    "wal_write",
    "data_read",
    "data_write",
    "data_sync",
    "temp_io",
    "swap_in",
    "throttle",
    "network_send",
    "client",
    "other_wait",
    "unattributed",
];

pub(crate) const LOCK: u8 = 3;
pub(crate) const WAL_SYNC: u8 = 4;
const WAL_WAIT: u8 = 5;
pub(crate) const WAL_WRITE: u8 = 6;
pub(crate) const DATA_READ: u8 = 7;
pub(crate) const DATA_WRITE: u8 = 8;
pub(crate) const DATA_SYNC: u8 = 9;
pub(crate) const TEMP_IO: u8 = 10;
pub(crate) const NETWORK_SEND: u8 = 13;
pub(crate) const CLIENT: u8 = 14;
pub(crate) const OTHER_WAIT: u8 = 15;
pub(crate) const UNATTRIBUTED: u8 = 16;

/// Classes in the program's table: the low four bits of the number's first byte.
pub(crate) const CLASSES: usize = 16;
/// Events of the class IO that the program's table has room for.
pub(crate) const IO_EVENTS: usize = 256;
const IO_CLASS: u32 = 0x0a;

/// The program's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// The wait for the client's next message.
    pub(crate) client_read: u32,
    /// The wait for room to send to the client.
    pub(crate) client_write: u32,
    /// The wait for the write-ahead log's write lock: somebody else writes and syncs.
    pub(crate) wal_write_lock: u32,
    /// The wait for a sync of the log that PostgreSQL counts as one.
    pub(crate) wal_sync: u32,
    pub(crate) class: [u8; CLASSES],
    pub(crate) io: [u8; IO_EVENTS],
}

/// The bucket of an event of the class IO. Names were respelt over the versions (WALSync, WalSync), so case tells nothing.
fn io_bucket(event: &str) -> u8 {
    let event = event.to_ascii_lowercase();
    let starts = |with: &[&str]| with.iter().any(|start| event.starts_with(start));
    let ends = |with: &[&str]| with.iter().any(|end| event.ends_with(end));
    match event.as_str() {
        "datafilesync" | "datafileimmediatesync" => DATA_SYNC,
        _ if starts(&["wal"]) && event.contains("sync") => WAL_SYNC,
        _ if starts(&["wal"]) && ends(&["write", "truncate"]) => WAL_WRITE,
        _ if starts(&["buffile"]) => TEMP_IO,
        "datafileread" | "datafileprefetch" => DATA_READ,
        _ if starts(&["datafile"]) => DATA_WRITE,
        "aioiocompletion" => DATA_READ,
        _ => OTHER_WAIT,
    }
}

impl Buckets {
    pub(crate) fn of(names: &WaitNames) -> Self {
        let find = |class: &str, event: &str| {
            let same = |c: &str, e: &str| c == class && e.eq_ignore_ascii_case(event);
            names.all().find(|(_, c, e)| same(c, e)).map_or(0, |(info, ..)| info)
        };
        let mut buckets = Self {
            client_read: find("Client", "ClientRead"),
            client_write: find("Client", "ClientWrite"),
            wal_write_lock: find("LWLock", "WALWrite"),
            wal_sync: find("IO", "WALSync"),
            class: [OTHER_WAIT; CLASSES],
            io: [OTHER_WAIT; IO_EVENTS],
        };
        for (info, class, event) in names.all() {
            match class {
                "IO" => buckets.io[info as usize % IO_EVENTS] = io_bucket(event),
                "LWLock" | "Lock" | "BufferPin" => buckets.class[(info >> 24) as usize % CLASSES] = LOCK,
                _ => {}
            }
        }
        buckets
    }

    /// The bucket of a wait event, as the program's `bucket_of` has it.
    pub(crate) fn of_event(&self, event: u32) -> u8 {
        match event {
            event if event == self.client_read => CLIENT,
            event if event == self.wal_write_lock => WAL_WAIT,
            event if event == self.client_write => NETWORK_SEND,
            event if event >> 24 == IO_CLASS => self.io[event as usize % IO_EVENTS],
            event => self.class[(event >> 24) as usize % CLASSES],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_every_bucket() {
        for major in 13..=18 {
            let names = WaitNames::of(major).unwrap();
            let buckets = Buckets::of(&names);
            assert_ne!(buckets.wal_sync, 0, "{major}");
            let of = |class: &str, event: &str| {
                let same = |known: &str| known.eq_ignore_ascii_case(event);
                let found = names.all().find(|(_, c, e)| *c == class && same(e));
                BUCKETS
                    [usize::from(buckets.of_event(found.unwrap_or_else(|| panic!("{major} has no {class}:{event}")).0))]
            };
            for (class, event, expected) in [
                ("IO", "WALSync", "wal_sync"),
                ("IO", "WALWrite", "wal_write"),
                ("IO", "DataFileRead", "data_read"),
                ("IO", "DataFileExtend", "data_write"),
                ("IO", "DataFileWrite", "data_write"),
                ("IO", "DataFileSync", "data_sync"),
                ("IO", "BufFileRead", "temp_io"),
                ("IO", "SLRURead", "other_wait"),
                ("LWLock", "WALWrite", "wal_wait"),
                ("LWLock", "ProcArray", "lock"),
                ("Lock", "transactionid", "lock"),
                ("Client", "ClientRead", "client"),
                ("Client", "ClientWrite", "network_send"),
                ("Timeout", "PgSleep", "other_wait"),
                ("IPC", "BgWorkerShutdown", "other_wait"),
            ] {
                assert_eq!(of(class, event), expected, "{major} {class}:{event}");
            }
        }
    }
}
