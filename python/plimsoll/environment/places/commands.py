"""The arguments that each layer is made with, as a function of the place alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.environment.places.machine import DEVICE

if TYPE_CHECKING:
    from plimsoll.experiment.places import Place

EXT = ("ext2", "ext3", "ext4")
_SECTOR = 512
VOLUME = "volume"


def loop(image: Path, sector_bytes: int = _SECTOR) -> list[str]:
    """Direct I/O: else the image's own page cache is a second one, without limit."""
    wide = [f"--sector-size={sector_bytes}"] if sector_bytes > _SECTOR else []
    return ["losetup", "--find", "--show", "--direct-io=on", *wide, str(image)]


def array(place: Place, node: str, members: Sequence[str], uuid: str) -> list[str]:
    """The array over its members."""
    raid = place.raid
    argv = [
        "mdadm",
        "--create",
        node,
        "--run",
        "--metadata=1.2",
        f"--level={raid.level}",
        f"--raid-devices={len(members)}",
    ]
    argv += [f"--uuid={_of_mdadm(uuid)}"]
    if raid.chunk is not None:
        argv.append(f"--chunk={int(raid.chunk) // 1024}")
    if raid.level != 0:
        argv.append(f"--bitmap={raid.bitmap}")
        argv += ["--assume-clean"] if raid.assume_clean else []
    return [*argv, *members]


def _of_mdadm(uuid: str) -> str:
    digits = uuid.replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def _lvm(verb: str, members: Sequence[str], *more: str) -> list[str]:
    """LVM that sees these devices alone, keeps no copy of what it changes, and starts no program of its own."""
    seen = ",".join(f'"a|^{member}$|"' for member in members)
    config = (
        f'devices {{ use_devicesfile=0 scan_lvs=0 filter=[{seen},"r|.*|"] global_filter=[{seen},"r|.*|"] }} '
        "backup { backup=0 archive=0 } activation { monitoring=0 } global { event_activation=0 use_lvmpolld=0 }"
    )
    return ["lvm", verb, "--config", config, *more]


def volume_group(group: str, members: Sequence[str]) -> list[str]:
    """The volume group over its members."""
    return _lvm("vgcreate", members, "--yes", group, *members)


def volume(place: Place, group: str, members: Sequence[str]) -> list[str]:
    """The one volume over all of the group; no question is asked about what may lie on it."""
    striped = place.volume.kind == "striped"
    stripes = ["--stripes", str(len(members))] if striped else []
    if striped and place.volume.stripe is not None:
        stripes += ["--stripesize", f"{int(place.volume.stripe) // 1024}k"]
    plain = ["--yes", "--wipesignatures", "n", "--zero", "n", "--name", VOLUME]
    return _lvm("lvcreate", members, *plain, *stripes, "--extents", "100%FREE", group)


def volume_path(group: str) -> str:
    """Where device-mapper has it, whose names have every dash twice."""
    return f"/dev/mapper/{group.replace('-', '--')}-{VOLUME}"


def group_of(member: str, members: Sequence[str]) -> list[str]:
    """What says which group a member is in; nothing where it is in none."""
    return _lvm("pvs", members, "--noheadings", "--options", "vg_name", member)


def remove_group(group: str, members: Sequence[str]) -> list[str]:
    """With its volume."""
    return _lvm("vgremove", members, "--force", "--yes", group)


def remove_member(member: str, members: Sequence[str]) -> list[str]:
    """Of a group that is gone, or was never whole; refused by LVM where the device is in use."""
    return _lvm("pvremove", members, "--yes", "--force", "--force", member)


def mapper_table(place: Place, members: Sequence[tuple[str, int]]) -> str:
    """The table of a device-mapper device over its members, each with its size in bytes."""
    mapper = place.mapper
    lines, start = [], 0
    for device, size_bytes in members:
        sectors = size_bytes // _SECTOR
        what = f"linear {device} 0"
        if mapper.kind == "delay":
            what = f"delay {device} 0 {mapper.read_delay_ms} {device} 0 {mapper.write_delay_ms}"
        elif mapper.kind == "flakey":
            features = "" if mapper.while_down == "error" else f" 1 {mapper.while_down}"
            what = f"flakey {device} 0 {mapper.up_seconds} {mapper.down_seconds}{features}"
        lines.append(f"{start} {sectors} {what}")
        start += sectors
    return "\n".join(lines) + "\n"


def mapped(name: str, uuid: str) -> list[str]:
    """The device-mapper device, whose table is its input."""
    return ["dmsetup", "create", name, "--uuid", f"PLIMSOLL-{uuid}"]


def log_device(place: Place, uuid: str) -> list[str] | None:
    """What makes of a device the journal of another's ext3 or ext4; XFS makes its own."""
    if place.file_system not in EXT:
        return None
    return [
        "mke2fs",
        "-q",
        "-F",
        "-b",
        str(int(place.mkfs.block_size or 4096)),
        "-O",
        "journal_dev",
        "-U",
        uuid,
        DEVICE,
    ]


def mkfs(place: Place, uuid: str, log: str | None, *, pretend: bool = False) -> list[str]:
    """What makes the file system; `pretend`: what tries the arguments on a file and makes nothing, as far as it can."""
    fs = place.file_system
    if fs in EXT:
        argv = _mke2fs(place, uuid, log, pretend=pretend)
    elif fs == "xfs":
        argv = _mkfs_xfs(place, uuid, log, pretend=pretend)
    elif fs == "btrfs":
        argv = ["mkfs.btrfs", "-q", "-U", uuid, *([] if place.mkfs.discard else ["-K"])]
        argv += [] if place.mkfs.block_size is None else ["-s", str(int(place.mkfs.block_size))]
    else:
        argv = [f"mkfs.{fs}"]
    return [*argv, *place.mkfs.options, DEVICE]


def _mke2fs(place: Place, uuid: str, log: str | None, *, pretend: bool) -> list[str]:
    options = place.mkfs
    argv = ["mke2fs", "-q", "-F", "-t", place.file_system, "-U", uuid, *(["-n"] if pretend else [])]
    if log is not None:
        argv += ["-b", str(int(options.block_size or 4096))]  # as the journal's device has it
        argv += [] if pretend else ["-J", f"device={log}"]
    elif options.block_size is not None:
        argv += ["-b", str(int(options.block_size))]
    if options.journal == "none":
        argv += ["-O", "^has_journal"]
    elif options.journal_size is not None:
        argv += ["-J", f"size={int(options.journal_size) >> 20}"]
    # Nothing is left for the kernel to initialise during what is measured.
    extended = ["lazy_itable_init=0", "lazy_journal_init=0", "discard" if options.discard else "nodiscard"]
    extended += [] if options.stride is None else [f"stride={options.stride}"]
    extended += [] if options.stripe_width is None else [f"stripe_width={options.stripe_width}"]
    return [*argv, "-E", ",".join(extended)]


def _mkfs_xfs(place: Place, uuid: str, log: str | None, *, pretend: bool) -> list[str]:
    options = place.mkfs
    argv = ["mkfs.xfs", "-q", "-f", "-m", f"uuid={uuid}", *(["-N"] if pretend else [])]
    argv += [] if options.discard else ["-K"]
    if options.block_size is not None:
        argv += ["-b", f"size={int(options.block_size)}"]
    if options.stride is not None:
        unit = options.stride * int(options.block_size or 4096)
        argv += ["-d", f"su={unit},sw={(options.stripe_width or options.stride) // options.stride}"]
    of_log = [] if options.journal_size is None else [f"size={int(options.journal_size)}"]
    if log is not None and not pretend:
        of_log.append(f"logdev={log}")
    return [*argv, *(["-l", ",".join(of_log)] if of_log else [])]


def mount_options(place: Place, log: str | None = None) -> list[str]:
    """As mount takes them."""
    given = [name if value is True else f"{name}={value}" for name, value in place.mount.items() if value is not False]
    return [*given, *([f"logdev={log}"] if log is not None and place.file_system == "xfs" else [])]


def mount(place: Place, device: str, point: Path, log: str | None) -> list[str]:
    """What mounts it."""
    options = mount_options(place, log)
    return ["mount", "-t", place.file_system, *(["-o", ",".join(options)] if options else []), device, str(point)]
