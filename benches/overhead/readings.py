"""CPU time of processes and of the host, read around an arm.

The constraint: a process that ended takes its figures along. The server's ended backends are in the postmaster's own
count of its children, so no client may be connected at a reading; the generator's are in ours.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass, fields
from pathlib import Path

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """CPU time in nanoseconds; `host_ns` is of everything on the machine, with interrupts, without steal."""

    server_ns: int
    generator_ns: int
    watcher_ns: int
    host_ns: int
    steal_ns: int

    def since(self, before: Cpu) -> Cpu:
        """What was used since an earlier reading."""
        return Cpu(**{each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)})

    @property
    def work_ns(self) -> int:
        """Of the server, the generator and the process that holds the probe."""
        return self.server_ns + self.generator_ns + self.watcher_ns


def read(postmaster: int, watcher: int | None) -> Cpu:
    """Everything at one moment."""
    host_ns, steal_ns = _host()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cpu(
        server_ns=_server(postmaster),
        generator_ns=round((own.ru_utime + own.ru_stime) * 1e9),
        watcher_ns=_running(watcher) if watcher is not None else 0,
        host_ns=host_ns,
        steal_ns=steal_ns,
    )


def load_average() -> float:
    """Of the last minute."""
    return os.getloadavg()[0]


def _server(postmaster: int) -> int:
    """The postmaster, its living children, and those that have ended."""
    ended = sum(int(field) for field in _stat(postmaster)[13:15]) * _TICK_NS
    living = [pid for pid in map(int, _pids()) if pid == postmaster or _parent(pid) == postmaster]
    return ended + sum(_running(pid) for pid in living)


def _pids() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """From the state on (the third field): a program's name may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int | None:
    try:
        return int(_stat(pid)[1])
    except OSError:
        return None


def _running(pid: int) -> int:
    """Time on the CPU of a living process: to the nanosecond where the kernel tells, else in ticks."""
    try:
        return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    except (OSError, IndexError):
        return sum(int(field) for field in _stat(pid)[11:13]) * _TICK_NS


def _host() -> tuple[int, int]:
    """Busy and stolen time of all CPUs; what guests use is in user time already."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(field) for field in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + irq + softirq) * _TICK_NS, steal * _TICK_NS
