"""Copy a data set for a trial without leaving a page of either copy in the page cache.

The constraint: a buffered copy leaves both trees cached and charged to us, and the target would then read
them for free whatever its limit. So both sides are read and written around the page cache, and zero residency is
verified at the end. Where the file system shares blocks (reflink), nothing is copied at all. The tree may be of a
server, whose user may put a symbolic link in any file's place: none is followed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import queue
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.memory import page_cache

_libc = ctypes.CDLL(None, use_errno=True)
_FICLONE = 0x40049409
_ALIGNMENT = 4096
_BUFFER = 4 << 20
_PIECE = 64 << 20  # of a file that one thread copies
_THREADS = 3
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.ENOSYS, errno.EPERM, errno.ETXTBSY)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Cloned:
    files: int
    bytes: int
    seconds: float
    method: str  # "reflink", "direct" or "buffered": the least of what was needed


@dataclass
class _Work:
    files: list[tuple[Path, Path, os.stat_result]] = field(default_factory=list)
    folders: list[tuple[Path, os.stat_result]] = field(default_factory=list)


def clone_tree(
    source: Path,
    target: Path,
    *,
    uid: int = -1,
    gid: int = -1,
    progress: Progress | None = None,
    reflink: bool = True,
) -> Cloned:
    """Copy a tree; modes are kept, the owner is given. `target` must not exist, or be an empty folder.

    `progress(done_bytes, total_bytes)` is called from the calling thread. `reflink=False` forces real copies: shared
    blocks are copied at the first write, which a study of writes may not want in its figures.
    """
    started = time.monotonic()
    if source.is_symlink() or not source.is_dir():
        raise Fault(f"{source}: is not a folder", remedy="build the data set first")
    if target.exists() and any(target.iterdir()):
        raise Fault(f"{target}: is not empty", remedy="run `plimsoll undo`, or remove it if you know what it is")
    target.mkdir(exist_ok=True)
    work = _walk(source, target)
    total = sum(status.st_size for _, _, status in work.files)
    for _, to, status in work.files:
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchown(descriptor, uid, gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        finally:
            os.close(descriptor)
    method = "reflink" if reflink and _reflink_all(work) else ""
    if not method:
        free = page_cache.free_bytes(target)
        if total > free:
            raise Fault(f"{target}: {total} bytes needed, {free} free", remedy="free disk space, or use a smaller size")
        method = _copy_all(work, total, progress)
    elif progress is not None:
        progress(total, total)
    for folder, status in reversed(work.folders):
        os.chown(folder, uid, gid)
        folder.chmod(stat.S_IMODE(status.st_mode))
    _sync_file_system(target)
    page_cache.evict(source, target)
    return Cloned(len(work.files), total, time.monotonic() - started, method)


def _walk(source: Path, target: Path) -> _Work:
    """Make the folders and list the files. Links that lead out are refused: two servers would share what they name."""
    work = _Work()
    for place, folders, names in os.walk(source):
        here = Path(place)
        there = target / here.relative_to(source)
        there.mkdir(exist_ok=True)
        work.folders.append((there, here.stat()))
        for name in [*folders, *sorted(names)]:
            path = here / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                leads = path.readlink()
                if leads.is_absolute() or source.resolve() not in path.resolve().parents:
                    raise Fault(f"{path}: a symbolic link out of the tree, to {leads}", remedy="build it without links")
                (there / name).symlink_to(leads)
            elif stat.S_ISREG(mode):
                work.files.append((path, there / name, path.stat()))
            elif not stat.S_ISDIR(mode):
                raise Fault(f"{path}: neither a regular file nor a folder", remedy="stop the server that made it")
    return work


def _reflink_all(work: _Work) -> bool:
    """Share every file's blocks; false, with nothing shared, where the file system cannot."""
    for number, (origin, to, _) in enumerate(work.files):
        with _opened(origin, os.O_RDONLY) as reader, _opened(to, os.O_RDWR) as writer:
            try:
                fcntl.ioctl(writer, _FICLONE, reader)
            except OSError as error:
                if error.errno in _REFUSED and number == 0:
                    return False
                raise Fault(f"{to}: {error.strerror} while sharing blocks", remedy="clone with reflink off") from error
    return bool(work.files)


def _copy_all(work: _Work, total: int, progress: Progress | None) -> str:
    """Several threads, each with its own aligned buffer; returns the method of the worst file."""
    pieces: queue.SimpleQueue[tuple[Path, Path, int, int]] = queue.SimpleQueue()
    # Big files first, so that the end is not one thread alone with a gigabyte.
    for origin, to, status in sorted(work.files, key=lambda item: -item[2].st_size):
        for start in range(0, status.st_size, _PIECE):
            pieces.put((origin, to, start, status.st_size))
    counters = [0] * _THREADS
    buffered: set[Path] = set()
    stop = threading.Event()

    def copy(number: int) -> None:
        with mmap.mmap(-1, _BUFFER) as buffer, memoryview(buffer) as view:
            while not stop.is_set():
                try:
                    origin, to, start, size = pieces.get_nowait()
                except queue.Empty:
                    return

                def count(copied: int) -> None:
                    counters[number] += copied
                    if stop.is_set():
                        raise InterruptedError

                if not _copy_piece(origin, to, start, size, view, count):
                    buffered.add(to)

    with ThreadPoolExecutor(_THREADS, "clone") as pool:
        running = [pool.submit(copy, number) for number in range(_THREADS)]
        try:
            while not all(future.done() for future in running):
                time.sleep(0.02)
                if any(future.done() and future.exception() for future in running):
                    break
                if progress is not None:
                    progress(min(sum(counters), total), total)
        finally:
            stop.set()  # nothing is left to do, or one of them failed, or we were interrupted
    for future in running:
        trouble = future.exception()
        if trouble is not None and not isinstance(trouble, InterruptedError):
            what = str(trouble)
            if isinstance(trouble, OSError):
                what = f"{trouble.filename or work.folders[0][0]}: {trouble.strerror}"
            raise Fault(f"cloning stopped: {what}", remedy="check that file system, then start again") from trouble
    if progress is not None:
        progress(total, total)
    return "buffered" if buffered else "direct"


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | _FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path, flags: int) -> tuple[int, bool]:
    """A descriptor, with O_DIRECT where the file system takes it."""
    try:
        return os.open(path, flags | os.O_DIRECT | _FLAGS), True
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, flags | _FLAGS), False


def _copy_piece(origin: Path, to: Path, start: int, size: int, view: memoryview, count: Callable[[int], None]) -> bool:
    """Copy one piece of a file; true if it went around the page cache on both sides."""
    reader, read_direct = _open(origin, os.O_RDONLY)
    try:
        writer, write_direct = _open(to, os.O_WRONLY)
        try:
            end = min(start + _PIECE, size)
            if start == 0 and size > _BUFFER:
                # One allocation for the whole file, else the threads' pieces lie interleaved on the disk.
                with contextlib.suppress(OSError):
                    os.posix_fallocate(writer, 0, size)
            place = start
            while place < end:
                length = min(_BUFFER, end - place)
                length_read = os.preadv(reader, [view[: _rounded(length)]], place)
                length_read = min(length_read, length)
                if length_read == 0:
                    raise OSError(errno.EIO, "became shorter while it was copied", str(origin))
                # A direct write takes whole blocks only; what the last one holds too much is cut off below.
                _write_whole(writer, view[: _rounded(length_read) if write_direct else length_read], place)
                place += length_read
                count(length_read)
            if end == size:
                os.ftruncate(writer, size)
            if not (read_direct and write_direct):
                os.fsync(writer)
        finally:
            os.close(writer)
        return read_direct and write_direct
    finally:
        os.close(reader)


def _rounded(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _write_whole(writer: int, data: memoryview, place: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(writer, data[written:], place + written)


def _sync_file_system(path: Path) -> None:
    """One flush for the whole tree; an fsync for each of a thousand small files takes seconds."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise Fault(f"{path}: could not be written to disk: {os.strerror(number)}", remedy="check the disk")
    finally:
        os.close(descriptor)
