//! Which file system holds a folder, in the kernel's own number.
//!
//! stat(2) is not asked for the number: a file of a btrfs subvolume has another there than its super block, which is what
//! programs in the kernel see. mountinfo has the super block's (the thread's own: one
//! that mounted tracefs privately has other mounts than its process).

use crate::Refusal;
use plimsoll_record::FileSystem;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs;
use std::path::Path;

/// A file system under watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedFileSystem {
    /// As the kernel has it inside: major in the upper 12 bits, minor in the lower 20.
    pub(crate) device: u32,
    pub(crate) shown: FileSystem,
}

fn parse(mountinfo: &str, mount: u64) -> Option<WatchedFileSystem> {
    let line = mountinfo.lines().find(|line| line.split(' ').next().is_some_and(|id| id.parse() == Ok(mount)))?;
    let device = line.split(' ').nth(2)?;
    let (major, minor) = device.split_once(':')?;
    let kind = line.split(" - ").nth(1)?.split(' ').next()?;
    Some(WatchedFileSystem {
        device: major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?,
        shown: FileSystem { device: device.to_owned(), kind: kind.to_owned() },
    })
}

/// Where the root is that of a chroot and no mount point, mountinfo lists nothing for it; but sysfs knows which kind of
/// file system is on a block device. (btrfs has other numbers, and is not on one device.)
fn unlisted(sys: &Path, major: u32, minor: u32) -> Option<WatchedFileSystem> {
    let device = format!("{major}:{minor}");
    let block = fs::canonicalize(sys.join("dev/block").join(&device)).ok()?;
    let kinds = fs::read_dir(sys.join("fs")).ok()?.flatten();
    let kind = kinds.map(|kind| kind.path()).find(|kind| kind.join(block.file_name().unwrap_or_default()).exists())?;
    let kind = kind.file_name()?.to_string_lossy().into_owned();
    Some(WatchedFileSystem { device: major << 20 | minor, shown: FileSystem { device, kind } })
}

/// A folder or file: its file system, its own number, and the device that stat(2) gives with it.
pub(crate) struct Found {
    pub(crate) file_system: WatchedFileSystem,
    pub(crate) inode: u64,
    pub(crate) stat_device: u32,
}

/// Where `path` is.
pub(crate) fn file_system_of(path: &Path) -> Result<Found, Refusal> {
    let failed = |error: &dyn std::fmt::Display| Refusal::from(format!("{}: {error}", path.display()));
    let wanted = StatxFlags::MNT_ID | StatxFlags::INO;
    let found = statx(CWD, path, AtFlags::empty(), wanted).map_err(|error| failed(&error))?;
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").map_err(|error| failed(&error))?;
    let (major, minor) = (found.stx_dev_major, found.stx_dev_minor);
    let file_system = parse(&mounts, found.stx_mnt_id).or_else(|| unlisted(Path::new("/sys"), major, minor));
    let file_system = file_system.ok_or_else(|| failed(&"its mount is not in mountinfo"))?;
    let stat_device = major << 20 | minor;
    Ok(Found { file_system, inode: found.stx_ino, stat_device })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_super_blocks() {
        let known =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n361 1 0:43 / / rw - btrfs /dev/loop0 rw\n";
        let found = parse(known, 36).unwrap();
        assert_eq!((found.device, found.shown.kind.as_str()), (98 << 20, "ext3"));
        let found = parse(known, 361).unwrap();
        assert_eq!((found.device, found.shown.device.as_str(), found.shown.kind.as_str()), (43, "0:43", "btrfs"));
        assert_eq!(parse(known, 3), None);
    }

    #[test]
    fn what_mountinfo_does_not_list_is_known_by_its_device() {
        let sys = tempfile::tempdir().unwrap();
        for folder in ["dev/block", "devices/vda/vda1", "fs/ext4/vda1", "fs/ext4/features", "fs/btrfs", "fs/xfs/sda"] {
            fs::create_dir_all(sys.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../../devices/vda/vda1", sys.path().join("dev/block/253:1")).unwrap();
        let found = unlisted(sys.path(), 253, 1).unwrap();
        assert_eq!((found.device, found.shown.device.as_str()), (253 << 20 | 1, "253:1"));
        assert_eq!(found.shown.kind, "ext4");
        assert_eq!(unlisted(sys.path(), 0, 43), None);
    }
}
