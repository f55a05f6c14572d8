//! The known stimulus before each segment: calls of known number on the server's own files, which are only read, and writes
//! to memory. What is not counted exactly is not believed.

use super::calls::{CLASSES, KINDS};
use super::maps::Counts;
use crate::Refusal;
use plimsoll_record::Check;
use rustix::fs::{
    AtFlags, CWD, MemfdFlags, Mode, OFlags, SeekFrom, fdatasync, fsync, memfd_create, open, seek, statat,
};
use rustix::io::{pread, pwrite, read, write};
use std::path::Path;

/// A file of the write-ahead log's folder that no server makes, asked for by name.
const MISSING: &str = "pg_wal/plimsoll-self-test";
/// Prime numbers: none is a sum of others here.
const POSITIONED: usize = 101;
const NAMED: usize = 13;
const WRITES: usize = 53;
const SYNCS: usize = 7;
const BYTES: usize = 3;
/// Other threads of this program may be at work.
const TRIES: u32 = 3;

/// Class, kind, number, and what is expected.
type Expected = (&'static str, &'static str, &'static str, usize, i64);

/// `enum number`.
const COUNT: (&str, usize) = ("calls", 0);
const ERRORS: (&str, usize) = ("failed calls", 1);
const ASKED: (&str, usize) = ("bytes asked for", 2);
const RETURNED: (&str, usize) = ("bytes returned", 3);
const SEQUENTIAL: (&str, usize) = ("calls that go on", 5);

/// Reads the version of the cluster, looks for a file that is not there, writes and syncs memory.
fn stimulate(folder: &Path) -> rustix::io::Result<()> {
    let mut byte = [0; BYTES];
    let version = open(folder.join("PG_VERSION"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    for _ in 0..POSITIONED {
        pread(&version, &mut byte[..1], 0)?;
    }
    read(&version, &mut byte[..1])?;
    read(&version, &mut byte[..1])?;
    seek(&version, SeekFrom::Start(0))?;
    drop(version);
    for _ in 0..NAMED {
        // What it says is the point: there is none.
        let _ = statat(CWD, folder.join(MISSING), AtFlags::empty());
    }
    let memory = memfd_create("plimsoll-self-test", MemfdFlags::CLOEXEC)?;
    for number in 0..WRITES {
        pwrite(&memory, &byte, (number * BYTES) as u64)?;
    }
    write(&memory, &byte)?;
    for _ in 0..SYNCS {
        fsync(&memory)?;
        fdatasync(&memory)?;
    }
    Ok(())
}

fn expected() -> Vec<Expected> {
    let of =
        |class, kind, (what, place): (&'static str, usize), number: usize| (class, kind, what, place, number as i64);
    vec![
        of("other", "open", COUNT, 1),
        of("other", "pread", COUNT, POSITIONED),
        of("other", "pread", ASKED, POSITIONED),
        of("other", "pread", RETURNED, POSITIONED),
        of("other", "read", COUNT, 2),
        of("other", "read", SEQUENTIAL, 1),
        of("other", "lseek", COUNT, 1),
        of("other", "close", COUNT, 1),
        of("wal", "stat", COUNT, NAMED),
        of("wal", "stat", ERRORS, NAMED),
        of("elsewhere", "pwrite", COUNT, WRITES),
        of("elsewhere", "pwrite", RETURNED, WRITES * BYTES),
        of("elsewhere", "write", COUNT, 1),
        of("elsewhere", "fsync", COUNT, SYNCS),
        of("elsewhere", "fdatasync", COUNT, SYNCS),
    ]
}

fn found(counts: &Counts, class: &str, kind: &str, place: usize) -> i64 {
    let class = CLASSES.iter().position(|known| *known == class).unwrap_or(CLASSES.len());
    let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    counts.by_class.get(&(class, kind)).map_or(0, |numbers| numbers[place])
}

fn try_once(folder: &Path, counts: &dyn Fn() -> Counts) -> rustix::io::Result<Vec<Check>> {
    let before = counts();
    stimulate(folder)?;
    let after = counts();
    let check = |(class, kind, what, place, expected): Expected| {
        let found = found(&after, class, kind, place) - found(&before, class, kind, place);
        Check {
            name: format!("{kind} of {class}: {what}"),
            expected: expected.to_string(),
            found: found.to_string(),
            ok: found == expected,
        }
    };
    Ok(expected().into_iter().map(check).collect())
}

/// Makes the stimulus for the cluster in `folder` and compares what `counts` tells before and after.
pub(super) fn run(folder: &Path, counts: &dyn Fn() -> Counts) -> Result<Vec<Check>, Refusal> {
    let mut checks = Vec::new();
    for _ in 0..TRIES {
        checks = try_once(folder, counts)
            .map_err(|error| Refusal::from(format!("the self-test in {} could not run: {error}", folder.display())))?;
        if checks.iter().all(|check| check.ok) {
            return Ok(checks);
        }
    }
    let wrong = checks.iter().filter(|check| !check.ok);
    let words: Vec<String> =
        wrong.map(|check| format!("{}: {} instead of {}", check.name, check.found, check.expected)).collect();
    Err(Refusal::from(format!("the self-test failed: {}", words.join("; "))))
}
