//! What the program hands over: the layout of `struct sync`.

use plimsoll_record::{ABSENT_SAMPLE, SYNC_PARTS, SyncRow};

const PARTS: usize = SYNC_PARTS.len();
const HEAD_BYTES: usize = 16 + 8 * PARTS + 8;
const RECORD_BYTES: usize = HEAD_BYTES + 16;

/// Parts that only some file systems tell: any that tells of writing, one with a journal, NFS.
pub(super) const OF_WRITING: [&str; 2] = ["writeback", "writing"];
pub(super) const OF_A_JOURNAL: [&str; 2] = ["journal", "metadata"];
pub(super) const OF_NFS: [&str; 1] = ["commit"];

/// `enum tells`: what the file system of a sync tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tells {
    #[default]
    Nothing = 0,
    OfAJournal = 1,
    ByStack = 2,
}

impl Tells {
    fn of(number: u8) -> Self {
        match number {
            1 => Self::OfAJournal,
            2 => Self::ByStack,
            _ => Self::Nothing,
        }
    }

    /// Whether it has the part.
    fn has(self, part: &str) -> bool {
        if OF_WRITING.contains(&part) {
            self != Self::Nothing
        } else if OF_A_JOURNAL.contains(&part) {
            self == Self::OfAJournal
        } else {
            !OF_NFS.contains(&part) || self == Self::ByStack
        }
    }
}

/// A sync, and what its file system tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) row: SyncRow,
    pub(super) tells: Tells,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

impl Record {
    /// None if the bytes are no record.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        // The ring hands out multiples of eight bytes, as the record is.
        let bytes = bytes.get(..RECORD_BYTES)?;
        let ns = |at| i64::from_ne_bytes(number(bytes, at));
        let half = |at| u32::from_ne_bytes(number(bytes, at));
        let result = i32::from_ne_bytes(number(bytes, HEAD_BYTES + 8));
        let (call, class, tells) = (bytes[HEAD_BYTES + 12], bytes[HEAD_BYTES + 13], Tells::of(bytes[HEAD_BYTES + 14]));
        let mut row = SyncRow {
            t_ns: ns(0),
            pid: half(HEAD_BYTES),
            call,
            class,
            error: u16::try_from(-result).unwrap_or(0),
            ns: ns(8) - ns(0),
            parts_ns: std::array::from_fn(|part| ns(16 + 8 * part)),
            journal_flush_ns: ns(16 + 8 * PARTS),
            pages: half(HEAD_BYTES + 4),
        };
        let parts = SYNC_PARTS.iter().zip(&mut row.parts_ns);
        parts.filter(|(part, _)| !tells.has(part)).for_each(|(_, ns)| *ns = ABSENT_SAMPLE);
        if tells != Tells::OfAJournal {
            row.journal_flush_ns = ABSENT_SAMPLE;
        }
        Some(Self { row, tells })
    }

    /// The parts that are told, by name.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        SYNC_PARTS.into_iter().zip(self.row.parts_ns).filter(|(_, ns)| *ns != ABSENT_SAMPLE)
    }

    /// By how much its parts miss it.
    pub(super) fn open_ns(&self) -> i64 {
        self.row.ns - self.parts().map(|(_, ns)| ns).sum::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(tells: u8) -> Vec<u8> {
        // As long as its parts but the commit, which ext4 has none of.
        let mut bytes: Vec<u8> = [100_u64, 148].iter().flat_map(|ns| ns.to_ne_bytes()).collect();
        bytes.extend((1..=PARTS as u64).flat_map(u64::to_ne_bytes));
        bytes.extend(11_u64.to_ne_bytes());
        bytes.extend([7_u32, 10].iter().flat_map(|half| half.to_ne_bytes()));
        bytes.extend((-5_i32).to_ne_bytes());
        bytes.extend([1, 2, tells, 0]);
        bytes
    }

    #[test]
    fn a_record_is_read_by_its_layout() {
        let record = Record::decode(&bytes(1)).unwrap();
        let row = record.row;
        assert_eq!((row.t_ns, row.ns, row.pid, row.pages, row.error), (100, 48, 7, 10, 5));
        assert_eq!((row.call, row.class, record.tells), (1, 2, Tells::OfAJournal));
        assert_eq!((row.parts_ns[9], row.journal_flush_ns, record.open_ns()), (10, 11, 0));
        assert_eq!(Record::decode(&bytes(1)[1..]), None);
    }

    #[test]
    fn what_a_file_system_does_not_tell_is_absent() {
        let told = |tells| {
            let record = Record::decode(&bytes(tells)).unwrap();
            (record.row.journal_flush_ns, record.parts().map(|(part, _)| part).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(told(0), (ABSENT_SAMPLE, "write_io flush run_queue cpu other_wait".to_owned()));
        let of_journal = "writeback writing write_io journal metadata flush run_queue cpu other_wait";
        assert_eq!(told(1), (11, of_journal.to_owned()));
        let on_nfs = "writeback writing write_io flush commit run_queue cpu other_wait";
        assert_eq!(told(2), (ABSENT_SAMPLE, on_nfs.to_owned()));
    }
}
