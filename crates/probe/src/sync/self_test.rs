//! The known stimulus before each segment: a prime number of syncs of a file without a name, written in between, whose
//! moments this program notes itself. What is not found is not believed.
//!
//! The file lies in the target's folder, since what is tested is that file system; no name is ever to be seen there.

use super::records::Record;
use crate::Refusal;
use crate::self_test::{equal, until_all_hold};
use plimsoll_record::Check;
use rustix::fs::{MemfdFlags, Mode, OFlags, fdatasync, fsync, memfd_create, open};
use rustix::io::{Errno, pwrite};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

const SYNCS: usize = 5;
const BYTES: usize = 16_384;
/// The measured call may miss the one that was noted by 2 % and a moment, which lies between two clocks.
const SLACK: Duration = Duration::from_micros(100);
const TRIES: u32 = 10;
const FDATASYNC: u8 = 1;

/// A file without a name; in memory where the file system knows none such.
fn nameless(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
            memfd_create("plimsoll-self-test", MemfdFlags::CLOEXEC)
        }
        opened => opened,
    }
}

/// Gives how long each sync took by this program's own clock.
fn stimulate(folder: &Path) -> rustix::io::Result<Vec<Duration>> {
    let file = nameless(folder)?;
    let mut lasted = Vec::new();
    for number in 0..2 * SYNCS {
        pwrite(&file, &[0x5a; BYTES], (number * BYTES) as u64)?;
        let began = Instant::now();
        if number % 2 == 0 {
            fsync(&file)?
        } else {
            fdatasync(&file)?
        }
        lasted.push(began.elapsed());
    }
    Ok(lasted)
}

fn try_once(folder: &Path, drain: &dyn Fn() -> Result<Vec<Option<Record>>, Refusal>) -> Result<Vec<Check>, Refusal> {
    drain()?;
    let lasted = stimulate(folder)
        .map_err(|error| Refusal::from(format!("the self-test in {} could not run: {error}", folder.display())))?;
    let own = std::process::id();
    let records: Vec<Record> = drain()?.into_iter().flatten().filter(|record| record.row.pid == own).collect();
    let data = records.iter().filter(|record| record.row.call == FDATASYNC).count();
    let mut checks = vec![
        equal("syncs", lasted.len() as u64, records.len() as u64),
        equal("of those fdatasync", SYNCS as u64, data as u64),
    ];
    let missed = lasted.iter().zip(&records).map(|(lasted, record)| {
        let noted = lasted.as_nanos() as i64;
        (noted - record.row.ns).abs() - noted / 50
    });
    checks.push(at_most("nanoseconds by which a sync misses its own, beyond 2 %", SLACK, missed.max()));
    let open = records.iter().map(|record| record.open_ns().abs()).max();
    checks.push(at_most("nanoseconds by which the parts of a sync miss it", Duration::ZERO, open));
    Ok(checks)
}

fn at_most(name: &str, limit: Duration, found: Option<i64>) -> Check {
    let limit = limit.as_nanos() as i64;
    Check {
        name: name.to_owned(),
        expected: format!("{limit} or less"),
        found: found.map_or_else(|| "none".to_owned(), |found| found.to_string()),
        ok: found.is_some_and(|found| found <= limit),
    }
}

/// Makes the stimulus in `folder` and compares it with what `drain` gives.
pub(super) fn run(
    folder: &Path,
    drain: &dyn Fn() -> Result<Vec<Option<Record>>, Refusal>,
) -> Result<Vec<Check>, Refusal> {
    until_all_hold(TRIES, || try_once(folder, drain))
}
