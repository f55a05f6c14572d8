"""Shared memory that PostgreSQL leaves behind when it is killed: one SysV segment and files under /dev/shm.

The constraint: a file under /dev/shm does not name its cluster, and another server of the same user may run. While ours
lives its mappings tell. Afterwards the SysV segment is known by its maker, who stands in postmaster.pid; its head holds
the number of a control file, and that one lists the others. What is in neither is nobody's business of ours.
"""

from __future__ import annotations

import array
import ctypes
import os
import re
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.environment import processes

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_libc.shmdt.argtypes = (ctypes.c_void_p,)
_IPC_RMID, _SHM_RDONLY = 0, 0o10000
_SHM = Path("/dev/shm")
# PGShmemHeader: magic, creator's pid, total size, free offset, dsm_control (PostgreSQL 9.4 and later).
_HEAD = struct.Struct("=iiQQI")
_MAGIC = 679834894
_PATIENCE_SECONDS = 3.0


@dataclass(frozen=True)
class Segments:
    system_v: frozenset[int]  # shmid
    files: frozenset[str]  # paths under /dev/shm


def mapped_by(pids: Iterable[int]) -> Segments:
    system_v, files = set(), set()
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except OSError:
            continue
        for line in maps.splitlines():
            if "SYSV" in line and (mapping := re.search(r" (\d+) +/SYSV[0-9a-f]{8}", line)):
                system_v.add(int(mapping[1]))  # the inode of such a mapping is its shmid
            elif "/dev/shm/PostgreSQL." in line:
                files.add(line[line.index("/dev/shm/") :].removesuffix(" (deleted)"))
    return Segments(frozenset(system_v), frozenset(files))


class Estate:
    """What processes that are about to be killed will leave. `see` before each signal, `remove` when they are gone."""

    def __init__(self) -> None:
        self._system_v: set[int] = set()
        self._files: set[str] = set()
        self._creators: dict[int, float] = {}

    def see(self, pids: Iterable[int]) -> None:
        for pid in pids:
            segments = mapped_by([pid])
            self._system_v |= segments.system_v
            self._files |= segments.files
            self._creators.setdefault(pid, processes.start_epoch(pid))

    def see_of_dead(self, creator: int, started_epoch: float, uid: int) -> None:
        """What a server that has ended left: its first process was `creator`, of this user, and began then.

        Numbers of processes and segments are handed out again, so a segment that is older, of another user, or whose
        maker lives is somebody else's.
        """
        for segment in _segments():
            is_its = (segment["cpid"], segment["cuid"]) == (creator, uid) and segment["ctime"] >= started_epoch - 1
            if is_its and processes.start_epoch(creator) > segment["ctime"] + 1:
                self._system_v.add(segment["shmid"])

    def remove(self) -> None:
        """Remove the segments and the files their control files list, unless somebody else has them in use."""
        # A server killed just after it made its segment had not mapped it yet; the kernel knows who made it.
        mine = {
            segment["shmid"]
            for segment in _segments()
            if segment["cpid"] in self._creators and segment["ctime"] >= self._creators[segment["cpid"]] - 1
        }
        self._system_v |= mine
        # A process that is no longer to be seen may still be giving back its memory, so patience before "in use".
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (in_use := self._attached()) and time.monotonic() < deadline:
            time.sleep(0.01)
        abandoned = self._system_v - in_use
        files = set(self._files)
        for shmid in abandoned:
            files |= _files_listed(shmid)
        mapped = mapped_by(processes.all_pids()).files if files else frozenset()
        for name in files - mapped:
            Path(name).unlink(missing_ok=True)
        # Last: until it is gone, a put-back that is cut short can find the files again.
        for shmid in abandoned:
            _libc.shmctl(shmid, _IPC_RMID, None)

    def _attached(self) -> set[int]:
        return {segment["shmid"] for segment in _segments() if segment["nattch"]} & self._system_v


def _segments() -> list[dict[str, int]]:
    """/proc/sysvipc/shm; permissions are octal there and not wanted."""
    try:
        head, *lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    except (OSError, ValueError):
        return []
    names = head.split()
    rows = (dict(zip(names, line.split(), strict=True)) for line in lines)
    return [{name: int(value) for name, value in row.items() if name != "perms"} for row in rows]


def _files_listed(shmid: int) -> set[str]:
    """Files under /dev/shm that belong to the server of this segment: the control file and those it lists."""
    address = _libc.shmat(shmid, None, _SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        return set()
    try:
        magic, _, total, _, control = _HEAD.unpack(ctypes.string_at(address, _HEAD.size))
    finally:
        _libc.shmdt(address)
    path = _SHM / f"PostgreSQL.{control}"
    if magic != _MAGIC or total < _HEAD.size:
        return set()
    try:
        content = path.read_bytes()
        owner = path.stat().st_uid
    except OSError:
        return set()
    # How an item is laid out differs between versions, but its number stands in it as an aligned 32-bit word.
    words = set(array.array("I", content[: len(content) // 4 * 4]))
    listed = {str(path)}
    for other in _SHM.glob("PostgreSQL.*"):
        number = other.name.partition(".")[2]
        if number.isdigit() and int(number) in words and os.stat(other).st_uid == owner:  # noqa: PTH116
            listed.add(str(other))
    return listed
