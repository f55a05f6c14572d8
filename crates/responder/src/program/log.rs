//! The log of POSTs as a file.
//!
//! The fact that constrains it: the record is written before the count, and both under a lock, so that what a kill leaves is a record that
//! is not counted, which the check tells, and never a count without its record.

use plimsoll_web::post_log::{COUNT_BYTES, Posted, RECORD_BYTES, count_line, record};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file's name.
const NAME: &str = "post.log";

/// The log, locked; the lock goes with the descriptor.
fn locked(folder: &Path, operation: FlockOperation, create: bool) -> io::Result<File> {
    let path = folder.join(NAME);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = File::options().read(true).write(true).create(create).truncate(false).open(&path).map_err(named)?;
    flock(&file, operation)?;
    Ok(file)
}

/// Appends the record of a POST.
pub(super) fn append(folder: &Path, posted: &Posted<'_>, now_s: i64, pid: u32) -> io::Result<()> {
    let file = locked(folder, FlockOperation::LockExclusive, false)?;
    let mut count = [0; COUNT_BYTES];
    file.read_exact_at(&mut count, 0)?;
    let count = str::from_utf8(&count).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let count = count.ok_or_else(|| io::Error::other("post.log does not begin with its count: reset it"))?;
    let at = COUNT_BYTES as u64 + count * RECORD_BYTES as u64;
    let written = file
        .write_all_at(record(count + 1, now_s, pid, posted).as_bytes(), at)
        .and_then(|()| file.write_all_at(count_line(count + 1).as_bytes(), 0));
    written.map_err(|error| {
        // What there was room for of a record is none: a POST that is refused leaves nothing. Where it cannot be cut off either, the
        // check tells of it, and the next record is written over it.
        let _ = file.set_len(at);
        io::Error::new(error.kind(), format!("post.log: {error}"))
    })
}

/// The whole log, as it is when nobody writes to it.
pub(super) fn read(folder: &Path) -> io::Result<Vec<u8>> {
    let mut log = Vec::new();
    locked(folder, FlockOperation::LockShared, false)?.read_to_end(&mut log)?;
    Ok(log)
}

/// Makes the log empty, and makes it if there is none.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    let file = locked(folder, FlockOperation::LockExclusive, true)?;
    // The count first: a kill in between leaves records that are not counted, and no count without its records.
    file.write_all_at(count_line(0).as_bytes(), 0)?;
    file.set_len(COUNT_BYTES as u64)
}
