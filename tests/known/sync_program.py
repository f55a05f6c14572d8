"""A program that syncs when it is told, and says how long each took by its own clock: the server of a cluster's folder.

Each line of standard input is an act; the answer is a line of JSON: a list of nanoseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BLOCK = bytes(8192)
BLOCKS = 64
LOG = "pg_wal/000000010000000000000001"
TABLE = "base/5/16384"
_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begins to write, and does not wait

_libc = ctypes.CDLL(None, use_errno=True)
_libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


def _timed(sync: Callable[[int], None], fd: int) -> int:
    began = time.monotonic_ns()
    sync(fd)
    return time.monotonic_ns() - began


def prepare(log: int, _: int) -> Iterator[int]:
    """The log as it is after its first round: written from end to end, and on the device."""
    for number in range(BLOCKS):
        os.pwrite(log, BLOCK, number * len(BLOCK))
    yield _timed(os.fsync, log)


def overwrite(log: int, _: int) -> Iterator[int]:
    """Nothing but the content changes."""
    for number in range(11):
        os.pwrite(log, BLOCK, number * len(BLOCK))
        yield _timed(os.fdatasync, log)


def extend(_: int, table: int) -> Iterator[int]:
    """The file grows, so that its metadata changes."""
    for _number in range(7):
        os.lseek(table, 0, os.SEEK_END)
        os.write(table, BLOCK)
        yield _timed(os.fsync, table)


def on_its_way(log: int, _: int) -> Iterator[int]:
    """The pages are being written when the sync comes."""
    for number in range(5):
        os.pwrite(log, BLOCK * 32, 0)
        if _libc.sync_file_range(log, 0, 0, _WRITE):
            raise OSError(ctypes.get_errno(), f"sync_file_range {number}")
        yield _timed(os.fdatasync, log)


def nothing(log: int, _: int) -> Iterator[int]:
    """Nothing is dirty."""
    for _number in range(3):
        yield _timed(os.fdatasync, log)


def fails(_: int, __: int) -> Iterator[int]:
    """No file can be synced that is a pipe."""
    reader, writer = os.pipe()
    began = time.monotonic_ns()
    try:
        os.fsync(writer)
    except OSError:
        yield time.monotonic_ns() - began
    os.close(reader)
    os.close(writer)


def main() -> None:
    os.chdir(Path(sys.argv[1]))
    log = os.open(LOG, os.O_RDWR | os.O_CREAT, 0o600)
    table = os.open(TABLE, os.O_RDWR | os.O_CREAT, 0o600)
    print(json.dumps([]), flush=True)
    acts = {act.__name__: act for act in (prepare, overwrite, extend, on_its_way, nothing, fails)}
    for line in sys.stdin:
        print(json.dumps(list(acts[line.strip()](log, table))), flush=True)


if __name__ == "__main__":
    main()
