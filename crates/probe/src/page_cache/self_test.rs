//! The known stimulus before each segment: a prime number of single pages in shuffled order, cold, then again; then a
//! file from end to end. What is not counted exactly is not believed.

use super::settings::page_bytes;
use crate::Refusal;
use plimsoll_record::SelfTest;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, open};
use rustix::io::{Errno, pread, pwrite};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const RANDOM_FILE_PAGES: u64 = 1021;
const RANDOM_READS: usize = 211;
const SEQUENTIAL_PAGES: u64 = 1019;
const SEQUENTIAL_READ_PAGES: usize = 16;
const WRITE_PAGES: usize = 256;
/// Pages just written may sit where they cannot be dropped for a moment; then the file was not cold and it is tried again.
const TRIES: u32 = 3;

/// Counts that the test compares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) missed: i64,
    pub(crate) added: i64,
}

/// A folder that is gone with its files when the test is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn create(scratch: &Path) -> Result<Self, Refusal> {
        let path = scratch.join(format!(".plimsoll-self-test-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| Refusal::from(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes past the page cache where the file system can, so that the file is cold from birth.
fn write_cold(path: &Path, pages: u64) -> rustix::io::Result<()> {
    let page = page_bytes() as usize;
    let space = vec![0x5a_u8; (WRITE_PAGES + 1) * page];
    let aligned = &space[space.as_ptr().align_offset(page)..][..WRITE_PAGES * page];
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match open(path, flags | OFlags::DIRECT, mode) {
        Err(Errno::INVAL) => open(path, flags, mode)?,
        opened => opened?,
    };
    let bytes = pages as usize * page;
    let mut at = 0;
    while at < bytes {
        at += pwrite(&file, &aligned[..aligned.len().min(bytes - at)], at as u64)?;
    }
    fsync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)
}

fn open_to_read(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn shuffled() -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..RANDOM_FILE_PAGES).collect();
    // A fixed seed: a test that fails must fail again.
    numbers.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(2002));
    numbers.truncate(RANDOM_READS);
    numbers
}

fn try_once(folder: &Path, attempt: u32, counted: &dyn Fn() -> Counted) -> rustix::io::Result<SelfTest> {
    let page = page_bytes() as usize;
    let mut buffer = vec![0_u8; SEQUENTIAL_READ_PAGES * page];
    let (random, sequential) = (folder.join(format!("random-{attempt}")), folder.join(format!("sequential-{attempt}")));
    write_cold(&random, RANDOM_FILE_PAGES)?;
    write_cold(&sequential, SEQUENTIAL_PAGES)?;
    let file = open_to_read(&random)?;
    fadvise(&file, 0, None, Advice::Random)?;
    let mut missed = [0; 2];
    for missed in &mut missed {
        let before = counted();
        for number in shuffled() {
            pread(&file, &mut buffer[..page], number * page as u64)?;
        }
        *missed = counted().missed - before.missed;
    }
    let file = open_to_read(&sequential)?;
    let before = counted();
    let mut at = 0;
    loop {
        match pread(&file, &mut buffer[..], at)? {
            0 => break,
            read => at += read as u64,
        }
    }
    let sequential_added = counted().added - before.added;
    let [missed_cold, missed_warm] = missed;
    let passed = missed_cold == RANDOM_READS as i64 && missed_warm == 0 && sequential_added == SEQUENTIAL_PAGES as i64;
    Ok(SelfTest {
        pages: RANDOM_READS as u64,
        missed_cold,
        missed_warm,
        sequential_pages: SEQUENTIAL_PAGES,
        sequential_added,
        passed,
    })
}

/// Makes the stimulus in `folder` and compares what `counted` tells before and after.
pub(crate) fn run(folder: &Path, counted: &dyn Fn() -> Counted) -> Result<SelfTest, Refusal> {
    let mut last = SelfTest::default();
    for attempt in 0..TRIES {
        last = try_once(folder, attempt, counted)
            .map_err(|error| Refusal::from(format!("the self-test in {} could not run: {error}", folder.display())))?;
        if last.passed {
            return Ok(last);
        }
    }
    Err(Refusal::from(format!(
        "the self-test failed: of {} cold pages {} counted as missed, read again {}; of {} pages read in sequence {} counted as added",
        last.pages, last.missed_cold, last.missed_warm, last.sequential_pages, last.sequential_added
    )))
}
