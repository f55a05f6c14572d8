//! The known stimulus: a process that behaves like a backend whose every millisecond is known.
//!
//! It answers one byte with eight and then, like a backend, says that it is ready; and like a backend it keeps in a variable,
//! reached by a pointer, what it waits for.

use crate::postgres_waits::WaitNames;
use rustix::io::read;
use rustix::net::{SendFlags, send};
use rustix::stdio::stdin;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// An answer at once.
    Nothing = b'n' as isize,
    /// To be on the CPU for a while.
    Burn = b'b' as isize,
    /// To wait for a lock.
    Lock = b'l' as isize,
    /// To wait for a write-ahead log to reach the device.
    Sync = b's' as isize,
}

/// How long a stimulus lasts.
pub(crate) const LENGTH: Duration = Duration::from_millis(40);

/// What PostgreSQL's answers end with.
const READY: [u8; 6] = *b"Z\0\0\0\x05I";
/// A number and the end of an answer.
pub(crate) const ANSWER_BYTES: usize = 8 + READY.len();

static EVENT: AtomicU32 = AtomicU32::new(0);
static POINTER: AtomicUsize = AtomicUsize::new(0);

/// The number of an event; names were respelt over the versions.
fn number(names: &WaitNames, class: &str, event: &str) -> u32 {
    let same = |c: &str, e: &str| c == class && e.eq_ignore_ascii_case(event);
    names.all().find(|(_, c, e)| same(c, e)).map_or(0, |(info, ..)| info)
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// On the CPU by the thread's own clock, which leaves out interrupts where the kernel accounts for them.
fn burn() -> Duration {
    let (began, cpu_began) = (Instant::now(), cpu_time());
    while cpu_time() - cpu_began < LENGTH {}
    began.elapsed()
}

fn wait(event: u32, how: impl FnOnce()) -> Duration {
    let began = Instant::now();
    EVENT.store(event, Ordering::Relaxed);
    how();
    EVENT.store(0, Ordering::Relaxed);
    began.elapsed()
}

/// In the system call in which PostgreSQL waits for its semaphores.
fn on_a_semaphore() {
    let began = Instant::now();
    while let Some(rest) = LENGTH.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

fn answer(number: u64) -> std::io::Result<()> {
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..].copy_from_slice(&READY);
    send(stdin(), &bytes, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Serves its standard input, a socket, until that is closed: first says where its pointer is, then answers each byte with
/// how long, in nanoseconds, it did what the byte asked. Wait events are those of the version `major`.
///
/// # Errors
/// When the socket fails, or the version is not known.
pub fn serve(major: u32) -> std::io::Result<()> {
    let names = WaitNames::of(major).ok_or_else(|| std::io::Error::other(format!("version {major} is not known")))?;
    let of = |class, name| number(&names, class, name);
    let (client_read, lock, sync) = (of("Client", "ClientRead"), of("Lock", "relation"), of("IO", "WALSync"));
    POINTER.store(std::ptr::from_ref(&EVENT) as usize, Ordering::Relaxed);
    answer(std::ptr::from_ref(&POINTER) as usize as u64)?;
    loop {
        let mut asked = [0];
        EVENT.store(client_read, Ordering::Relaxed);
        if read(stdin(), &mut asked)? == 0 {
            return Ok(());
        }
        EVENT.store(0, Ordering::Relaxed);
        let lasted = match asked[0] {
            b'b' => burn(),
            b'l' => wait(lock, on_a_semaphore),
            b's' => wait(sync, || std::thread::sleep(LENGTH)),
            _ => Duration::ZERO,
        };
        answer(lasted.as_nanos() as u64)?;
    }
}
