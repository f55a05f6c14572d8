//! A wait for one of the kernel's locks that is known: two writes to one terminal.
//!
//! The kernel holds a mutex of the terminal for as long as a write lasts, and a write lasts until somebody reads what does not
//! fit. So the second one waits for the mutex until the first has been read, and sleeps meanwhile.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{read, write};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How often the lock is waited for when that is asked.
pub(crate) const ROUNDS: u64 = 3;
/// What the kernel's function is called that wants the lock, in part.
pub(crate) const FUNCTION: &str = "tty_write";
/// More than a terminal keeps.
const WRITTEN_BYTES: usize = 1 << 16;
/// Until the first write certainly waits.
const SETTLES: Duration = Duration::from_millis(5);
const HELD: Duration = Duration::from_millis(20);

fn read_all(terminal: &OwnedFd) -> io::Result<()> {
    std::thread::sleep(HELD);
    let (mut left, mut bytes) = (WRITTEN_BYTES + 1, [0; 4096]);
    while left > 0 {
        left = left.saturating_sub(read(terminal, &mut bytes)?);
    }
    Ok(())
}

fn once() -> io::Result<Duration> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let reader = openpt(flags)?;
    grantpt(&reader)?;
    unlockpt(&reader)?;
    let writer = open(ptsname(&reader, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    std::thread::scope(|scope| {
        let holds = scope.spawn(|| write(&writer, &[b'x'; WRITTEN_BYTES]).map(drop));
        std::thread::sleep(SETTLES);
        let reads = scope.spawn(|| read_all(&reader));
        let began = Instant::now();
        write(&writer, b"x")?;
        let lasted = began.elapsed();
        let panicked = |_| io::Error::other("a thread of the stimulus panicked");
        holds.join().map_err(panicked)??;
        reads.join().map_err(panicked)??;
        Ok(lasted)
    })
}

/// Waits for it, and gives how long in all, by the clock of the process that waits.
pub(crate) fn wait_for_lock() -> io::Result<Duration> {
    (0..ROUNDS).map(|_| once()).sum()
}
