"""Options of mkfs and mount by which a file system would reach for a device or a file beside its own.

The fact that constrains it: what a place takes is looked at before it is taken, by its `devices`, `image` and `log`. An
option that names another device, or a file of this machine, would go around that, so there is none.
"""

from __future__ import annotations

import getopt
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from plimsoll.experiment.places.layers import EXT

# The options of each mkfs, as getopt(3) has them; those of other file systems are not known.
_LONG_OF_BTRFS: Final = (
    "alloc-start=", "byte-count=", "checksum=", "csum=", "compress=", "data=", "device-uuid=", "features=", "force",
    "help", "inode-flags=", "label=", "leafsize=", "metadata=", "mixed", "nodesize=", "nodiscard", "quiet", "reflink",
    "rootdir=", "runtime-features=", "sectorsize=", "shrink", "subvol=", "uuid=", "verbose", "version",
)  # fmt: skip
_KNOWN: Final[dict[str, tuple[str, Sequence[str]]]] = {
    **dict.fromkeys(EXT, ("b:ce:g:i:jl:m:no:qr:s:t:d:vC:DE:FG:I:J:KL:M:N:O:R:ST:U:Vz:", ())),
    "xfs": ("b:c:d:i:l:L:m:n:KNp:P:qr:s:CfV", ()),
    "btrfs": ("A:b:fhl:n:s:m:d:L:R:O:r:u:U:VvMKq", _LONG_OF_BTRFS),
}
# Those that name a file or a folder: of bad blocks, of what is copied in, of settings, to undo it by.
_OF_FILES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(EXT, ("-d", "-l", "-z")),
    "xfs": ("-c", "-p", "-P", "-r"),
    "btrfs": ("-r", "--rootdir", "-u", "--subvol"),
}
_A_DEVICE: Final = re.compile(r"(^|,)\s*(device|logdev|rtdev|logfile|rtname|name|file)\s*(=|,|$)")
MOUNT_OPTIONS: Final = (
    "logdev", "rtdev", "device", "journal_path", "journal_dev", "loop", "bind", "rbind", "move", "remount", "offset",
    "sizelimit", "encryption",
)  # fmt: skip


def check_mkfs(fs: str, options: list[str]) -> None:
    """Raises ValueError with what is allowed."""
    for option, value in _read(fs, options):
        if option in _OF_FILES.get(fs, ()) or _A_DEVICE.search(value) or "/" in value:
            given = " ".join(filter(None, (option, value)))
            raise ValueError(
                f"mkfs.options: {given!r} names a device or a file beside the place's own; allowed: leave it out (a "
                "journal on another device: log = the name of a place)"
            )


def _read(fs: str, options: list[str]) -> Iterator[tuple[str, str]]:
    """Option by option, each with its value."""
    if fs not in _KNOWN:
        yield from (("", one) for one in options)
        return
    try:
        found, rest = getopt.getopt(options, *_KNOWN[fs])
    except getopt.GetoptError as error:
        raise ValueError(f"mkfs.options: {error.msg}, says the mkfs of {fs}; allowed: its options") from None
    if rest:
        raise ValueError(f"mkfs.options: {rest[0]!r} would be taken for a device; allowed: options and their values")
    yield from found


def check_mount(options: Iterable[str]) -> None:
    """The same of mount options."""
    if wrong := [name for name in options if name in MOUNT_OPTIONS]:
        raise ValueError(
            f"mount.{wrong[0]}: a place is mounted from its own devices, as it is made; allowed: leave it out (a log "
            "on another device: log = the name of a place)"
        )
