"""Which process is which: identity that survives the reuse of process numbers.

The constraint: a pid alone names nobody; the kernel hands it out again. A process is (boot, pid, start time), and a
signal goes through a pidfd taken before the identity was checked, so that it cannot hit a newcomer.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_PROC = Path("/proc")


def boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """The one that numbers of processes are of; empty where the kernel does not tell."""
    try:
        return (_PROC / "self/ns/pid").readlink().name
    except OSError:
        return ""


def start_ticks(pid: int) -> int | None:
    """Start time in clock ticks since boot; None if there is no such process or it is a zombie."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and parentheses, so fields are counted from the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def start_epoch(pid: int) -> float:
    """When a process began, in seconds since 1970 to about one; infinitely late if it is gone."""
    ticks = start_ticks(pid)
    for line in (_PROC / "stat").read_text().splitlines():
        if line.startswith("btime ") and ticks is not None:
            return int(line.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
    return float("inf")


def is_alive(pid: int, ticks: int, boot: str) -> bool:
    return boot == boot_id() and start_ticks(pid) == ticks


def all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 (a Path for each is slow)


def link(pid: int, name: str) -> str | None:
    """The target of /proc/PID/cwd or exe, without the kernel's ` (deleted)`."""
    try:
        return os.readlink(f"/proc/{pid}/{name}").removesuffix(" (deleted)")  # noqa: PTH115
    except OSError:
        return None


def arguments(pid: int) -> list[str]:
    return _words(pid, "cmdline")


def environment(pid: int) -> list[str]:
    """What it was started with, as NAME=VALUE; nothing where we may not ask."""
    return _words(pid, "environ")


def _words(pid: int, file: str) -> list[str]:
    try:
        return (_PROC / str(pid) / file).read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def signal_if(pid: int, number: int, condition: Callable[[int], bool]) -> bool:
    """Send the signal if the condition holds for the process; false if it is gone or is not the one meant."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not condition(pid):
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def wait_until_gone(remaining: Callable[[], Iterable[int]], seconds: float) -> list[int]:
    """Poll until `remaining` is empty; returns what is still there when time is up."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while left := list(remaining()):
        if time.monotonic() > deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return []
