//! The known stimulus: a process that is on a CPU in a known function for a known time, first outside of the kernel, then
//! inside.

use super::locked::wait_for_lock;
use rustix::io::read;
use rustix::stdio::{stdin, stdout};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::hint::black_box;
use std::time::Duration;

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To work out numbers.
    User = b'u' as isize,
    /// To let the kernel fill memory.
    Kernel = b'k' as isize,
    /// To wait for one of the kernel's locks.
    Lock = b'l' as isize,
}

/// How long a stimulus is on a CPU.
pub(crate) const LENGTH: Duration = Duration::from_millis(100);
/// What the function that works out numbers is called.
pub(crate) const USER_FUNCTION: &str = "work_out_numbers";
/// What the system call is called that fills memory, in part: its name has a prefix on each machine.
pub(crate) const KERNEL_FUNCTION: &str = "sys_read";

const AT_ONCE: u64 = 1 << 18;
const READS_AT_ONCE: usize = 64;
const FILLED_BYTES: usize = 1 << 18;

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[inline(never)]
fn work_out_numbers(from: u64) -> u64 {
    (0..AT_ONCE).fold(from, |number, _| black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
}

fn answer(lasted: Duration) -> std::io::Result<()> {
    rustix::io::write(stdout(), &(lasted.as_nanos() as u64).to_ne_bytes())?;
    Ok(())
}

/// Serves its standard input until that is closed: does what each byte asks, and answers with eight: for how many nanoseconds.
///
/// # Errors
/// When standard input or output fails.
pub fn serve() -> std::io::Result<()> {
    let zeros = File::open("/dev/zero")?;
    let (mut number, mut filled) = (1, vec![0; FILLED_BYTES]);
    loop {
        let mut asked = [0];
        if read(stdin(), &mut asked)? == 0 {
            return Ok(());
        }
        if asked[0] == Ask::Lock as u8 {
            answer(wait_for_lock()?)?;
            continue;
        }
        let began = cpu_time();
        while cpu_time() - began < LENGTH {
            if asked[0] == Ask::Kernel as u8 {
                // Many times: asking for the time is a system call, too.
                for _ in 0..READS_AT_ONCE {
                    read(&zeros, &mut filled)?;
                }
            } else {
                number = work_out_numbers(number);
            }
        }
        answer(cpu_time() - began)?;
    }
}
