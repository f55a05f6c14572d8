"""Shared memory that PostgreSQL leaves behind when it is killed: one SysV segment and files under /dev/shm.

The constraint: a file under /dev/shm does not name its cluster, and another server of the same user may run. While ours
lives its mappings tell. Afterwards the SysV segment is known from line 7 of postmaster.pid; its head holds the number
of a control file, and that one lists the others. What is in neither is nobody's business of ours.
"""

from __future__ import annotations

import array
import ctypes
import os
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import processes

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_libc.shmdt.argtypes = (ctypes.c_void_p,)
_IPC_RMID, _SHM_RDONLY = 0, 0o10000
_SHM = Path("/dev/shm")
# PGShmemHeader: magic, creator's pid, total size, free offset, dsm_control (PostgreSQL 9.4 and later).
_HEAD = struct.Struct("=iiQQI")
_MAGIC = 679834894


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
            if "SYSV" in line and (found := re.search(r" (\d+) +/SYSV[0-9a-f]{8}", line)):
                system_v.add(int(found[1]))  # the inode of such a mapping is its shmid
            elif "/dev/shm/PostgreSQL." in line:
                files.add(line[line.index("/dev/shm/") :].removesuffix(" (deleted)"))
    return Segments(frozenset(system_v), frozenset(files))


def remembered(key: int, shmid: int) -> Segments:
    """What postmaster.pid still says of a dead server, if the segment is still that one: ids are handed out again."""
    return Segments(frozenset([shmid]) if _unattached(shmid, key) else frozenset(), frozenset())


def remove(segments: Segments) -> None:
    """Remove what dead servers had, and the files their control file lists, unless somebody else has them mapped."""
    abandoned = {shmid for shmid in segments.system_v if _unattached(shmid)}
    files = set(segments.files)
    for shmid in abandoned:
        files |= _files_listed(shmid)
    in_use = mapped_by(processes.all_pids()).files if files else frozenset()
    for name in files - in_use:
        Path(name).unlink(missing_ok=True)
    # Last: until it is gone, a put-back that is cut short can find the files again.
    for shmid in abandoned:
        _libc.shmctl(shmid, _IPC_RMID, None)


def _unattached(shmid: int, key: int | None = None) -> bool:
    try:
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    except OSError:
        return False
    columns = {name: place for place, name in enumerate(lines[0].split())}
    for fields in (line.split() for line in lines[1:]):
        if int(fields[columns["shmid"]]) == shmid and (key is None or int(fields[columns["key"]]) == key):
            return fields[columns["nattch"]] == "0"
    return False


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
