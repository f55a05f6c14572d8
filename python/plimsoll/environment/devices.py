"""Which devices stand under a path, as far as sysfs tells: partitions, loops, stacked devices, btrfs, network mounts.

The constraint: the read-ahead of a buffered read is decided by the *topmost* device (md0, dm-0, loop0, the network
mount), not by the disks under it; only a loop that reads its backing file through the page cache passes it on.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.environment import kernel_files

# File systems that are memory themselves: nothing of them is cold, and nothing outlives the machine.
IN_MEMORY = ("tmpfs", "ramfs")
_SYS = Path("/sys")
_OPTIONS = {
    os.ST_NOATIME: "noatime",
    os.ST_NODIRATIME: "nodiratime",
    os.ST_RELATIME: "relatime",
    os.ST_SYNCHRONOUS: "sync",
}


@dataclass(frozen=True)
class Mount:
    source: str
    point: str
    fs: str
    options: list[str]
    root: str  # what of the file system is mounted: "/" or, with bind mounts and subvolumes, a folder
    number: str  # major:minor

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source, "point": self.point, "fs": self.fs, "options": self.options, "root": self.root}


@dataclass(frozen=True)
class Device:
    name: str  # vda, md0, loop0, or the bdi's number for network mounts
    read_ahead: Path | None
    decides: bool  # its read-ahead is the one that counts for the path
    under: list[Device] = field(default_factory=list)

    def walk(self) -> list[Device]:
        return [self, *(below for device in self.under for below in device.walk())]


def unescape(text: str) -> str:
    """A path as the kernel writes it in /proc/self/mountinfo and /proc/swaps."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def mounts(mountinfo: str | None = None) -> list[Mount]:
    """All mounts of this process, in mount order."""
    listed = []
    for line in (mountinfo if mountinfo is not None else Path("/proc/self/mountinfo").read_text()).splitlines():
        left, _, right = line.partition(" - ")
        fields, (fs, source, super_options) = left.split(), right.split(" ", 2)
        options = list(dict.fromkeys([*fields[5].split(","), *super_options.split(",")]))
        listed.append(Mount(unescape(source), unescape(fields[4]), fs, options, unescape(fields[3]), fields[2]))
    return listed


def existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path.resolve()


def mount_of(path: Path) -> Mount:
    """The mount that holds the path. The last of the longest matching points: later mounts cover earlier ones."""
    place = existing(path)
    best: Mount | None = None
    for mount in mounts():
        point = Path(mount.point)
        if (place == point or point in place.parents) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is None:
        best = _unlisted(place)
    if best is None:
        # A chroot, then; from outside a mount can be given to its root.
        remedy = "outside of this chroot: mount --bind ITS-FOLDER ITS-FOLDER"
        raise FileNotFoundError(errno.ENOENT, f"/proc/self/mountinfo lists no mount that holds it; {remedy}", str(path))
    return best


def _unlisted(place: Path) -> Mount | None:
    """Where the root is that of a chroot and no mount point, mountinfo lists nothing for it: what sysfs and statvfs(3)
    tell. None of file systems that are on no single block device."""
    number = os.stat(place).st_dev  # noqa: PTH116
    key = f"{os.major(number)}:{os.minor(number)}"
    block = _SYS / "dev/block" / key
    if not block.exists():
        return None
    name = block.resolve().name
    kinds = [entry.parent.name for entry in (_SYS / "fs").glob(f"*/{name}")]
    flags = os.statvfs(place).f_flag
    options = ["ro" if flags & os.ST_RDONLY else "rw", *(text for flag, text in _OPTIONS.items() if flags & flag)]
    return Mount(f"/dev/{name}", "/", kinds[0], options, "/", key) if kinds else None


def devices_of(path: Path) -> list[Device]:
    """The topmost device or devices (btrfs may have several) of the file system that holds the path."""
    mount = mount_of(path)
    number = os.stat(existing(path)).st_dev  # noqa: PTH116
    key = f"{os.major(number)}:{os.minor(number)}"
    block = _SYS / "dev/block" / key
    if block.exists():
        return [_device(_disk(block.resolve()), True)]
    if mount.fs == "btrfs":
        source = _named(mount.source).name
        for folder in (_SYS / "fs/btrfs").glob("*/devices"):
            members = [entry.resolve() for entry in folder.iterdir()]
            if any(member.name == source for member in members):
                # btrfs has a read-ahead of its own; the one that sysfs shows under bdi, beside its disks'.
                own = folder.parent / "bdi/read_ahead_kb"
                disks = [_device(_disk(member), not own.exists()) for member in members]
                return [Device(f"btrfs-{folder.parent.name}", own, True, disks)] if own.exists() else disks
    if mount.source.startswith("/dev/"):
        named = _named(mount.source)
        if named.exists():
            return [_device(_disk(named.resolve()), True)]
    bdi = _SYS / "class/bdi" / key / "read_ahead_kb"
    return [Device(key, bdi, True)] if bdi.exists() else []


def diskseq(folder: Path) -> int | None:
    """The number of the disk whose files in sysfs lie in the folder: never given twice in a boot, while names are.

    None where there is no disk any more, or the kernel has none (before Linux 5.15).
    """
    return kernel_files.read_int(folder.parent / "diskseq") if folder.name == "queue" else None


def _named(source: str) -> Path:
    """What a mount's source is in sysfs, by its number: without udev the node of a mapped device has another name."""
    with suppress(OSError):
        found = os.stat(source)  # noqa: PTH116
        block = _SYS / "dev/block" / f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        if stat.S_ISBLK(found.st_mode) and block.exists():
            return block.resolve()
    return _SYS / "class/block" / Path(os.path.realpath(source)).name


def _disk(block: Path) -> Path:
    """A partition's disk: queue settings belong to the whole disk."""
    return block.parent if (block / "partition").exists() else block


def _device(block: Path, decides: bool) -> Device:
    read_ahead = block / "queue/read_ahead_kb"
    under = []
    backing = kernel_files.read(block / "loop/backing_file")
    if backing and Path(backing).exists():
        through_cache = kernel_files.read(block / "loop/dio") != "1"
        for below in devices_of(Path(backing)):
            under.append(Device(below.name, below.read_ahead, decides and through_cache and below.decides, below.under))
    slaves = block / "slaves"
    for slave in sorted(slaves.iterdir()) if slaves.is_dir() else []:
        under.append(_device(_disk(slave.resolve()), False))
    return Device(block.name, read_ahead if read_ahead.exists() else None, decides, under)


def described_block(path: Path) -> dict[str, Any] | None:
    """The same of a block device by its path; of a partition what its disk has. None of anything else."""
    named = _SYS / "class/block" / Path(os.path.realpath(path)).name
    if not named.exists():
        return None
    block = named.resolve()
    found = describe(_device(_disk(block), True))
    return found | {"path": str(path), "size_sectors": kernel_files.read_int(block / "size")}


def describe(device: Device) -> dict[str, Any]:
    """What of a device decides performance or durability; absent attributes are left out."""
    block = _SYS / "block" / device.name
    described: dict[str, Any] = {"name": device.name, "decides_read_ahead": device.decides}
    texts = {"model": "device/model", "write_cache": "queue/write_cache", "raid_level": "md/level"}
    numbers = {
        "rotational": "queue/rotational",
        "nr_requests": "queue/nr_requests",
        "logical_block_bytes": "queue/logical_block_size",
        "physical_block_bytes": "queue/physical_block_size",
        "max_sectors_kib": "queue/max_sectors_kb",
        "fua": "queue/fua",
        "wbt_lat_usec": "queue/wbt_lat_usec",
        "size_sectors": "size",
        "loop_direct_io": "loop/dio",
        "chunk_bytes": "md/chunk_size",
    }
    described |= {name: text for name, file in texts.items() if (text := kernel_files.read(block / file))}
    described |= {name: n for name, file in numbers.items() if (n := kernel_files.read_int(block / file)) is not None}
    if scheduler := kernel_files.read(block / "queue/scheduler"):
        described["scheduler"] = kernel_files.selected(scheduler)
    if device.read_ahead is not None and (read_ahead := kernel_files.read_int(device.read_ahead)) is not None:
        described["read_ahead_kib"] = read_ahead
    if device.under:
        described["under"] = [describe(below) for below in device.under]
    return described
