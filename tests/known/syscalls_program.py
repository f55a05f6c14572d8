"""A program whose system calls are known: it behaves like a server of two processes on a cluster's folder.

The first word on standard input lets it begin, so that whoever counts can be there. Paths are relative to its folder,
as PostgreSQL writes them, but for one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

BLOCK = 8192


def data() -> None:
    """Tables: positioned blocks in and out of order, vectors, and the file's own position."""
    fd = os.open("base/5/16384", os.O_RDWR | os.O_CREAT, 0o600)
    block = bytes(BLOCK)
    for number in range(31):
        os.pwrite(fd, block, number * BLOCK)
    os.pwritev(fd, [block, block, block[:100]], 31 * BLOCK)
    for number in (0, 1, 2, 7, 3, 4, 30):
        os.pread(fd, BLOCK, number * BLOCK)
    os.preadv(fd, [bytearray(BLOCK)] * 5, 10 * BLOCK)
    os.preadv(fd, [bytearray(BLOCK), bytearray(BLOCK)], 32 * BLOCK)
    os.lseek(fd, 0, os.SEEK_END)
    os.lseek(fd, 0, os.SEEK_SET)
    for _ in range(3):
        os.read(fd, BLOCK)
    os.readv(fd, [bytearray(10), bytearray(20)])
    os.fdatasync(fd)
    os.fsync(fd)
    os.ftruncate(fd, 40 * BLOCK)
    os.posix_fallocate(fd, 0, 48 * BLOCK)
    os.fstat(fd)
    os.close(fd)
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            os.open("base/5/999999", os.O_RDONLY)
    Path("base/5").stat()
    Path("base/5/16384").rename("base/5/16385")
    Path("base/5/16385").unlink()


def wal() -> None:
    """The log: in order, by positions; a failed call, and the folder itself."""
    fd = os.open("pg_wal/000000010000000000000001", os.O_RDWR | os.O_CREAT, 0o600)
    for number in range(17):
        os.pwrite(fd, bytes(BLOCK), number * BLOCK)
        os.fdatasync(fd)
    os.close(fd)
    folder = os.open("pg_wal", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    Path.cwd().joinpath("pg_wal/000000010000000000000001").stat()
    with contextlib.suppress(FileNotFoundError):
        Path("pg_wal/none").unlink()


def temp_and_others() -> None:
    """Temporary files, what belongs to no database, other files of the server, one elsewhere, and no file at all."""
    temp = os.open("base/5/t3_16999", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(11):
        os.write(temp, bytes(100))
    os.close(temp)
    Path("base/5/t3_16999").unlink()
    control = os.open("global/pg_control", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(control, bytes(BLOCK))
    os.fsync(control)
    os.lstat("global/pg_control")
    os.close(control)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for _ in range(5):
        os.write(log, b"line\n")
    os.close(log)
    elsewhere = os.open("/proc/self/stat", os.O_RDONLY)
    os.read(elsewhere, 100)
    os.close(elsewhere)
    ours, theirs = socket.socketpair()
    for _ in range(23):
        os.write(ours.fileno(), b"word")
        os.read(theirs.fileno(), 4)
    ours.close()
    theirs.close()


def main() -> None:
    os.chdir(Path(sys.argv[1]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for part in (data, wal, temp_and_others):
        part()
    child = os.fork()
    if child == 0:
        for part in (wal, data):
            part()
        os._exit(0)
    os.waitpid(child, 0)
    sys.stdout.write("done\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
