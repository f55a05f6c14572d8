"""Performs reads, writes and faults of one file and says, from cachestat(2), what each of them must count.

The constraint: only what was resident *before* an access tells a miss from a hit, so every range is looked up just
before it is touched. cachestat counts pages still on their way too, as the definition of a miss does; mincore does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK_PAGES = 2  # of a block of 8 KiB; page_probe checks it against what the probe says
_libc = ctypes.CDLL(None, use_errno=True)
_CACHESTAT, _PUNCH_HOLE = 451, 0x03  # with keep-size


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Found(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted"))


def resident(descriptor: int, first: int = 0, count: int | None = None) -> int:
    """Pages in the page cache, of the whole file or of `count` from `first`."""
    wanted, found = _Range(first * PAGE, 0 if count is None else count * PAGE), _Found()
    if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(wanted), ctypes.byref(found), 0) != 0:
        raise OSError(ctypes.get_errno(), "cachestat")
    return int(found.cache)


def make_file(path: Path, pages: int, extra_bytes: int = 0) -> Path:
    """A file of that size with data in every page, on the device, and cold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(random.Random(pages).randbytes(pages * PAGE + extra_bytes))
    make_cold(path)
    return path


def make_cold(path: Path) -> None:
    """Nothing of it is in the page cache afterwards, or it raises."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for attempt in range(10):
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            if resident(descriptor) == 0:
                return
            time.sleep(0.01 * 2**attempt)
    finally:
        os.close(descriptor)
    raise RuntimeError(f"{path}: stays in the page cache")


class File:
    """One open file, and in `counts` what a probe must have counted of it so far. Nobody else may touch the file."""

    def __init__(
        self, path: Path, *, advice: int = os.POSIX_FADV_NORMAL, flags: int = os.O_RDWR, warm: bool = False
    ) -> None:
        self.fd = os.open(path, flags, 0o644)
        self.counts: Counter[str] = Counter()
        os.posix_fadvise(self.fd, 0, 0, advice)
        self._seen = {page for page in range(self.pages) if self._has(page)}  # asked for, or there from the start
        self._there = len(self._seen)  # resident after the newest access
        self._before: Counter[str] = Counter()
        self._as_it_should = self._there == (self.pages if warm else 0)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        os.close(self.fd)

    @property
    def size(self) -> int:
        return os.fstat(self.fd).st_size

    @property
    def pages(self) -> int:
        return -(-self.size // PAGE)

    def resident(self) -> int:
        return resident(self.fd)

    def known(self, **expected: int) -> None:
        """What arithmetic says of the counts since `introduce`. It holds only where nobody else takes pages (traps.md,
        2: something on the machine may); what the probe has to count is in `counts` either way."""
        if self.counts["evicted_pages"] or not self._as_it_should:
            print("somebody else evicted pages: arithmetic has nothing to say")
            return
        for column, count in expected.items():
            found = self.counts[column] - self._before[column]
            assert count == found, f"{column}: arithmetic says {count}, cachestat {found}"

    def introduce(self) -> None:
        """Reads the last page, so that a probe without a file's name at hand gets to know the file."""
        self.read_page(self.pages - 1)
        self._before = Counter(self.counts)

    def _look(self) -> int:
        """Resident pages before an access. What is missing since the last one was reclaimed: nobody else drops any."""
        now = self.resident()
        self.counts["evicted_pages"] += max(self._there - now, 0)
        self._there = now
        return now

    def _change(self, before: int) -> int:
        """Pages that the access just made brought (below 0: took away)."""
        self._there = self.resident()
        return self._there - before

    def _has(self, page: int) -> bool:
        return resident(self.fd, page, 1) == 1

    # Reading

    def asks(self, offset: int, length: int, perform: Callable[[], Any]) -> Any:
        """One system call that reads `length` bytes from `offset` through the page cache."""
        end = min(offset + length, self.size)
        asked = set(range(offset // PAGE, -(-end // PAGE))) if end > offset else set()
        missed = {page for page in asked if not self._has(page)}
        before = self._look()
        result = perform()
        added = self._change(before)
        if added < len(missed):  # taken again before we looked
            self.counts["evicted_pages"] += len(missed) - added
            added = len(missed)
        self._used(asked - missed)
        self.counts.update(
            read_calls=bool(asked),
            read_pages=len(asked),
            read_blocks=len({page // BLOCK_PAGES for page in asked}),
            read_missed_pages=len(missed),
            read_missed_blocks=len({page // BLOCK_PAGES for page in missed}),
            read_calls_missed=bool(missed),
            readahead_pages=added - len(missed),
            added_pages=added,
        )
        self._seen |= asked
        return result

    def _used(self, present: set[int]) -> None:
        """What was there and never asked for had been brought ahead."""
        self.counts["ahead_used_pages"] += len(present - self._seen)

    def pread(self, length: int, offset: int) -> bytes:
        return self.asks(offset, length, lambda: os.pread(self.fd, length, offset))

    def preadv(self, lengths: Sequence[int], offset: int, flags: int = 0) -> int:
        buffers = [bytearray(length) for length in lengths]
        return self.asks(offset, sum(lengths), lambda: os.preadv(self.fd, buffers, offset, flags))

    def read(self, length: int) -> bytes:
        """From the file position."""
        return self.asks(os.lseek(self.fd, 0, os.SEEK_CUR), length, lambda: os.read(self.fd, length))

    def readv(self, lengths: Sequence[int]) -> int:
        buffers = [bytearray(length) for length in lengths]
        return self.asks(os.lseek(self.fd, 0, os.SEEK_CUR), sum(lengths), lambda: os.readv(self.fd, buffers))

    def read_page(self, page: int, pages: int = 1) -> bytes:
        return self.pread(pages * PAGE, page * PAGE)

    def read_through(self, chunk_pages: int = 32) -> None:
        """From its beginning to its end and once beyond it."""
        for page in range(0, self.pages + 1, chunk_pages):
            self.read_page(page, chunk_pages)

    # Faults

    @contextlib.contextmanager
    def mapped(self, advice: int, access: int = mmap.ACCESS_READ):
        """Yields `touch(page)`, which loads (or, with ACCESS_WRITE, stores) one byte of that page."""
        with mmap.mmap(self.fd, 0, access=access) as window:
            window.madvise(advice)

            def touch(page: int) -> None:
                missed, before = not self._has(page), self._look()
                if access == mmap.ACCESS_READ:
                    window[page * PAGE]
                else:
                    window[page * PAGE] = 1
                added = self._change(before)
                if not missed:
                    self._used({page})  # used or mapped: a look at the cache cannot tell which
                self.counts.update(
                    fault_missed_pages=missed,
                    readahead_pages=added - missed,
                    added_pages=added,
                )
                self._seen.add(page)

            yield touch

    # Everything else that brings or takes pages

    def brings(self, column: str, perform: Callable[[], Any], least: int = 0) -> Any:
        """Something that adds at least so many pages, which nothing asked for: advice, a write."""
        before = self._look()
        result = perform()
        grown = self._change(before)
        if grown < least:  # taken again before we looked
            self.counts["evicted_pages"] += least - grown
            grown = least
        self.counts.update({column: grown, "added_pages": grown})
        return result

    def write(self, data: bytes, offset: int) -> int:
        cold = {page for page in range(offset // PAGE, -(-(offset + len(data)) // PAGE)) if not self._has(page)}
        written = self.brings("write_pages", lambda: os.pwrite(self.fd, data, offset), least=len(cold))
        self._seen |= cold
        return written

    def advise(self, advice: int, page: int = 0, pages: int = 0) -> None:
        self.brings("prefetch_pages", lambda: os.posix_fadvise(self.fd, page * PAGE, pages * PAGE, advice))

    def loses(self, perform: Callable[[], Any], unused: int = 0) -> int:
        """Something that takes pages away on purpose, of which `unused` had been brought ahead for nothing."""
        before = self._look()
        perform()
        lost = -self._change(before)
        self.counts.update(dropped_pages=lost, ahead_evicted_pages=unused)
        self._seen = {page for page in self._seen if self._has(page)}
        return lost

    def forget(self, page: int = 0, pages: int = 0, unused: int = 0) -> int:
        """Pages still on their way cannot be dropped, so it asks until they are gone."""

        def drop() -> None:
            deadline = time.monotonic() + 5
            while resident(self.fd, page, pages or None) and time.monotonic() < deadline:
                os.fsync(self.fd)
                os.posix_fadvise(self.fd, page * PAGE, pages * PAGE, os.POSIX_FADV_DONTNEED)

        return self.loses(drop, unused)

    def punch_hole(self, page: int, pages: int) -> int:
        def punch() -> None:
            begin, length = ctypes.c_long(page * PAGE), ctypes.c_long(pages * PAGE)
            if _libc.fallocate(self.fd, _PUNCH_HOLE, begin, length) != 0:
                raise OSError(ctypes.get_errno(), "fallocate")

        return self.loses(punch)
