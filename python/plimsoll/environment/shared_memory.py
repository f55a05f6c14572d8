"""Shared memory that PostgreSQL leaves behind when it is killed: one SysV segment and files under /dev/shm.

The constraint: neither names its cluster. While a server lives its mappings tell; afterwards the SysV segment is known
from line 7 of postmaster.pid, and a /dev/shm file only by its user and by nobody mapping it.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import processes

_libc = ctypes.CDLL(None, use_errno=True)
_IPC_RMID = 0
_SHM = Path("/dev/shm")


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


def remove_system_v(shmid: int, key: int | None = None) -> bool:
    """Remove a segment nobody is attached to; with a key, only if it is still that one (ids are handed out again)."""
    try:
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    except OSError:
        return False
    columns = {name: place for place, name in enumerate(lines[0].split())}
    for fields in (line.split() for line in lines[1:]):
        same = int(fields[columns["shmid"]]) == shmid and (key is None or int(fields[columns["key"]]) == key)
        if same and fields[columns["nattch"]] == "0":
            return bool(_libc.shmctl(shmid, _IPC_RMID, None) == 0)
    return False


def remove(segments: Segments) -> None:
    """Remove what dead processes had mapped, unless somebody else has it mapped too."""
    for shmid in segments.system_v:
        remove_system_v(shmid)
    if segments.files:
        in_use = mapped_by(processes.all_pids()).files
        for name in segments.files - in_use:
            Path(name).unlink(missing_ok=True)


def remove_orphans_of(uid: int, since_epoch: float) -> list[str]:
    """Files of a user's dead servers: mapped by nobody, made after the server started and not just now."""
    candidates = []
    for path in _SHM.glob("PostgreSQL.*"):
        try:
            found = path.stat()
        except OSError:
            continue
        # Two seconds of age: a server that is starting makes the file just before it maps it.
        if found.st_uid == uid and since_epoch - 1 <= found.st_mtime <= time.time() - 2:
            candidates.append(str(path))
    in_use = mapped_by(processes.all_pids()).files if candidates else frozenset()
    removed = [name for name in candidates if name not in in_use]
    for name in removed:
        os.unlink(name)  # noqa: PTH108
    return removed
