"""What may be asked of each file system that Plimsoll knows; of others only what their own mkfs and mount take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.experiment.places.devices_named import check_mkfs, check_mount
from plimsoll.experiment.places.layers import EXT, Mkfs

KNOWN: Final = (*EXT, "xfs", "btrfs")  # those that are told which UUID to take, by which they are known again
_ABLE: Final = {
    "block_size": KNOWN,
    "stride": (*EXT, "xfs"),
    "stripe_width": (*EXT, "xfs"),
    "journal_size": ("ext3", "ext4", "xfs"),
    "discard": KNOWN,
}
_LOGS: Final = ("ext3", "ext4", "xfs")


def check(fs: str, mkfs: Mkfs, *, log: str | None, devices: Iterable[str], mount: Mapping[str, object]) -> None:
    """Raises ValueError with what is allowed."""
    for key, able in _ABLE.items():
        if getattr(mkfs, key) not in (None, False) and fs not in able:
            raise ValueError(f"mkfs.{key}: {fs} has none; allowed: leave it out, or file_system {_either(able)}")
    if mkfs.journal == "none" and fs != "ext4":
        raise ValueError(f'mkfs.journal = "none": {fs} cannot be made so; allowed: of ext4 alone (ext2 has no journal)')
    if log is not None and fs not in _LOGS:
        raise ValueError(
            f"log: {fs} keeps none on another device; allowed: leave it out, or file_system {_either(_LOGS)}"
        )
    if log is not None and mkfs.journal == "none":
        raise ValueError('log: mkfs.journal is "none"; allowed: one of the two')
    if devices and fs not in (*KNOWN, "none"):
        raise ValueError(
            f'file_system = "{fs}" on a device of yours, where a file system has to take a UUID that is given; '
            f"allowed: {_either(KNOWN)}, or an image"
        )
    if fs == "none" and (mount or mkfs != Mkfs()):
        raise ValueError('mount, mkfs: of a file system, and file_system is "none"; allowed: leave them out')
    check_mkfs(fs, mkfs.options)
    check_mount(mount)
    if fs != "btrfs" and {"nodatacow", "datacow"} & mount.keys():
        raise ValueError(f"mount.nodatacow: {fs} overwrites in place anyway; allowed: of btrfs alone")


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
