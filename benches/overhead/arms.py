"""Pairs of windows in a load that goes on: in one the probe's programs are attached, in the other they are not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from overhead import readings
from overhead.programs import PROFILE_HZ, Programs
from overhead.servers import LoadedSite
from plimsoll.environment import Fault

PROBES = ("page_cache", "buffer_heads", "throttle", "breakdown", "profile", "syscalls", "sync", "block")
RAMP_SECONDS = 1.5
SETTLE_SECONDS = 0.02
# What attaching and detaching may take on a busy machine, so that the load does not end before the windows.
SWITCH_SECONDS = 0.08
SPARE_SECONDS = 1.0


def request(names: tuple[str, ...], site: LoadedSite, out: Path, in_slices: bool = False) -> dict[str, Any]:
    """What the agent's `watch` is asked for; `in_slices`: the breakdown can do with a part of the time."""
    scratch = str(site.folder)
    each: dict[str, Any] = {
        "page_cache": {"data_directory": str(site.data), "scratch": scratch},
        "buffer_heads": {"path": scratch},
        "throttle": {"path": scratch},
        "breakdown": {"data_directory": str(site.data), "budget": 1.0 if in_slices else None},
        "profile": {"data_directory": str(site.data), "hz": PROFILE_HZ, "locks": True},
        "syscalls": {"data_directory": str(site.data)},
        "sync": {"data_directory": str(site.data)},
        "block": {"data_directory": str(site.data)},
    }
    return {"out": str(out), "probes": {name: each[name] for name in names}}


@dataclass(frozen=True)
class Arm:
    """One window."""

    transactions: float
    cpu: readings.Cpu
    runs: dict[str, tuple[int, int]]

    @property
    def work_us(self) -> float:
        """CPU time of server and load, a transaction."""
        return self.cpu.work_ns / self.transactions / 1e3

    @property
    def host_us(self) -> float:
        """CPU time of the whole machine, a transaction."""
        return self.cpu.host_ns / self.transactions / 1e3

    @property
    def tps(self) -> float:
        """Throughput."""
        return self.transactions / self.cpu.t_ns * 1e9

    def as_json(self) -> dict[str, Any]:
        """As it is printed with --json."""
        return asdict(self)


@dataclass(frozen=True)
class Pair:
    """Two windows, and which came first."""

    probe_first: bool
    arm_with: Arm
    arm_without: Arm

    @property
    def work_ratio(self) -> float:
        """CPU time a transaction, with to without: what is judged."""
        return self.arm_with.work_us / self.arm_without.work_us

    @property
    def has_ticks(self) -> bool:
        """Whether the machine's own time, which is counted in ticks, moved in both windows."""
        return bool(self.arm_with.cpu.host_ns and self.arm_without.cpu.host_ns)

    @property
    def host_ratio(self) -> float:
        """The same of the whole machine."""
        return self.arm_with.host_us / self.arm_without.host_us

    @property
    def tps_ratio(self) -> float:
        """Throughput, with to without."""
        return self.arm_with.tps / self.arm_without.tps


@dataclass(frozen=True)
class _Window:
    before: readings.Cpu
    after: readings.Cpu
    runs: dict[str, tuple[int, int]]

    def arm(self, count: Callable[[int], float]) -> Arm:
        transactions = count(self.after.t_ns) - count(self.before.t_ns)
        if transactions < 1:
            raise Fault("a window without a transaction", remedy="longer windows: --window-ms")
        return Arm(transactions, self.after.since(self.before), self.runs)


def run_segment(
    site: LoadedSite, programs: Programs, orders: list[bool], window_seconds: float, seed: int
) -> list[Pair]:
    """One segment of the load with as many pairs as there are orders."""
    site.cluster.checkpoint()
    seconds = RAMP_SECONDS + len(orders) * 2 * (window_seconds + SETTLE_SECONDS + SWITCH_SECONDS) + SPARE_SECONDS
    load = site.begin(seconds, seed)
    try:
        time.sleep(RAMP_SECONDS)
        server = readings.family(site.postmaster)
        windows = []
        for probe_first in orders:
            both = {}
            for probed in (probe_first, not probe_first):
                both[probed] = _window(programs, server, load.pid, window_seconds, probed)
            windows.append((probe_first, both))
        count = load.finish()
    except BaseException:
        load.abandon()
        raise
    return [Pair(first, both[True].arm(count), both[False].arm(count)) for first, both in windows]


def _window(programs: Programs, server: list[int], generator: int, seconds: float, probed: bool) -> _Window:
    if probed:
        programs.attach()
    try:
        time.sleep(SETTLE_SECONDS)
        ran = programs.counts()
        before = readings.read(server, generator)
        time.sleep(seconds)
        after = readings.read(server, generator)
        now = programs.counts()
    finally:
        programs.detach()
    return _Window(before, after, {name: (now[name][0] - ran[name][0], now[name][1] - ran[name][1]) for name in now})
