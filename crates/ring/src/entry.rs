//! An operation as the kernel's submission queue has it.

use io_uring::types::{Fd, FsyncFlags, Timespec};
use io_uring::{opcode, squeue};
use plimsoll_session::{Completed, Operation};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// An entry that names the operation's descriptor, its buffer and `timespec` by number and address: all of them are to stay
/// until it has completed.
pub(crate) fn entry(operation: &mut Operation, timespec: &mut Timespec) -> squeue::Entry {
    match operation {
        Operation::Nop => opcode::Nop::new().build(),
        Operation::Read { file, offset, buffer } => {
            let length = length(buffer);
            opcode::Read::new(descriptor(file), buffer.as_mut_ptr(), length).offset(*offset).build()
        }
        Operation::Write { file, offset, buffer } => {
            opcode::Write::new(descriptor(file), buffer.as_ptr(), length(buffer)).offset(*offset).build()
        }
        Operation::Fsync { file } => opcode::Fsync::new(descriptor(file)).build(),
        Operation::Fdatasync { file } => opcode::Fsync::new(descriptor(file)).flags(FsyncFlags::DATASYNC).build(),
        Operation::Timeout { ns } => {
            *timespec = Duration::from_nanos((*ns).max(0).unsigned_abs()).into();
            opcode::Timeout::new(timespec).build()
        }
    }
}

fn descriptor(file: &OwnedFd) -> Fd {
    Fd(file.as_raw_fd())
}

/// The kernel takes no more than this in one operation anyway, and says how much it took.
fn length(buffer: &[u8]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

/// `operation` with what the kernel says of it: a number, or an error's below 0.
pub(crate) fn completed(operation: Operation, told: i32) -> Completed {
    // A time that is over is what was asked for.
    let is_over = matches!(operation, Operation::Timeout { .. }) && told == -Errno::TIME.raw_os_error();
    let result = match u32::try_from(told) {
        Ok(bytes) => Ok(bytes),
        Err(_) if is_over => Ok(0),
        Err(_) => Err(io::Error::from_raw_os_error(-told)),
    };
    Completed { operation, result }
}
