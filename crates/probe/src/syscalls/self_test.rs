//! The known stimulus before each segment: calls of known number on the target's own files, which are only read, and writes
//! to memory. What is not counted exactly is not believed.

use super::calls::{CLASSES, KINDS};
use super::maps::Counts;
use crate::Refusal;
use crate::folders::{Files, Layout};
use crate::self_test::until_all_hold;
use plimsoll_record::Check;
use rustix::fs::{
    AtFlags, CWD, MemfdFlags, Mode, OFlags, SeekFrom, fdatasync, fsync, memfd_create, open, seek, statat,
};
use rustix::io::{pread, pwrite, read, write};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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

/// Files of the target that a stimulus can do without changing anything.
struct Stimulus {
    /// A file of at least two bytes, of the class `other`.
    file: PathBuf,
    /// A name that no file has, and the class that a file of this name would be of.
    missing: (PathBuf, &'static str),
}

impl Stimulus {
    fn of(files: &Files) -> io::Result<Self> {
        let missing = |name: &str, class| (files.folder.join(name), class);
        match files.layout {
            Layout::Postgres => {
                Ok(Self { file: files.folder.join("PG_VERSION"), missing: missing("pg_wal/plimsoll-self-test", "wal") })
            }
            Layout::Plain => {
                Ok(Self { file: file_in(&files.folder)?, missing: missing("plimsoll-self-test", "other") })
            }
        }
    }

    /// Reads the file, looks for one that is not there, writes and syncs memory.
    fn make(&self) -> rustix::io::Result<()> {
        let mut byte = [0; BYTES];
        let file = open(&self.file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        for _ in 0..POSITIONED {
            pread(&file, &mut byte[..1], 0)?;
        }
        read(&file, &mut byte[..1])?;
        read(&file, &mut byte[..1])?;
        seek(&file, SeekFrom::Start(0))?;
        drop(file);
        for _ in 0..NAMED {
            // What it says is the point: there is none.
            let _ = statat(CWD, &self.missing.0, AtFlags::empty());
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

    fn expected(&self) -> Vec<Expected> {
        let of = |class, kind, (what, place): (&'static str, usize), number: usize| {
            (class, kind, what, place, number as i64)
        };
        vec![
            of("other", "open", COUNT, 1),
            of("other", "pread", COUNT, POSITIONED),
            of("other", "pread", ASKED, POSITIONED),
            of("other", "pread", RETURNED, POSITIONED),
            of("other", "read", COUNT, 2),
            of("other", "read", SEQUENTIAL, 1),
            of("other", "lseek", COUNT, 1),
            of("other", "close", COUNT, 1),
            of(self.missing.1, "stat", COUNT, NAMED),
            of(self.missing.1, "stat", ERRORS, NAMED),
            of("elsewhere", "pwrite", COUNT, WRITES),
            of("elsewhere", "pwrite", RETURNED, WRITES * BYTES),
            of("elsewhere", "write", COUNT, 1),
            of("elsewhere", "fsync", COUNT, SYNCS),
            of("elsewhere", "fdatasync", COUNT, SYNCS),
        ]
    }

    fn try_once(&self, counts: &dyn Fn() -> Counts) -> rustix::io::Result<Vec<Check>> {
        let before = counts();
        self.make()?;
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
        Ok(self.expected().into_iter().map(check).collect())
    }
}

/// A file that the stimulus can read, directly in `folder`.
fn file_in(folder: &Path) -> io::Result<PathBuf> {
    let can_be_read = |entry: &fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_file()) && entry.metadata().is_ok_and(|told| told.len() >= 2)
    };
    let none = || io::Error::other("the self-test needs a file of two bytes or more in it");
    fs::read_dir(folder)?.flatten().find(can_be_read).map(|entry| entry.path()).ok_or_else(none)
}

fn found(counts: &Counts, class: &str, kind: &str, place: usize) -> i64 {
    let class = CLASSES.iter().position(|known| *known == class).unwrap_or(CLASSES.len());
    let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    counts.by_class.get(&(class, kind)).map_or(0, |numbers| numbers[place])
}

/// Makes the stimulus with files of the target and compares what `counts` tells before and after.
pub(super) fn run(files: &Files, counts: &dyn Fn() -> Counts) -> Result<Vec<Check>, Refusal> {
    let folder = files.folder.display();
    let failed = |error: io::Error| Refusal::from(format!("the self-test in {folder} could not run: {error}"));
    let stimulus = Stimulus::of(files).map_err(failed)?;
    until_all_hold(TRIES, || stimulus.try_once(counts).map_err(|error| failed(error.into())))
}
