"""What is planted on the machine: kills, a load that grows, memory that leaks, a line in the kernel's log.

The constraint: nothing of it may outlive the bench. So what goes on is a process that dies with the bench, the file in
tmpfs has no name (memfd_create), and only processes of the soak's own state folder are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import signal
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

CLIENT: Final = re.compile(r"^postgres: (?:\S+: )?\S+ \S+ (?:\[local\]|[\d.:a-f]+(?:\(\d+\))?)(?: |$)")
TURN_S: Final = 0.05
FILL_S: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1


def processes(state: Path) -> Iterator[int]:
    """Of the soak: those that have its state folder in their surroundings or lie in it."""
    marker = f"PLIMSOLL_STATE={state}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                here = entry.joinpath("cwd").readlink().is_relative_to(state)
                if here or marker in entry.joinpath("environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
        except OSError:
            continue


def agent(state: Path) -> int | None:
    """The agent that is at work."""
    return next((pid for pid in processes(state) if _name(pid) == "plimsoll-agent"), None)


def server(state: Path) -> int | None:
    """The postmaster: of the servers' processes the one whose parent is none of them."""
    found = [pid for pid in processes(state) if _name(pid) == "postgres"]
    return next((pid for pid in found if _parent(pid) not in found), None)


def backend(state: Path, place: int) -> int | None:
    """One of the processes that serve a client, by its place among them."""
    found = sorted(pid for pid in processes(state) if _name(pid) == "postgres" and CLIENT.match(_title(pid)))
    return found[place % len(found)] if found else None


def warn(text: str) -> None:
    """Writes a line to the kernel's log, as a warning. Raises OSError where nobody may."""
    with Path("/dev/kmsg").open("w", encoding="utf-8") as log:
        log.write(f"<4>{text}\n")


class GrowingLoad:
    """A process for each CPU that takes a share of it, ahead of everybody else; the share may be set at any time.

    By a real-time priority: a nice value counts inside a session alone where the kernel groups processes by sessions
    (sched_autogroup_enabled). And by its own CPU time: what it did not get is not taken.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        self.set(0.0)
        self._children = [_child(lambda cpu=cpu: self._burn(cpu)) for cpu in sorted(os.sched_getaffinity(0))]

    def set(self, share: float) -> None:
        """Of each CPU, from 0 to 1."""
        self._shared[:8] = struct.pack("d", min(0.95, max(0.0, share)))

    def end(self) -> None:
        _end(self._children)

    def taken_s(self) -> float:
        """CPU time that it has taken so far, of all CPUs, in seconds."""
        told = [Path(f"/proc/{child}/schedstat").read_text(encoding="ascii") for child in self._children]
        return sum(int(one.split()[0]) for one in told) / 1e9

    def _burn(self, cpu: int) -> None:
        os.sched_setaffinity(0, {cpu})
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:  # a control group without a budget of real time
            with contextlib.suppress(PermissionError):  # nor root: what it takes is told in any case
                os.setpriority(os.PRIO_PROCESS, 0, -20)
        due = time.monotonic()
        while True:
            due += TURN_S
            (share,) = struct.unpack("d", self._shared[:8])
            until = time.process_time() + TURN_S * share
            while time.process_time() < until and time.monotonic() < due:
                pass
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - TURN_S)


class Leak:
    """A file in tmpfs that grows by so many bytes a second and is never read."""

    def __init__(self, bytes_a_second: float) -> None:
        self._a_second = bytes_a_second
        self._children = [_child(self._grow)]

    def end(self) -> None:
        _end(self._children)

    def _grow(self) -> None:
        file, written, began = os.memfd_create("planted-leak"), 0, time.monotonic()
        while True:
            due = int((time.monotonic() - began) * self._a_second)
            while written < due:
                written += os.write(file, b"\xa5" * min(due - written, 1 << 20))
            time.sleep(FILL_S)


def _child(work: Callable[[], None]) -> int:
    """A process that does this until it is ended, or its parent is."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        os.setpgid(0, 0)  # Ctrl-C is the bench's affair
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            work()
    finally:
        os._exit(1)


def _end(children: list[int]) -> None:
    while children:
        child = children.pop()
        os.kill(child, signal.SIGKILL)  # not waited for yet: the number is still its own
        os.waitpid(child, 0)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
