//! Which disks hold the server's files: those that take requests, each once.
//!
//! The fact that constrains it: a file system's device may be a partition, or one that only passes on what it gets (device
//! mapper, RAID). Neither has requests of its own; what lies below has. A loop device has, and what is below it is another's.

use crate::Refusal;
use crate::bpf::WatchedFileSystem;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const DISKS_MAX: usize = 8;
const DEPTH_MAX: usize = 8;

/// A whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) number: u32,
    pub(super) name: String,
}

/// What holds a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    /// Block devices that it was made on, by their numbers; several of btrfs.
    pub(super) volumes: Vec<u32>,
    pub(super) disks: Vec<Disk>,
    /// Where on its disk the one volume begins, in sectors, if it is a part of that disk itself and of no other.
    pub(super) begins_at: Option<u64>,
}

/// The system's folder of devices and the mounts; tests have their own.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) sys: PathBuf,
    pub(super) mounts: String,
}

fn number_of(block: &Path) -> Option<u32> {
    let text = fs::read_to_string(block.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}

fn name_of(block: &Path) -> String {
    block.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What a folder's links lead to, in the order of their names.
fn led_to(folder: &Path) -> Vec<PathBuf> {
    let mut links: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|link| link.path()).collect();
    links.sort();
    links.iter().filter_map(|link| fs::canonicalize(link).ok()).collect()
}

impl System {
    pub(super) fn own() -> Result<Self, Refusal> {
        let path = "/proc/thread-self/mountinfo";
        let mounts = fs::read_to_string(path).map_err(|error| Refusal::from(format!("{path}: {error}")))?;
        Ok(Self { sys: PathBuf::from("/sys"), mounts })
    }

    /// The device that a file system with a number of its own is mounted from.
    fn source_of(&self, device: &str) -> Option<PathBuf> {
        let line = self.mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
        fs::canonicalize(line.split(" - ").nth(1)?.split(' ').nth(1)?).ok()
    }

    /// The folders of the block devices that a file system was made on.
    fn volumes(&self, file_system: &WatchedFileSystem) -> Vec<PathBuf> {
        if let Ok(own) = fs::canonicalize(self.sys.join("dev/block").join(&file_system.shown.device)) {
            return vec![own];
        }
        let Some(source) = self.source_of(&file_system.shown.device) else { return Vec::new() };
        let name = name_of(&source);
        for each in led_to(&self.sys.join("fs/btrfs")) {
            let members = led_to(&each.join("devices"));
            if members.iter().any(|member| name_of(member) == name) {
                return members;
            }
        }
        fs::canonicalize(self.sys.join("class/block").join(name)).into_iter().collect()
    }

    /// The disks below a block device that take requests.
    fn below(&self, block: &Path, depth: usize, found: &mut Vec<Disk>) -> Result<(), Refusal> {
        let is_part = block.join("partition").exists();
        let whole = if is_part { block.parent().unwrap_or(block) } else { block };
        // Only a queue of requests has this folder.
        if whole.join("mq").exists() {
            let number = number_of(whole).ok_or_else(|| Refusal::from(format!("{} has no number", whole.display())))?;
            let disk = Disk { number, name: name_of(whole) };
            if !found.contains(&disk) {
                found.push(disk);
            }
            return Ok(());
        }
        let slaves = led_to(&whole.join("slaves"));
        if slaves.is_empty() || depth == 0 {
            let reason = format!("{} has no request queue, so there are no requests to count", name_of(whole));
            return Err(Refusal::with_remedy(reason, "put the server's files on a disk with a request queue"));
        }
        slaves.iter().try_for_each(|slave| self.below(slave, depth - 1, found))
    }

    /// What holds a file system.
    pub(super) fn holders(&self, file_system: &WatchedFileSystem) -> Result<Holders, Refusal> {
        let volumes = self.volumes(file_system);
        if volumes.is_empty() {
            let kind = &file_system.shown.kind;
            let reason = format!("files of the server are on {kind}, which has no block device");
            return Err(Refusal::with_remedy(reason, "put them on a file system of a disk, or leave the probe out"));
        }
        let mut holders = Holders::default();
        for volume in &volumes {
            holders.volumes.extend(number_of(volume));
            self.below(volume, DEPTH_MAX, &mut holders.disks)?;
        }
        if let [volume] = volumes.as_slice() {
            let part = volume.join("partition").exists();
            let start = fs::read_to_string(volume.join("start")).ok().and_then(|text| text.trim().parse().ok());
            let whole = if part { volume.parent().unwrap_or(volume) } else { volume };
            let own = number_of(whole).is_some_and(|number| holders.disks.iter().any(|disk| disk.number == number));
            holders.begins_at = if own { if part { start } else { Some(0) } } else { None };
        }
        Ok(holders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::FileSystem;
    use std::os::unix::fs::symlink;

    struct World {
        _folder: tempfile::TempDir,
        system: System,
    }

    impl World {
        /// A disk with a partition, a loop device, a mapped device over that partition, and one without requests.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let sys = fs::canonicalize(folder.path()).unwrap();
            for (device, number, is_queue) in [
                ("vda", "254:0", true),
                ("vda/vda3", "254:3", false),
                ("loop7", "7:7", true),
                ("dm-0", "253:0", false),
                ("zram0", "252:0", false),
            ] {
                let block = sys.join("devices").join(device);
                fs::create_dir_all(block.join("slaves")).unwrap();
                fs::write(block.join("dev"), format!("{number}\n")).unwrap();
                if is_queue {
                    fs::create_dir(block.join("mq")).unwrap();
                }
                for listed in ["dev/block", "class/block", "fs/btrfs"] {
                    fs::create_dir_all(sys.join(listed)).unwrap();
                }
                symlink(&block, sys.join("dev/block").join(number)).unwrap();
                symlink(&block, sys.join("class/block").join(block.file_name().unwrap())).unwrap();
            }
            fs::write(sys.join("devices/vda/vda3/partition"), "3\n").unwrap();
            fs::write(sys.join("devices/vda/vda3/start"), "2048\n").unwrap();
            symlink(sys.join("devices/vda/vda3"), sys.join("devices/dm-0/slaves/vda3")).unwrap();
            Self { _folder: folder, system: System { sys, mounts: String::new() } }
        }

        fn holders(&self, device: &str) -> Result<Holders, Refusal> {
            let shown = FileSystem { device: device.to_owned(), kind: "any".to_owned() };
            self.system.holders(&WatchedFileSystem { device: 1, shown })
        }
    }

    #[test]
    fn a_partition_is_its_disk_and_a_mapped_device_what_it_is_on() {
        let world = World::new();
        let disk = Disk { number: 254 << 20, name: "vda".to_owned() };
        let part = world.holders("254:3").unwrap();
        assert_eq!((part.disks, part.begins_at), (vec![disk.clone()], Some(2048)));
        assert_eq!(part.volumes, [254 << 20 | 3]);
        let mapped = world.holders("253:0").unwrap();
        assert_eq!((mapped.disks, mapped.begins_at, mapped.volumes), (vec![disk], None, vec![253 << 20]));
        let on_loop = world.holders("7:7").unwrap();
        assert_eq!((on_loop.disks[0].name.as_str(), on_loop.begins_at), ("loop7", Some(0)));
    }

    #[test]
    fn what_has_no_requests_is_refused() {
        let world = World::new();
        assert!(world.holders("252:0").unwrap_err().reason.contains("zram0"));
        let refusal = world.holders("0:30").unwrap_err();
        assert!(refusal.reason.contains("no block device") && refusal.remedy.is_some());
    }

    #[test]
    fn all_devices_of_a_btrfs_are_found_by_the_one_it_was_mounted_from() {
        let mut world = World::new();
        let devices = world.system.sys.join("fs/btrfs/0a1b/devices");
        fs::create_dir_all(&devices).unwrap();
        for name in ["loop7", "vda3"] {
            symlink(world.system.sys.join("class/block").join(name), devices.join(name)).unwrap();
        }
        let source = world.system.sys.join("class/block/loop7");
        world.system.mounts = format!("361 1 0:43 / / rw - btrfs {} rw\n", source.display());
        let found = world.holders("0:43").unwrap();
        let names: Vec<&str> = found.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!((names, found.begins_at), (vec!["loop7", "vda"], None));
    }
}
