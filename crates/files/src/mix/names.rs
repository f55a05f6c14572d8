//! Operations on names: create, stat, rename, unlink, readdir.
//!
//! The fact that constrains it: what there is has to be known whatever failed. So after a failure the kernel is asked what there is;
//! where it does not say, the place is left alone from then on, and the check allows both.

use super::operator::Operator;
use super::plan::CHUNK;
use crate::passes::close;
use plimsoll_session::Ending;
use rustix::fs::{AtFlags, Dir, OFlags, RawDir, renameat, statat, unlinkat};
use rustix::io::{Errno, pwrite};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a call to read a directory gives at most, in bytes.
pub(super) const ENTRIES_BYTES: usize = 1 << 15;

/// Writes all of `bytes`. Gives how it ended, and how many calls that took.
pub(super) fn write_all(file: impl AsFd, bytes: &[u8], offset: u64) -> (Result<(), Errno>, u32) {
    let (mut done, mut calls) = (0, 0);
    while done < bytes.len() {
        calls += 1;
        match pwrite(&file, &bytes[done..], offset + done as u64) {
            // A regular file takes something, or says why not.
            Ok(0) => return (Err(Errno::IO), calls),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(errno) => return (Err(errno), calls),
        }
    }
    (Ok(()), calls)
}

/// Whether there is a file of that name; `None` if that cannot be told.
fn is_there(operator: &Operator, name: &str) -> Option<bool> {
    match statat(operator.tree.data(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Some(true),
        Err(Errno::NOENT) => Some(false),
        Err(_) => None,
    }
}

/// Makes a file, writes it, closes it.
pub(super) fn create(operator: &mut Operator, buffer: &mut [u8]) -> Ending {
    let (live, tree) = (Arc::clone(&operator.live), Arc::clone(&operator.tree));
    let (place, bytes) = (operator.at.place, operator.at.bytes);
    let direct = if live.plan.direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | direct;
    live.places.at(place).generation.store(0, Ordering::Release);
    live.places.name(place, &mut operator.name);
    let file = match tree.file(&operator.name, flags) {
        Ok(file) => file,
        Err(errno) => {
            live.places.give_absent(place);
            return operator.errs("create", errno, 1);
        }
    };
    let (written, calls) = fill(operator, &file, buffer);
    let written = written.and(close(file));
    let calls = calls + 2;
    if let Err(errno) = written {
        live.count_failed(bytes);
        let _ = unlinkat(tree.data(), operator.name.as_str(), AtFlags::empty());
        match is_there(operator, &operator.name) {
            Some(false) => live.places.give_absent(place),
            Some(true) | None => live.places.at(place).give(None),
        }
        return operator.errs("create", errno, calls + 2);
    }
    live.created(place, bytes);
    (operator.report.created, operator.report.bytes_written) =
        (operator.report.created + 1, operator.report.bytes_written + bytes);
    operator.done(calls, bytes)
}

/// Writes a new file's blocks, all of version 1.
fn fill(operator: &Operator, file: &OwnedFd, buffer: &mut [u8]) -> (Result<(), Errno>, u32) {
    let (stamps, bytes) = (operator.live.places.stamps(operator.at.place), operator.at.bytes);
    let (mut offset, mut calls) = (0, 0);
    while offset < bytes {
        let part = &mut buffer[..(bytes - offset).min(CHUNK) as usize];
        stamps.write(part, offset, 1);
        let (written, more) = write_all(file, part, offset);
        calls += more;
        if written.is_err() {
            return (written, calls);
        }
        offset += part.len() as u64;
    }
    (Ok(()), calls)
}

/// Asks for a file's attributes; its length has to be what was written.
pub(super) fn stat(operator: &mut Operator) -> Ending {
    let (live, tree, place) = (Arc::clone(&operator.live), Arc::clone(&operator.tree), operator.at.place);
    let at = live.places.at(place);
    let least = at.body.load(Ordering::Acquire) + at.tail_ended.load(Ordering::Acquire);
    let found = match statat(tree.data(), operator.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => u64::try_from(found.st_size).unwrap_or(0),
        Err(errno) => return operator.errs("stat", errno, 1),
    };
    operator.report.verification.checked += 1;
    let most = live.places.longest(place);
    if (least..=most).contains(&found) {
        operator.done(1, 0)
    } else {
        operator.errs_in(&format!("{found} bytes long, where {least} to {most} were written"), 1)
    }
}

/// Gives a file its next name, in its directory.
pub(super) fn rename(operator: &mut Operator) -> Ending {
    let (live, tree, place) = (Arc::clone(&operator.live), Arc::clone(&operator.tree), operator.at.place);
    let at = live.places.at(place);
    let next = at.generation.load(Ordering::Acquire) + 1;
    let mut to = std::mem::take(&mut operator.other_name);
    live.places.name_of(place, next, &mut to);
    let renamed = renameat(tree.data(), operator.name.as_str(), tree.data(), to.as_str());
    let (is_old, is_new) = match renamed {
        Ok(()) => (Some(false), Some(true)),
        Err(_) => (is_there(operator, &operator.name), is_there(operator, &to)),
    };
    operator.other_name = to;
    match (is_old, is_new) {
        (Some(false), Some(true)) => {
            at.generation.store(next, Ordering::Release);
            at.give(Some(true));
        }
        (Some(true), Some(false)) => at.give(Some(true)),
        _ => at.give(None),
    }
    match renamed {
        Ok(()) => operator.done(1, 0),
        Err(errno) => operator.errs("rename", errno, 3),
    }
}

/// Removes a file.
pub(super) fn unlink(operator: &mut Operator) -> Ending {
    let (live, tree, place) = (Arc::clone(&operator.live), Arc::clone(&operator.tree), operator.at.place);
    let removed = unlinkat(tree.data(), operator.name.as_str(), AtFlags::empty());
    let is_left = if removed.is_ok() { Some(false) } else { is_there(operator, &operator.name) };
    match is_left {
        Some(false) => {
            operator.report.removed += 1;
            live.removed(place);
        }
        is_left => live.places.at(place).give(is_left),
    }
    match removed {
        Ok(()) => operator.done(1, 0),
        Err(errno) => operator.errs("unlink", errno, 2),
    }
}

/// Reads a directory to its end; where names stand still all of them have to be there.
pub(super) fn readdir(operator: &mut Operator, entries: &mut [MaybeUninit<u8>]) -> Ending {
    let (live, tree) = (Arc::clone(&operator.live), Arc::clone(&operator.tree));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let directory = match tree.file(&operator.name, flags) {
        Ok(directory) => directory,
        Err(errno) => return operator.errs("open", errno, 1),
    };
    let (mut calls, mut found) = (2, 0u64);
    let mut read = RawDir::new(&directory, entries);
    loop {
        calls += u32::from(read.is_buffer_empty());
        match read.next() {
            None => break,
            Some(Ok(entry)) => found += u64::from(!matches!(entry.file_name().to_bytes(), b"." | b"..")),
            Some(Err(errno)) => return operator.errs("readdir", errno, calls),
        }
    }
    drop(directory);
    if live.is_still {
        operator.report.verification.checked += 1;
        let first = live.places.directory_of(operator.at.place) * live.plan.fanout;
        let expected = live.plan.fanout.min(live.plan.count - first);
        if found != expected {
            return operator.errs_in(&format!("{found} files in it, where there are {expected}"), calls);
        }
    }
    operator.done(calls, 0)
}

/// The names in a directory of the tree, and the length of each file.
pub(super) fn listed(directory: &OwnedFd) -> Result<Vec<(String, u64)>, Errno> {
    let mut listed = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            let found = statat(directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
            listed.push((name, u64::try_from(found.st_size).unwrap_or(0)));
        }
    }
    Ok(listed)
}
