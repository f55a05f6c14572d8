"""Mounts of network file systems, of which nothing may be asked without a limit of time: their server may be gone.

The constraint: stat(2) on a hard mount waits for ever where the server does not answer. So where a path lies is read
off its text and the list of mounts, and a program asks the server, which is killed when it takes too long.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from plimsoll.environment.devices import Mount, mounts

KINDS = ("nfs", "nfs4")
ANSWER_SECONDS = 5.0


def network_mount_of(path: Path) -> Mount | None:
    """The mount of a network that holds an absolute path; None where it lies elsewhere. Asks nobody."""
    holding = [one for one in mounts() if Path(one.point) == path or Path(one.point) in path.parents]
    found = max(reversed(holding), key=lambda one: len(one.point), default=None)  # of equals the last, which covers
    return found if found is not None and found.fs in KINDS else None


def answers(point: Path, seconds: float = ANSWER_SECONDS) -> bool:
    """Whether the server of what is mounted there answers in time, and still knows it."""
    argv = ["stat", "--file-system", "--format=%T", "--", str(point)]
    asking = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        return asking.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        asking.kill()  # and not waited for: it ends when the kernel lets it
        return False
