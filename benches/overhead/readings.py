"""CPU time of processes and of the host, read around a window while all of them run.

The constraint: what /proc tells of a running process may be a tick old, a large share of a short window. The clocks of
processes (clock_getcpuclockid(3)) are brought up to date as they are read.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields
from pathlib import Path

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """CPU time in nanoseconds; `host_ns` is of everything on the machine, with interrupts, without steal."""

    t_ns: int
    server_ns: int
    generator_ns: int
    host_ns: int
    steal_ns: int

    def since(self, before: Cpu) -> Cpu:
        """What was used since an earlier reading."""
        return Cpu(**{each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)})

    @property
    def work_ns(self) -> int:
        """Of the server and the load."""
        return self.server_ns + self.generator_ns


def read(server: list[int], generator: int) -> Cpu:
    """Everything at one moment."""
    host_ns, steal_ns = _host()
    return Cpu(
        t_ns=time.monotonic_ns(),
        server_ns=sum(cpu_ns(pid) for pid in server),
        generator_ns=cpu_ns(generator),
        host_ns=host_ns,
        steal_ns=steal_ns,
    )


def family(postmaster: int) -> list[int]:
    """The postmaster and its children."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid == postmaster or _parent(pid) == postmaster]


def load_average() -> float:
    """Of the last minute."""
    return os.getloadavg()[0]


def cpu_ns(pid: int) -> int:
    """CPU time of a living process with all its threads (the kernel's number of its clock: ~pid << 3 | 2)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def _parent(pid: int) -> int | None:
    try:
        # A program's name may hold anything, so fields are counted from its end.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _host() -> tuple[int, int]:
    """Busy and stolen time of all CPUs; what guests use is in user time already."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(field) for field in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + irq + softirq) * _TICK_NS, steal * _TICK_NS
