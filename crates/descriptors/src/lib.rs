//! A table of file descriptors that a thread has for itself, as a process has one.
//!
//! Threads of a process share a table. Each open and each close then takes its lock, and each call on a descriptor counts a reference
//! to the open file up and down by an atomic operation, which the kernel leaves out where nobody else has the table (fdget, fs/file.c).
//! A load whose clients stand for processes may want what processes pay.
//!
//! The fact that constrains it: a descriptor is a number, and no type says in whose table. After [`enter_thread`]
//!
//! - what the process had open before is open in both tables: a copy, of the same open file and with the same position, which stays
//!   open in the one table when it is closed in the other;
//! - what another thread opens from then on is not there: its number is nothing here, or another file;
//! - what this thread opens is nothing, or another file, to every other thread.
//!
//! So what the thread needs later must be open before, or be opened by itself, and what it has opened it also closes: a `File` or
//! an `OwnedFd` of it that another thread drops would close whatever has that number there. Locks by fcntl(2) belong to a table: threads
//! with tables of their own keep each other out by them, threads that share one do not. The table goes with its thread, and all that is
//! still open in it is closed.

use rustix::process::getpid;
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::io;

/// Gives the calling thread a table of descriptors of its own, for the rest of its life: a copy of the one that it shared. What it
/// may do with descriptors from then on says the crate's description. Where it has one already it gets no other.
///
/// # Errors
/// On the first thread of the process, by whose table others name the process (/proc/PID/fd); where the kernel has no memory for the
/// copy, or a filter of system calls refuses.
#[allow(unsafe_code)]
pub fn enter_thread() -> io::Result<()> {
    if gettid() == getpid() {
        let message = "the first thread of a process keeps the process's table of descriptors";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // SAFETY: no memory is shared otherwise than before. That no descriptor is used in a table where it is not is for the caller to
    // keep to: the thread's own descriptors are neither handed to another thread nor taken from one.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FILES) }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd, AsRawFd, OwnedFd};
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::sync::mpsc::channel;
    use std::thread;

    /// The inode of what a thread has open by a number; `None` if that is nothing.
    fn inode_of(number: i32) -> Option<u64> {
        std::fs::metadata(format!("/proc/thread-self/fd/{number}")).map(|found| found.ino()).ok()
    }

    /// A new file, its number, its inode. Numbers this high are given out to nobody else of the test's process meanwhile.
    fn opened(least: i32) -> (OwnedFd, i32, u64) {
        let file = tempfile::tempfile().unwrap();
        let high = rustix::io::fcntl_dupfd_cloexec(file.as_fd(), least).unwrap();
        let number = high.as_raw_fd();
        (high, number, file.metadata().unwrap().ino())
    }

    #[test]
    fn what_is_opened_in_one_table_is_not_in_the_other() {
        for is_own in [false, true] {
            let (tell, hear) = channel();
            let (answer, answered) = channel();
            let (before, of_before, inode_before) = opened(400);
            let child = thread::spawn(move || {
                if is_own {
                    enter_thread().unwrap();
                }
                let (mine, of_mine, inode_mine) = opened(500);
                answer.send((of_mine, inode_mine)).unwrap();
                let of_theirs: i32 = hear.recv().unwrap();
                let found = (inode_of(of_before), inode_of(of_theirs));
                drop(mine);
                found
            });
            let (of_child, inode_of_child) = answered.recv().unwrap();
            // Another number than the child's, which this thread may take where the tables are two.
            let (later, of_later, inode_later) = opened(600);
            let seen = inode_of(of_child);
            tell.send(of_later).unwrap();
            let (found_before, found_later) = child.join().unwrap();
            assert_eq!(found_before, Some(inode_before), "what was open before is open in both");
            assert_eq!(seen, (!is_own).then_some(inode_of_child), "own table: {is_own}");
            assert_eq!(found_later, (!is_own).then_some(inode_later), "own table: {is_own}");
            drop((before, later));
        }
    }

    #[test]
    fn a_copy_is_of_the_same_open_file_and_outlives_the_other() {
        let mut file = tempfile::tempfile().unwrap();
        let mut copy = file.try_clone().unwrap();
        let in_copy = copy.as_raw_fd();
        let inode = file.metadata().unwrap().ino();
        let child = thread::spawn(move || {
            enter_thread().unwrap();
            copy.write_all(b"one").unwrap();
            drop(copy);
            (inode_of(in_copy), enter_thread().is_ok())
        });
        let (found, again) = child.join().unwrap();
        assert!(found != Some(inode) && again, "closed by the thread, which may ask again");
        assert_eq!(inode_of(in_copy), Some(inode), "and still open here");
        file.write_all(b"two").unwrap();
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"onetwo", "the position is the open file's");
    }
}
