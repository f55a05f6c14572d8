"""A file system that shows a folder as it is, and holds every sync for as long as a file of one number says.

It speaks the kernel's FUSE protocol itself (linux/fuse.h, 7.31), so it needs no library; it knows what PostgreSQL does
in pg_wal and answers "not implemented" to the rest. The constraint: it must go when its maker does. So it unmounts when
its standard input ends.

    python breakdown_slow_sync.py SOURCE POINT DELAY_FILE LOG

Each line of the log: the caller's pid, when its sync came (CLOCK_MONOTONIC, ns), and, in a second line once it has been
given, when the answer was. So whoever reads it knows whether a sync is still held, or its answer not yet written down.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_HEAD = struct.Struct("<IIQQIIIHH")
_DETACH = 2
_WRITE_MAX = 1 << 20
_KEEP_S = 0  # the kernel keeps no names or attributes: it asks
_MODE, _UID, _GID, _SIZE = 1, 2, 4, 8


def _attributes(number: int, found: os.stat_result) -> bytes:
    seconds = [int(moment) for moment in (found.st_atime, found.st_mtime, found.st_ctime)]
    wide = struct.pack("<6Q", number, found.st_size, found.st_blocks, *seconds)
    kind = (found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0)
    return wide + struct.pack("<10I", 0, 0, 0, *kind)


def _words(data: bytes) -> list[str]:
    return [os.fsdecode(word) for word in data.rstrip(b"\0").split(b"\0")]


class SlowSync:
    """Answers the kernel, one call after the other; a sync is held in a thread of its own, so that others go on."""

    def __init__(self, source: Path, delay: Path, log: Path) -> None:
        self._source, self._delay, self._log = source, delay, log
        self._fuse = os.open("/dev/fuse", os.O_RDWR)
        self._paths = {1: ""}
        self._calls: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._look_up, 3: self._get_attributes, 4: self._set_attributes, 9: self._make_folder, 10: self._unlink,
            11: self._remove_folder, 12: self._rename, 14: self._open, 15: self._read, 16: self._write, 17: self._space,
            18: self._release, 26: self._begin, 27: lambda *_: bytes(16), 28: self._list, 29: lambda *_: b"",
            30: lambda *_: b"", 35: self._create, 43: self._allocate, 45: self._rename_with_flags,
        }  # fmt: skip

    def mount(self, point: Path) -> None:
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
        if _libc.mount(b"slow-sync", os.fsencode(point), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), f"mount on {point}")

    def serve(self) -> None:
        """Until it is unmounted."""
        while True:
            try:
                data = os.read(self._fuse, _WRITE_MAX + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            _, call, unique, node, _, _, pid, _, _ = _HEAD.unpack_from(data)
            body = data[_HEAD.size :]
            if call in (2, 36, 42):  # forget, interrupt: no answer
                continue
            if number := self.fails(call):
                self._answer(unique, number, b"")
                continue
            if call == 20:
                came_ns = time.monotonic_ns()
                self._note(f"{pid} {came_ns}")
                threading.Thread(target=self._sync, args=(unique, pid, body, came_ns)).start()
                continue
            self._answer(unique, *self._do(call, node, body))

    def fails(self, call: int) -> int:
        """The error that this call gets without being done; 0 where it is done."""
        del call
        return 0

    def _do(self, call: int, node: int, body: bytes) -> tuple[int, bytes]:
        try:
            return 0, self._calls[call](node, body)
        except KeyError:
            return errno.ENOSYS, b""
        except OSError as error:
            return error.errno or errno.EIO, b""

    def _answer(self, unique: int, error: int, data: bytes) -> None:
        os.write(self._fuse, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)

    def _sync(self, unique: int, pid: int, body: bytes, came_ns: int) -> None:
        """The sync itself is within the delay: it lasts as long as the file says, or as the disk needs."""
        os.fdatasync(struct.unpack_from("<Q", body)[0])
        until = came_ns + int(float(self._delay.read_text()) * 1e9)
        time.sleep(max(0, until - time.monotonic_ns()) / 1e9)
        answered = time.monotonic_ns()
        self._answer(unique, 0, b"")
        self._note(f"{pid} {came_ns} {answered}")

    def _note(self, line: str) -> None:
        """In one write, so that lines of two threads are not mixed."""
        with self._log.open("ab", buffering=0) as log:
            log.write(f"{line}\n".encode())

    # Names and nodes: a node is a path

    def _path(self, node: int) -> Path:
        return self._source / self._paths[node]

    def _entry(self, node: int, name: str) -> bytes:
        path = f"{self._paths[node]}/{name}".lstrip("/")
        found = (self._source / path).lstat()
        number = found.st_ino + 1  # 1 is the root
        self._paths[number] = path
        return struct.pack("<4Q2I", number, 0, _KEEP_S, _KEEP_S, 0, 0) + _attributes(number, found)

    def _look_up(self, node: int, body: bytes) -> bytes:
        return self._entry(node, _words(body)[0])

    def _get_attributes(self, node: int, _: bytes = b"") -> bytes:
        return struct.pack("<Q2I", _KEEP_S, 0, 0) + _attributes(node, self._path(node).lstat())

    def _set_attributes(self, node: int, body: bytes) -> bytes:
        valid, size = struct.unpack_from("<I", body)[0], struct.unpack_from("<Q", body, 16)[0]
        mode, uid, gid = struct.unpack_from("<I4x2I", body, 68)
        if valid & _SIZE:
            os.truncate(self._path(node), size)
        if valid & _MODE:
            self._path(node).chmod(stat.S_IMODE(mode))
        if valid & (_UID | _GID):
            os.chown(self._path(node), uid if valid & _UID else -1, gid if valid & _GID else -1)
        return self._get_attributes(node)

    def _make_folder(self, node: int, body: bytes) -> bytes:
        (name,) = _words(body[8:])
        (self._path(node) / name).mkdir()
        return self._entry(node, name)

    def _unlink(self, node: int, body: bytes) -> bytes:
        (self._path(node) / _words(body)[0]).unlink()
        return b""

    def _remove_folder(self, node: int, body: bytes) -> bytes:
        (self._path(node) / _words(body)[0]).rmdir()
        return b""

    def _rename(self, node: int, body: bytes) -> bytes:
        old, new = _words(body[8:])
        target = struct.unpack_from("<Q", body)[0]
        (self._path(node) / old).rename(self._path(target) / new)
        self._entry(target, new)
        return b""

    def _rename_with_flags(self, node: int, body: bytes) -> bytes:
        if struct.unpack_from("<I", body, 8)[0]:
            raise OSError(errno.EINVAL, "no flags of rename are known")
        return self._rename(node, body[:8] + body[16:])

    def _list(self, node: int, body: bytes) -> bytes:
        _, offset, room = struct.unpack_from("<QQI", body)
        found = b""
        for place, entry in enumerate(sorted(os.scandir(self._path(node)), key=lambda each: each.name), start=1):
            name = os.fsencode(entry.name)
            kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) >> 12
            packed = struct.pack("<QQII", entry.inode() + 1, place, len(name), kind) + name
            packed += bytes(-len(packed) % 8)
            if place > offset and len(found) + len(packed) <= room:
                found += packed
                continue
            if place > offset:
                break
        return found

    # Files

    def _open(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0] & (os.O_ACCMODE | os.O_TRUNC)
        return struct.pack("<QII", os.open(self._path(node), flags), 0, 0)

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        (name,) = _words(body[16:])
        keep = os.O_ACCMODE | os.O_TRUNC | os.O_EXCL
        file = os.open(self._path(node) / name, flags & keep | os.O_CREAT, mode)
        return self._entry(node, name) + struct.pack("<QII", file, 0, 0)

    def _read(self, _: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(file, size, offset)

    def _write(self, _: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(file, body[40 : 40 + size], offset), 0)

    def _allocate(self, _: int, body: bytes) -> bytes:
        file, offset, length, mode = struct.unpack_from("<QQQI", body)
        if mode:
            raise OSError(errno.EOPNOTSUPP, "only plain allocation is known")
        os.posix_fallocate(file, offset, length)
        return b""

    def _release(self, _: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _space(self, _node: int, _: bytes) -> bytes:
        found = os.statvfs(self._source)
        counts = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
        return struct.pack("<5Q10I", *counts, found.f_bsize, found.f_namemax, found.f_frsize, *[0] * 7)

    def _begin(self, _: int, body: bytes) -> bytes:
        major, minor, ahead = struct.unpack_from("<III", body)
        large_writes, many_pages = 1 << 5, 1 << 22
        flags = large_writes | many_pages
        return struct.pack("<4IHHIIHHI7I", major, min(minor, 31), ahead, flags, 12, 9, _WRITE_MAX, 1, 256, 0, *[0] * 8)


def unmount_at_the_end(point: Path) -> None:
    """Waits for the end of the standard input."""
    sys.stdin.buffer.read()
    _libc.umount2(os.fsencode(point), _DETACH)


def main() -> None:
    source, point, delay, log = map(Path, sys.argv[1:])
    made = SlowSync(source, delay, log)
    made.mount(point)
    threading.Thread(target=unmount_at_the_end, args=(point,), daemon=True).start()
    print("mounted", flush=True)
    made.serve()


if __name__ == "__main__":
    main()
