//! An operation as the kernel's submission queue has it.

use crate::registered::Known;
use io_uring::types::{Fd, FsyncFlags, Timespec};
use io_uring::{opcode, squeue};
use plimsoll_session::{Buffer, Completed, Operation};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// RWF_DONTCACHE of preadv2(2), from Linux 6.14 on.
const DONTCACHE: i32 = 0x80;

/// An entry that names the operation's descriptor, its buffer and `timespec` by number and address: all of them are to
/// stay until it has completed. What is `known` is named by its place.
pub(crate) fn entry(operation: &mut Operation, timespec: &mut Timespec, known: &Known) -> squeue::Entry {
    match operation {
        Operation::Nop => opcode::Nop::new().build(),
        Operation::Read { file, offset, buffer } => read((file, *offset), buffer, 0, known),
        Operation::ReadUncached { file, offset, buffer } => read((file, *offset), buffer, DONTCACHE, known),
        Operation::Write { file, offset, buffer } => write((file, *offset), buffer, 0, known),
        Operation::WriteUncached { file, offset, buffer } => write((file, *offset), buffer, DONTCACHE, known),
        Operation::Fsync { file } => on(file, known, |file| opcode::Fsync::new(file).build()),
        Operation::Fdatasync { file } => {
            on(file, known, |file| opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build())
        }
        Operation::Timeout { ns } => {
            *timespec = Duration::from_nanos((*ns).max(0).unsigned_abs()).into();
            opcode::Timeout::new(timespec).build()
        }
    }
}

fn read((file, offset): (&OwnedFd, u64), buffer: &mut Buffer, flags: i32, known: &Known) -> squeue::Entry {
    let (fixed, length, bytes) = (known.buffer(buffer), length(buffer), buffer.as_mut_ptr());
    on(file, known, |file| match fixed {
        Some(place) => opcode::ReadFixed::new(file, bytes, length, place).offset(offset).rw_flags(flags).build(),
        None => opcode::Read::new(file, bytes, length).offset(offset).rw_flags(flags).build(),
    })
}

fn write((file, offset): (&OwnedFd, u64), buffer: &Buffer, flags: i32, known: &Known) -> squeue::Entry {
    let (fixed, length, bytes) = (known.buffer(buffer), length(buffer), buffer.as_ptr());
    on(file, known, |file| match fixed {
        Some(place) => opcode::WriteFixed::new(file, bytes, length, place).offset(offset).rw_flags(flags).build(),
        None => opcode::Write::new(file, bytes, length).offset(offset).rw_flags(flags).build(),
    })
}

/// The entry on a file, by its place if it has one and else by its number.
fn on(file: &OwnedFd, known: &Known, build: impl FnOnce(Fd) -> squeue::Entry) -> squeue::Entry {
    match known.file(file) {
        Some(place) => build(Fd(place as i32)).flags(squeue::Flags::FIXED_FILE),
        None => build(Fd(file.as_raw_fd())),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_registered_is_named_by_its_place() {
        let file: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
        let other: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
        let mut known = Known::default();
        assert_eq!(known.take(vec![Arc::clone(&file), Arc::clone(&file)]), [file.as_raw_fd()]);
        let told = |file: &Arc<OwnedFd>, is_fixed: bool, known: &Known| {
            let mut buffer = Buffer::zeroed(512);
            if is_fixed {
                buffer.fix(&known.keeper, 0);
            }
            let mut read = Operation::Read { file: Arc::clone(file), offset: 0, buffer };
            format!("{:?}", entry(&mut read, &mut Timespec::new(), known))
        };
        // The numbers of the kernel's interface: IORING_OP_READ_FIXED is 4, IORING_OP_READ 22, IOSQE_FIXED_FILE bit 0.
        let says = |text: String, code: u8, flags: u8| {
            assert!(
                text.contains(&format!("op_code: {code},")) && text.contains(&format!("flags: {flags},")),
                "{text}"
            );
        };
        says(told(&file, true, &known), 4, 1);
        says(told(&file, false, &known), 22, 1);
        says(told(&other, true, &known), 4, 0);
        says(told(&other, false, &known), 22, 0);
    }
}
