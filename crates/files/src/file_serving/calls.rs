//! The calls that a client makes, each counted.
//!
//! The fact that constrains it: paths begin at the work directory, as the original's do. Each call takes the descriptor
//! of that directory and the path below it, so that the kernel walks the same components. It does not walk from a
//! descriptor of the client's own folder, which would be cheaper than what is measured, nor the path of the work
//! directory itself, which is the machine's and no part of the load. What is opened lies below it, by no symbolic link;
//! calls that take a path and cannot be told so are on directories that were opened so before.

use crate::passes::close;
use crate::tree::WITHIN;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, Stat, Timespec, Timestamps};
use rustix::fs::{fstat, fstatfs, fsync, mkdirat, openat, openat2, renameat, statat, unlinkat, utimensat};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::CStr;
use std::os::fd::OwnedFd;

/// Bytes of directory entries that are asked for at once, as the C library does.
const ENTRIES_BYTES: usize = 32 * 1024;
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// The hands of one client.
#[derive(Debug)]
pub(super) struct Calls {
    work: OwnedFd,
    entries: Vec<u8>,
    /// How many were made.
    pub(super) made: u64,
}

impl Calls {
    /// For paths below `work`.
    pub(super) fn new(work: OwnedFd) -> Self {
        Self { work, entries: Vec::with_capacity(ENTRIES_BYTES), made: 0 }
    }

    pub(super) fn stat(&mut self, path: &CStr) -> Result<Stat, Errno> {
        self.made += 1;
        statat(&self.work, path, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn open(&mut self, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.made += 1;
        let mode = if flags.contains(OFlags::CREATE) { OWNER_ONLY } else { Mode::empty() };
        openat2(&self.work, path, flags | OFlags::CLOEXEC, mode, WITHIN)
    }

    /// A file server may say here first that it has not taken what was written.
    pub(super) fn close(&mut self, file: OwnedFd) -> Result<(), Errno> {
        self.made += 1;
        close(file)
    }

    /// A file's length, owner and times.
    pub(super) fn stat_open(&mut self, file: &OwnedFd) -> Result<Stat, Errno> {
        self.made += 1;
        fstat(file)
    }

    /// The file system's free space.
    pub(super) fn stat_file_system(&mut self) -> Result<(), Errno> {
        self.made += 1;
        fstatfs(&self.work).map(|_| ())
    }

    /// Reads once; gives how many bytes.
    #[inline]
    pub(super) fn read(&mut self, file: &OwnedFd, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.made += 1;
        pread(file, bytes, offset)
    }

    /// Writes all of `bytes`.
    #[inline]
    pub(super) fn write(&mut self, file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            self.made += 1;
            match pwrite(file, &bytes[done..], offset + done as u64)? {
                0 => return Err(Errno::IO),
                more => done += more,
            }
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, file: &OwnedFd) -> Result<(), Errno> {
        self.made += 1;
        fsync(file)
    }

    pub(super) fn unlink(&mut self, path: &CStr) -> Result<(), Errno> {
        self.made += 1;
        unlinkat(&self.work, path, AtFlags::empty())
    }

    pub(super) fn remove_directory(&mut self, path: &CStr) -> Result<(), Errno> {
        self.made += 1;
        unlinkat(&self.work, path, AtFlags::REMOVEDIR)
    }

    pub(super) fn rename(&mut self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.made += 1;
        renameat(&self.work, from, &self.work, to)
    }

    pub(super) fn make_directory(&mut self, path: &CStr, mode: u32) -> Result<(), Errno> {
        self.made += 1;
        mkdirat(&self.work, path, Mode::from_raw_mode(mode))
    }

    /// Sets access and modification to these seconds since the epoch.
    pub(super) fn set_times(&mut self, path: &CStr, access: i64, modification: i64) -> Result<(), Errno> {
        self.made += 1;
        let at = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
        let times = Timestamps { last_access: at(access), last_modification: at(modification) };
        utimensat(&self.work, path, &times, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Locks so many bytes for writing, or unlocks them.
    pub(super) fn lock(&mut self, file: &OwnedFd, offset: u64, size: u32, lock: bool) -> Result<(), Errno> {
        self.made += 1;
        let range = libc::flock {
            l_type: if lock { libc::F_WRLCK } else { libc::F_UNLCK } as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: offset as libc::off_t,
            l_len: libc::off_t::from(size),
            l_pid: 0,
        };
        let done = fcntl(file, FcntlArg::F_SETLKW(&range));
        done.map(|_| ()).map_err(|error| Errno::from_raw_os_error(error as i32))
    }

    /// Reads at most `entries_max` names of a directory, until `is_it` says so of one; gives whether one was.
    pub(super) fn scan(
        &mut self,
        path: &CStr,
        entries_max: u32,
        mut is_it: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::DIRECTORY;
        let directory = self.open(path, flags)?;
        let (mut left, mut found, mut calls) = (entries_max, false, 0);
        let mut entries = RawDir::new(&directory, self.entries.spare_capacity_mut());
        while left > 0 && !found {
            calls += u64::from(entries.is_buffer_empty());
            let Some(entry) = entries.next() else { break };
            found = is_it(entry?.file_name().to_bytes());
            left -= 1;
        }
        self.made += calls;
        self.close(directory)?;
        Ok(found)
    }

    /// Has a directory's entries reach the device.
    pub(super) fn sync_directory(&mut self, path: &CStr) -> Result<(), Errno> {
        let directory = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let done = self.sync(&directory);
        let closed = self.close(directory);
        done.and(closed)
    }

    /// Removes a directory with everything below it; nothing where there is none.
    pub(super) fn remove_tree(&mut self, path: &CStr) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match self.open(path, flags) {
            Ok(directory) => {
                self.empty(&directory)?;
                self.close(directory)?;
                self.remove_directory(path)
            }
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTDIR) => self.unlink(path),
            Err(error) => Err(error),
        }
    }

    /// Removes everything in a directory. It is read again until nothing is left: removing may move what was not read
    /// yet.
    fn empty(&mut self, directory: &OwnedFd) -> Result<(), Errno> {
        let mut buffer = Vec::with_capacity(ENTRIES_BYTES);
        loop {
            let mut removed = false;
            rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(0))?;
            let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                removed = true;
                self.made += 1;
                match unlinkat(directory, name, AtFlags::empty()) {
                    Err(Errno::ISDIR | Errno::PERM) => {
                        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                        let below = openat(directory, name, flags, Mode::empty())?;
                        self.empty(&below)?;
                        self.close(below)?;
                        unlinkat(directory, name, AtFlags::REMOVEDIR)?;
                        self.made += 2;
                    }
                    other => other?,
                }
            }
            if !removed {
                return Ok(());
            }
        }
    }
}
