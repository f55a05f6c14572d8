//! What the program hands over: the layouts of breakdown.h.

use plimsoll_record::{BreakdownRow, WaitRow};

const HEAD_BYTES: usize = 64;
const WAIT_BYTES: usize = 24;
/// Kinds of wait that a record has room for.
const WAITS: usize = 8;
pub(crate) const TRANSACTION_BYTES: usize = HEAD_BYTES + WAITS * WAIT_BYTES;

pub(crate) const QUEUED: u16 = 1;
pub(crate) const PROCESS_ENDED: u16 = 32;
/// Under way: in a process's storage, or where the record ended.
pub(crate) const OPEN: u16 = 64;
/// It may have begun before it was seen.
pub(crate) const HEADLESS: u16 = 128;
/// In place of a wait event: the number of the system call in which the process blocked.
pub(crate) const SYSTEM_CALL: u32 = 0xfe00_0000;

/// What the program keeps of a process ends with the bytes that are used of its batch, the batch, and its transaction.
const BATCH_BYTES: usize = 704;

/// The batch and the transaction under way, of what the program keeps of a process.
pub(crate) fn split(stored: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, transaction) = stored.split_at_checked(stored.len().checked_sub(TRANSACTION_BYTES)?)?;
    let (rest, batch) = rest.split_at_checked(rest.len().checked_sub(BATCH_BYTES)?)?;
    let used = u64::from_ne_bytes(*rest.last_chunk()?);
    Some((batch.get(..usize::try_from(used).ok()?)?, transaction))
}

/// A transaction, or all that a process without a client did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) row: BreakdownRow,
    pub(crate) waits: Vec<WaitRow>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

impl Record {
    /// Gives what follows the record; None if the bytes are none.
    pub(crate) fn decode<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let waits = usize::from(u16::from_ne_bytes(number(bytes.get(..HEAD_BYTES)?, 6)));
        let end = HEAD_BYTES + waits * WAIT_BYTES;
        let of_waits = bytes.get(HEAD_BYTES..end)?;
        let half = |at| u32::from_ne_bytes(number(bytes, at));
        let ns = |at| i64::from_ne_bytes(number(bytes, at));
        self.row = BreakdownRow {
            backend_pid: half(0),
            flags: u16::from_ne_bytes(number(bytes, 4)),
            arrived_ns: ns(8),
            ended_ns: ns(16),
            cpu_ns: ns(24),
            run_queue_ns: ns(32),
            user_ns: half(40),
            system_ns: half(44),
            after_ns: half(48),
            requests: half(52),
            one_in: half(56),
        };
        self.waits.clear();
        self.waits.extend(of_waits.chunks_exact(WAIT_BYTES).map(|wait| WaitRow {
            ns: i64::from_ne_bytes(number(wait, 0)),
            wait: u32::from_ne_bytes(number(wait, 8)),
            waker_pid: u32::from_ne_bytes(number(wait, 12)),
            count: u32::from_ne_bytes(number(wait, 16)),
            bucket: wait[20],
            cause: wait[21],
        }));
        Some(&bytes[end..])
    }
}

impl Record {
    /// Makes it one with what was before it.
    pub(crate) fn follow(&mut self, before: &Self) {
        let (row, of_before) = (&mut self.row, &before.row);
        row.arrived_ns = of_before.arrived_ns;
        row.cpu_ns += of_before.cpu_ns;
        row.run_queue_ns += of_before.run_queue_ns;
        row.requests += of_before.requests;
        for wait in &before.waits {
            let key = |wait: &WaitRow| (wait.wait, wait.bucket, wait.cause);
            match self.waits.iter_mut().find(|own| key(own) == key(wait)) {
                Some(own) => (own.ns, own.count) = (own.ns + wait.ns, own.count + wait.count),
                None => self.waits.push(*wait),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What is kept of a process whose batch is this.
    pub(crate) fn kept(batch: &[u8]) -> Vec<u8> {
        let mut stored = vec![0; 64];
        stored.extend((batch.len() as u64).to_ne_bytes());
        stored.extend(batch);
        stored.resize(64 + 8 + BATCH_BYTES + TRANSACTION_BYTES, 0);
        stored
    }

    #[test]
    fn a_record_is_as_long_as_its_waits() {
        let mut bytes = vec![0; HEAD_BYTES + WAIT_BYTES];
        bytes[0..4].copy_from_slice(&77_u32.to_ne_bytes());
        bytes[6..8].copy_from_slice(&1_u16.to_ne_bytes());
        bytes[24..32].copy_from_slice(&5_u64.to_ne_bytes());
        bytes[HEAD_BYTES..HEAD_BYTES + 8].copy_from_slice(&9_u64.to_ne_bytes());
        bytes[HEAD_BYTES + 20] = 4;
        let mut record = Record::default();
        record.decode(&bytes).unwrap();
        assert_eq!((record.row.backend_pid, record.row.cpu_ns), (77, 5));
        assert_eq!(record.waits, [WaitRow { ns: 9, bucket: 4, ..WaitRow::default() }]);
        assert_eq!(record.decode(&bytes[..HEAD_BYTES + 8]), None, "shorter than it says");
        assert_eq!(record.decode(&[&bytes[..], &[1, 2]].concat()), Some(&[1, 2][..]), "what follows");
        assert_eq!(record.decode(&bytes[..8]), None);
    }

    #[test]
    fn two_parts_are_one() {
        let wait = |wait, ns| WaitRow { wait, ns, count: 1, ..WaitRow::default() };
        let part = |arrived_ns, cpu_ns, waits| {
            let row = BreakdownRow { backend_pid: 3, arrived_ns, cpu_ns, run_queue_ns: 2, ..BreakdownRow::default() };
            Record { row, waits }
        };
        let mut record = part(50, 10, vec![wait(1, 5)]);
        record.follow(&part(20, 3, vec![wait(2, 7), wait(1, 4)]));
        assert_eq!((record.row.arrived_ns, record.row.cpu_ns, record.row.run_queue_ns), (20, 13, 4));
        assert_eq!(record.waits, [WaitRow { count: 2, ..wait(1, 9) }, wait(2, 7)]);
    }

    #[test]
    fn what_is_kept_of_a_process_is_read_from_its_end() {
        let mut stored = vec![1; 40];
        stored.extend(2_u64.to_ne_bytes());
        stored.extend([7, 8]);
        stored.resize(40 + 8 + BATCH_BYTES, 0);
        stored.resize(40 + 8 + BATCH_BYTES + TRANSACTION_BYTES, 9);
        assert_eq!(split(&stored), Some((&[7, 8][..], &[9; TRANSACTION_BYTES][..])));
        assert_eq!(split(&stored[stored.len() - 100..]), None);
    }
}
