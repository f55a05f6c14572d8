"""The page cache of a file or a tree: how much is resident, make it cold, make it warm.

The constraint: cached pages stay charged to whoever brought them, and something else on the machine
may evict them. So a cold start is not believed but measured, and residency is measured before and after each trial.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.environment.fault import Fault

if TYPE_CHECKING:
    import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_CACHESTAT = 451  # the same number on every architecture
PAGE_BYTES = _PAGE = os.sysconf("SC_PAGE_SIZE")
_WINDOW = 1 << 30  # of a file mapped at a time
_EVICTION_TRIES = 8


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Cachestat(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted"))


@dataclass(frozen=True)
class Residency:
    resident_bytes: int
    total_bytes: int

    @property
    def fraction(self) -> float | None:
        return self.resident_bytes / self.total_bytes if self.total_bytes else None

    def as_json(self) -> dict[str, int]:
        """As trial.json has it."""
        return {"resident_bytes": self.resident_bytes, "total_bytes": self.total_bytes}


def files_of(path: Path) -> Iterator[Path]:
    """Regular files of a tree, or the file itself. Symbolic links are not followed: what they name is not ours."""
    if path.is_symlink():
        return
    if path.is_file():
        yield path
        return
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder, name)
            if not file.is_symlink() and file.is_file():
                yield file


def cachestat_works() -> bool:
    descriptor = os.memfd_create("plimsoll")
    try:
        return _cachestat(descriptor) is not None
    finally:
        os.close(descriptor)


def _cachestat(descriptor: int) -> int | None:
    """Resident bytes by cachestat(2), kernel 6.5 and later; None where it cannot be used."""
    whole, counts = _Range(0, 0), _Cachestat()
    if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0) == 0:
        return int(counts.cache) * _PAGE
    if (number := ctypes.get_errno()) in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP):
        return None
    raise OSError(number, os.strerror(number))


@dataclass(frozen=True)
class PageMap:
    """Which pages of a file are resident: `resident` has one bool a page, the last one may be cut by the file's end."""

    size_bytes: int
    resident: np.ndarray

    @property
    def resident_bytes(self) -> int:
        return min(int(self.resident.sum()) * _PAGE, self.size_bytes)


def page_map(file: Path) -> PageMap:
    """The resident pages of a file, of the size it has when it is opened. Reads nothing of it and marks nothing used.

    The kernel tells this only of files that the caller owns or may write; of others it calls every page resident.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        return PageMap(size, _resident_pages(descriptor, size))
    finally:
        os.close(descriptor)


def _resident_pages(descriptor: int, size: int) -> np.ndarray:
    """By mincore(2), which maps the file without touching it; pages that a shrinking file has lost are not resident."""
    import numpy as np

    seen = np.zeros(-(-size // _PAGE), np.uint8)
    for start in range(0, size, _WINDOW):
        length = min(_WINDOW, size - start)
        try:
            # A private writable mapping, because ctypes takes the address of nothing else.
            window = mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE, offset=start)
        except ValueError:  # mmap refuses a length beyond the end: the file has been cut meanwhile
            length = min(length, os.fstat(descriptor).st_size - start)
            if length <= 0:
                break
            window = mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE, offset=start)
        with window:
            first = ctypes.c_char.from_buffer(window)
            out = ctypes.c_void_p(seen.ctypes.data + start // _PAGE)
            try:
                if _libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(length), out) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            finally:
                del first
    return (seen & 1).astype(bool)


def _mincore(descriptor: int, size: int) -> int:
    """Resident bytes by mincore(2), for kernels before cachestat."""
    return int(_resident_pages(descriptor, size).sum()) * _PAGE


def resident_bytes(file: Path, *, by: str | None = None) -> int:
    """Bytes of one file in the page cache. `by`: "cachestat" or "mincore", None for the best there is."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return 0
        resident = _cachestat(descriptor) if by != "mincore" else None
        if resident is None:
            if by == "cachestat":
                raise Fault("cachestat(2): this kernel does not have it", remedy="use mincore")
            resident = _mincore(descriptor, size)
        return min(resident, size)
    finally:
        os.close(descriptor)


def residency(*paths: Path, by: str | None = None) -> Residency:
    """Of one or several trees. A file that vanishes meanwhile (a server at work) is left out."""
    resident = total = 0
    for path in paths:
        for file in files_of(path):
            try:
                size = file.stat().st_size
                resident += resident_bytes(file, by=by)
            except FileNotFoundError:
                continue
            total += size
    return Residency(resident, total)


def evict(*paths: Path) -> Residency:
    """Write back and drop what is cached of the trees; raises if anything stays, naming it. Returns what was found."""
    files = [file for path in paths for file in files_of(path)]
    before = sum(_drop(file) for file in files)
    stayed: dict[Path, int] = {}
    for attempt in range(_EVICTION_TRIES):
        stayed = {file: count for file in files if (count := resident_bytes(file))}
        if not stayed:
            return Residency(before, sum(file.stat().st_size for file in files))
        # Pages just read or written sit in per-CPU lists for a moment and cannot be dropped from there.
        time.sleep(0.01 * 2**attempt)
        for file in stayed:
            _drop(file)
    worst = sorted(stayed.items(), key=lambda item: -item[1])[:3]
    named = ", ".join(f"{file} ({count} bytes)" for file, count in worst)
    raise Fault(
        f"{len(stayed)} files stay in the page cache: {named}",
        remedy=f"a process has them mapped or locked: `fuser -v {worst[0][0]}` names it; stop it and try again",
    )


def _drop(file: Path) -> int:
    """Returns what was resident before."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        resident = _cachestat(descriptor) if size else 0
        before = _mincore(descriptor, size) if resident is None else resident
        if before:
            os.fsync(descriptor)  # dirty pages would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return min(before, size)
    finally:
        os.close(descriptor)


def warm(*paths: Path, progress: Callable[[int, int], None] | None = None) -> int:
    """Read the trees through the page cache, charged to the calling process's group. Returns bytes read."""
    files = [(file, file.stat().st_size) for path in paths for file in files_of(path)]
    total, done = sum(size for _, size in files), 0
    buffer = memoryview(bytearray(4 << 20))
    for file, _ in files:
        with file.open("rb", buffering=0) as source:
            while count := source.readinto(buffer):
                done += count
                if progress is not None:
                    progress(done, total)
    return done


def unexplained_loss(
    before: Residency, after: Residency, *, reclaimed_bytes: int, dropped_bytes: int = 0, tolerance: float = 0.01
) -> int:
    """Bytes that left the page cache between two readings without anything known taking them; 0 if within tolerance.

    `reclaimed_bytes`: what memory pressure took (pgsteal_file of the host or the group); `dropped_bytes`: what we
    evicted or deleted. A DAMON scheme or another tool that pages out shows here, since it counts as neither.
    """
    lost = before.resident_bytes - after.resident_bytes - max(reclaimed_bytes, 0) - max(dropped_bytes, 0)
    return lost if lost > tolerance * before.resident_bytes else 0


def free_bytes(path: Path) -> int:
    """Free for an ordinary user on the file system of the path: root's reserve is not for experiments."""
    return shutil.disk_usage(path).free
