//! The known stimulus before each segment: a prime number of writes, each synced, of a file without a name in the server's
//! folder, and of reads of it past the page cache. What is not counted exactly is not believed.

use super::rows::Sums;
use crate::Refusal;
use crate::self_test::{equal, until_all_hold};
use plimsoll_record::Check;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, fstat, open};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

const WRITES: u64 = 11;
const READS: u64 = 7;
/// A page that was just written may not leave the page cache at once; then the read was none of the device.
const TRIES: u32 = 10;

/// A file without a name, and its number.
pub(super) struct Own {
    file: OwnedFd,
    pub(super) inode: u64,
    bytes: usize,
}

impl Own {
    pub(super) fn create(folder: &Path) -> Result<Self, Refusal> {
        let failed =
            |error: Errno| Refusal::from(format!("the self-test in {} could not run: {error}", folder.display()));
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = open(folder, flags | OFlags::TMPFILE, mode).map_err(failed)?;
        let told = fstat(&file).map_err(failed)?;
        let bytes = usize::try_from(told.st_blksize).unwrap_or(0).max(rustix::param::page_size());
        Ok(Self { file, inode: told.st_ino, bytes })
    }

    /// Gives how long the reads took by this program's own clock.
    fn stimulate(&self) -> rustix::io::Result<Duration> {
        // Nothing that could be made smaller on its way.
        let mut noise = vec![0; self.bytes];
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(2002);
        for number in 0..WRITES {
            draws.fill_bytes(&mut noise);
            pwrite(&self.file, &noise, number * self.bytes as u64)?;
            fdatasync(&self.file)?;
        }
        fadvise(&self.file, 0, None, Advice::DontNeed)?;
        fadvise(&self.file, 0, None, Advice::Random)?;
        let began = Instant::now();
        for number in 0..READS {
            pread(&self.file, &mut noise, number * self.bytes as u64)?;
        }
        Ok(began.elapsed())
    }

    fn try_once(&self, sums: &dyn Fn() -> [Sums; 2]) -> rustix::io::Result<Vec<Check>> {
        let before = sums();
        let reading = self.stimulate()?;
        let after = sums();
        let grown = [0, 1].map(|at| after[at].since(&before[at]));
        let mut checks = Vec::new();
        for ((what, expected), found) in [("read", READS), ("write", WRITES)].into_iter().zip(&grown) {
            checks.push(equal(&format!("requests to {what}"), expected, found.count));
            checks.push(equal(&format!("bytes of requests to {what}"), expected * self.bytes as u64, found.bytes));
        }
        let reads = grown[0].queue_ns + grown[0].device_ns;
        let own = reading.as_nanos() as u64;
        checks.push(Check {
            name: "nanoseconds that these reads queued and were at the device".to_owned(),
            expected: format!("more than 0, {own} or less"),
            found: reads.to_string(),
            ok: grown[0].device_ns > 0 && reads <= own,
        });
        Ok(checks)
    }

    /// Makes the stimulus and compares it with what `rows` gives, by operation.
    pub(super) fn run(&self, sums: &dyn Fn() -> [Sums; 2]) -> Result<Vec<Check>, Refusal> {
        let failed = |error: Errno| Refusal::from(format!("the self-test could not run: {error}"));
        until_all_hold(TRIES, || self.try_once(sums).map_err(failed))
    }
}
