//! The constants of the probe's program: `struct settings` of page_cache.h, field by field in its order.

use super::fields::Fields;
use crate::folders::OwnClass;
use crate::{Refusal, folders};

const SYSCALLS: usize = 512;
const BLOCK_BYTES: u32 = 8192;

/// `enum context`.
const READ: u8 = 1;
const READ_LOOSE: u8 = 2;
const WRITE: u8 = 3;
const PREFETCH: u8 = 4;
const COPY: u8 = 6;
const RING: u8 = 7;

/// `enum read_kind`.
const OF_FILE: u8 = 1;
const OF_ARGUMENT: u8 = 2;
const VECTORS: u8 = 4;

/// System calls by what they do to the page cache. Those that read and count themselves among the task's read calls stand
/// apart from those that do not.
const CONTEXTS: [(libc::c_long, u8); 22] = [
    (libc::SYS_read, READ),
    (libc::SYS_pread64, READ),
    (libc::SYS_readv, READ),
    (libc::SYS_preadv, READ),
    (libc::SYS_preadv2, READ),
    (libc::SYS_sendfile, READ),
    (libc::SYS_copy_file_range, COPY),
    (libc::SYS_splice, READ_LOOSE),
    (libc::SYS_io_uring_enter, RING),
    (libc::SYS_io_submit, READ_LOOSE),
    (libc::SYS_write, WRITE),
    (libc::SYS_pwrite64, WRITE),
    (libc::SYS_writev, WRITE),
    (libc::SYS_pwritev, WRITE),
    (libc::SYS_pwritev2, WRITE),
    (libc::SYS_ftruncate, WRITE),
    (libc::SYS_truncate, WRITE),
    (libc::SYS_fallocate, WRITE),
    (libc::SYS_fadvise64, PREFETCH),
    (libc::SYS_readahead, PREFETCH),
    (libc::SYS_madvise, PREFETCH),
    (libc::SYS_process_madvise, PREFETCH),
];

const READS: [(libc::c_long, u8); 5] = [
    (libc::SYS_read, OF_FILE),
    (libc::SYS_pread64, OF_ARGUMENT),
    (libc::SYS_readv, OF_FILE | VECTORS),
    (libc::SYS_preadv, OF_ARGUMENT | VECTORS),
    (libc::SYS_preadv2, OF_ARGUMENT | VECTORS),
];

/// What the user side decides before load.
#[derive(Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) devices: Vec<u32>,
    pub(crate) own: &'a [OwnClass],
    pub(crate) faults_are_seen: bool,
    pub(crate) ring_reads_are_seen: bool,
    pub(crate) by_subvolume: bool,
    /// Of the classic tracepoints, when those are used.
    pub(crate) fields: Fields,
}

fn table(entries: &[(libc::c_long, u8)]) -> [u8; SYSCALLS] {
    let mut table = [0; SYSCALLS];
    for &(call, what) in entries {
        if let Some(place) = usize::try_from(call).ok().and_then(|call| table.get_mut(call)) {
            *place = what;
        }
    }
    table
}

pub(crate) fn page_bytes() -> u32 {
    u32::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// A block is PostgreSQL's, or a page where those are larger.
pub(crate) fn block_bytes() -> u32 {
    BLOCK_BYTES.max(page_bytes())
}

impl Settings<'_> {
    /// As the program has it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut words = folders::words(&self.devices, self.by_subvolume)?;
        words.extend([page_bytes().ilog2(), (block_bytes() / page_bytes()).ilog2(), libc::O_DIRECT as u32]);
        words.extend([u32::from(self.faults_are_seen), libc::SYS_pread64 as u32, u32::from(self.ring_reads_are_seen)]);
        words.extend(self.fields.words());
        let bytes_of = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let mut bytes = bytes_of(&words);
        bytes.extend(table(&CONTEXTS));
        bytes.extend(table(&READS));
        bytes.extend(bytes_of(&folders::own_words(self.own)));
        Ok(bytes)
    }
}
