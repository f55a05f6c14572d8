"""Pairs of windows in a load that goes on: with the programs of probes, and without or with those of another build."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from overhead import readings
from overhead.programs import Programs
from overhead.servers import LoadedSite
from plimsoll.environment import Fault

RAMP_SECONDS = 1.5
SETTLE_SECONDS = 0.02
# Beside what attaching and detaching took so far, on a busy machine, so that the load does not end before the windows.
SWITCH_SECONDS = 0.08
SPARE_SECONDS = 1.0


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
    def run_us(self) -> float:
        """Run time of the programs a transaction; 0 where it was not accounted for."""
        return sum(run_ns for _, run_ns in self.runs.values()) / self.transactions / 1e3

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
    def run_ratio(self) -> float | None:
        """The same of the programs' run time; None where it was not accounted for in both windows."""
        both = (self.arm_with.run_us, self.arm_without.run_us)
        return both[0] / both[1] if all(both) else None

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
    site: LoadedSite,
    programs: Programs,
    orders: list[bool],
    window_seconds: float,
    seed: int,
    other: Programs | None = None,
) -> list[Pair]:
    """One segment of the load with as many pairs as there are orders; `other` is attached where `programs` are not."""
    site.cluster.checkpoint()
    switching = programs.switch_seconds + (other.switch_seconds if other is not None else 0.0)
    each = window_seconds + SETTLE_SECONDS + SWITCH_SECONDS + 2 * switching
    seconds = RAMP_SECONDS + len(orders) * 2 * each + SPARE_SECONDS
    load = site.begin(seconds, seed)
    try:
        time.sleep(RAMP_SECONDS)
        server = readings.family(site.postmaster)
        windows = []
        for probe_first in orders:
            both = {}
            for probed in (probe_first, not probe_first):
                attached = programs if probed else other
                both[probed] = _window(attached, server, load.pid, window_seconds)
            windows.append((probe_first, both))
        count = load.finish()
    except OSError as error:
        load.abandon()
        raise Fault(f"the load ended before its windows: {error}", remedy="run it when less else runs") from error
    except BaseException:
        load.abandon()
        raise
    return [Pair(first, both[True].arm(count), both[False].arm(count)) for first, both in windows]


def _window(programs: Programs | None, server: list[int], generator: int, seconds: float) -> _Window:
    if programs is None:
        programs = Programs([], [])
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
