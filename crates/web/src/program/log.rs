//! The log of POSTs as a file.
//!
//! The fact that constrains it: the record is written before the count, and both under a lock, so that what a kill leaves is a record that
//! is not counted, which the check tells, and never a count without its record.

use crate::post_log::{COUNT_BYTES, Posted, RECORD_BYTES, count_line, record};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file's name.
pub(super) const NAME: &str = "post.log";

/// Appends the record of a POST.
pub(super) fn append(path: &Path, posted: &Posted<'_>, now_s: i64, pid: u32) -> io::Result<()> {
    // The lock goes with the descriptor.
    let file = File::options().read(true).write(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut count = [0; COUNT_BYTES];
    file.read_exact_at(&mut count, 0)?;
    let count = std::str::from_utf8(&count).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let count = count.ok_or_else(|| io::Error::other("post.log does not begin with its count: populate anew"))?;
    let at = COUNT_BYTES as u64 + count * RECORD_BYTES as u64;
    file.write_all_at(record(count + 1, now_s, pid, posted).as_bytes(), at)?;
    file.write_all_at(count_line(count + 1).as_bytes(), 0)
}
