"""A swap file of a given size on the state folder's file system. 0 is a level: no swap of ours.

The constraint: swap is machine-wide. A group's own limit decides how much of it the server may use, and swap that was
there before stays and is reported; a swap file that is on must never be unlinked, for then it can no longer be named.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plimsoll.environment.devices import mount_of, unescape
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site
from plimsoll.environment.state import StateDir

_libc = ctypes.CDLL(None, use_errno=True)
_CAN_SWAP = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"}
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SMALLEST = 10 * _PAGE  # mkswap refuses less
_OF_A_TRIAL = re.compile(r"/work/[0-9a-f]{8}-\d{4,}\.swap$")  # by `SwapFile` below, for a trial's run_id
_GET_FLAGS, _SET_FLAGS, _NO_COW = 0x80086601, 0x40086602, 0x00800000
_ZEROS = bytes(4 << 20)


@dataclass(frozen=True)
class SwapArea:
    path: str
    size_bytes: int
    used_bytes: int
    priority: int


def areas() -> list[SwapArea]:
    """All swap that is on, whoever made it."""
    listed = []
    for line in Path("/proc/swaps").read_text().splitlines()[1:]:
        name, _, size, used, priority = line.split()
        name = unescape(name).removesuffix(" (deleted)")
        listed.append(SwapArea(name, int(size) * 1024, int(used) * 1024, int(priority)))
    return listed


def of_the_machine() -> list[SwapArea]:
    """All but what a trial has on for its own time, of another run too: that is no property of the machine."""
    return [area for area in areas() if not _OF_A_TRIAL.search(area.path)]


def _is(area: SwapArea, path: Path) -> bool:
    """The kernel names a swap file without symbolic links, however it was reached."""
    return area.path == os.path.realpath(path)


def _mkswap() -> str | None:
    return shutil.which("mkswap", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class SwapFile:
    name = "swap"

    def __init__(self, state: StateDir, run_id: str) -> None:
        self._state = state
        self.path = state.work / f"{run_id}.swap"

    def available(self) -> Availability:
        if os.geteuid() != 0:
            return Availability(False, "swap can only be set by root", "run as root")
        if _mkswap() is None:
            return Availability(False, "mkswap is not installed", "install util-linux")
        fs = mount_of(self.path).fs
        if fs not in _CAN_SWAP:
            remedy = "set PLIMSOLL_STATE to a folder on ext4, xfs or btrfs"
            return Availability(False, f"{self._state.root}: {fs} cannot hold a swap file", remedy)
        return AVAILABLE

    def others(self) -> list[SwapArea]:
        return [area for area in areas() if not _is(area, self.path)]

    def show(self) -> dict[str, object]:
        ours = [area.size_bytes for area in areas() if _is(area, self.path)]
        return {"bytes": sum(ours), "others": [vars(area) for area in self.others()]}

    def set(self, value: int, journal: Journal) -> Entry | None:
        """`value` bytes of swap file, rounded up to pages; 0 makes none."""
        if value == 0:
            return None
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        if self.path.exists():
            raise Fault(f"{self.path}: exists already", remedy="run `plimsoll undo`, or put the one set before back")
        if value < _SMALLEST:
            raise Fault(f"swap of {value} bytes: too small", remedy=f"use 0 or at least {_SMALLEST}")
        size = -(-value // _PAGE) * _PAGE + _PAGE  # the first page holds the header
        free = shutil.disk_usage(self._state.root).free
        if size > free:
            raise Fault(f"{self.path}: {size} bytes needed, {free} free", remedy="free disk space, or use less swap")
        return journal.change("swap", lambda: self._make(size), path=str(self.path))

    def _make(self, size: int) -> None:
        _allocate(self.path, size, zeros=False)
        step("after swap file")
        _format(self.path)
        if not _swap_on(self.path):
            # Some file systems give holes where they promised blocks. Written zeros are always blocks.
            self.path.unlink()
            _allocate(self.path, size, zeros=True)
            _format(self.path)
            if not _swap_on(self.path):
                fs = mount_of(self.path).fs
                remedy = "set PLIMSOLL_STATE to a folder on ext4 or xfs without compression or snapshots"
                raise Fault(f"{self.path}: the kernel refuses it as swap on {fs}", remedy=remedy)


class Swap(KnobOfParts[int]):
    name = "swap"
    keys = ("environment.swap",)
    why_shared = ""  # each brings a file of its own, and its group's limit says how much it may use

    def wanted(self, site: Site) -> Iterator[tuple[str, SwapFile, int]]:
        wanted = site.settings.environment.swap
        if isinstance(wanted, int) and wanted:
            yield self.keys[0], SwapFile(site.state, site.name), wanted

    def obstacles(self, site: Site) -> Iterator[str]:
        yield from super().obstacles(site)
        for key, _, wanted in self.wanted(site):
            if wanted < _SMALLEST:
                yield f"{key} = {wanted} bytes is too small; use 0 or at least {_SMALLEST}"


KNOB = Swap()


def _allocate(path: Path, size: int, *, zeros: bool) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # btrfs: a swap file must not be copied on write, and that can only be said of an empty file.
        flags = bytearray(8)
        try:
            fcntl.ioctl(descriptor, _GET_FLAGS, flags)
            if mount_of(path).fs == "btrfs":
                fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", struct.unpack("l", flags)[0] | _NO_COW))
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL):
                raise
        if not zeros:
            try:
                os.posix_fallocate(descriptor, 0, size)
                return
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
        for start in range(0, size, len(_ZEROS)):
            os.pwrite(descriptor, _ZEROS[: size - start], start)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _format(path: Path) -> None:
    done = subprocess.run([str(_mkswap()), "-q", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Fault(f"{path}: mkswap failed: {done.stderr.strip()}", remedy="see `plimsoll doctor`")


def _swap_on(path: Path) -> bool:
    if _libc.swapon(os.fsencode(path), 0) == 0:
        return True
    number = ctypes.get_errno()
    if number == errno.EINVAL:
        return False
    raise Fault(f"{path}: swapon: {os.strerror(number)}", remedy="run as root, outside a container")


@puts_back("swap", survives_reboot=True)
def _put_back(args: Args) -> str:
    path = Path(args["path"])
    # Always asked for, whatever /proc/swaps calls it: EINVAL says that it is not on.
    number = 0 if _libc.swapoff(os.fsencode(path)) == 0 else ctypes.get_errno()
    is_off = number in (0, errno.EINVAL, errno.ENOENT, errno.ENOTDIR)
    may_not_ask = number == errno.EPERM and not any(_is(area, path) for area in areas())
    if not is_off and not may_not_ask:
        remedy = "stop what uses the memory, then run `plimsoll undo`"
        raise Fault(f"{path}: swapoff: {os.strerror(number)}", remedy=remedy)
    step("after swapoff")
    path.unlink(missing_ok=True)
    return f"{path} off and removed"
