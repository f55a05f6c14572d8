"""Pairs of arms: the same number of transactions with the probe and without it.

The constraint: both arms use the same load process and the same server; the probe is a process of its own (`watch`),
attached before the first reading and detached after the last.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from overhead import readings
from overhead.servers import Site
from plimsoll.environment import Fault
from plimsoll.run.agent import Agent, AgentFailed

PROBES = ("page_cache", "buffer_heads", "throttle")
SETTLE_SECONDS = 0.2


@dataclass(frozen=True)
class Wanted:
    """Which probes the arm with probes has; with none the process that would hold them runs all the same."""

    names: tuple[str, ...]
    requests: str = "auto"
    programs: str = "auto"

    def request(self, site: Site, out: Path) -> dict[str, Any]:
        """The agent's request."""
        scratch = str(site.folder)
        page_cache = {"data_directory": str(site.data), "scratch": scratch}
        each: dict[str, Any] = {
            "page_cache": page_cache | {"requests": self.requests, "programs": self.programs},
            "buffer_heads": {"path": scratch},
            "throttle": {"path": scratch},
        }
        return {"out": str(out), "probes": {name: each[name] for name in self.names}}


@dataclass(frozen=True)
class Arm:
    """One arm; the probes' own figures are empty without them."""

    transactions: int
    seconds: float
    cpu: readings.Cpu
    blocks_read: int
    load_average: float
    probes: dict[str, Any] = field(default_factory=dict)

    @property
    def work_us(self) -> float:
        """CPU time of server, generator and watching process, a transaction."""
        return self.cpu.work_ns / self.transactions / 1e3

    @property
    def host_us(self) -> float:
        """CPU time of the whole machine, a transaction."""
        return self.cpu.host_ns / self.transactions / 1e3

    @property
    def tps(self) -> float:
        """Throughput."""
        return self.transactions / self.seconds

    @property
    def lost(self) -> dict[str, int]:
        """What the probes lost, if anything."""
        counts = ((f"{name}.{what}", n) for name, probe in self.probes.items() for what, n in probe["lost"].items())
        return {what: count for what, count in counts if count}

    @property
    def run_us(self) -> float:
        """Run time of the probes' programs by the kernel's own accounting, a transaction."""
        return sum(probe["cost"]["run_ns"] for probe in self.probes.values()) / self.transactions / 1e3

    def as_json(self) -> dict[str, Any]:
        """As it is printed with --json."""
        return asdict(self)


@dataclass(frozen=True)
class Pair:
    """Two arms, and which came first."""

    number: int
    probe_first: bool
    arm_with: Arm
    arm_without: Arm

    @property
    def work_ratio(self) -> float:
        """CPU time a transaction, with to without: what is judged."""
        return self.arm_with.work_us / self.arm_without.work_us

    @property
    def host_ratio(self) -> float:
        """The same of the whole machine."""
        return self.arm_with.host_us / self.arm_without.host_us

    @property
    def tps_ratio(self) -> float:
        """Throughput, with to without."""
        return self.arm_with.tps / self.arm_without.tps


def run_pair(site: Site, wanted: Wanted, transactions: int, number: int, *, probe_first: bool) -> Pair:
    """Both arms in their order."""
    arms = {probed: _arm(site, wanted, transactions, number, probed) for probed in (probe_first, not probe_first)}
    return Pair(number, probe_first, arm_with=arms[True], arm_without=arms[False])


def _arm(site: Site, wanted: Wanted, transactions: int, number: int, probed: bool) -> Arm:
    connection = site.cluster.connection
    # The same state for each arm: nothing dirty, and the first change of each page writes the page to the log.
    site.cluster.checkpoint()
    with _watching(site, wanted) if probed else contextlib.nullcontext(_Unwatched()) as watcher:
        time.sleep(SETTLE_SECONDS)
        if not connection.wait_without_clients():
            raise Fault(f"{site.folder}: a client stays connected", remedy="see who uses the server, and end it")
        blocks, load_average = site.blocks_read(), readings.load_average()
        before = readings.read(site.postmaster, watcher.pid)
        done = site.run(transactions=transactions, seconds=None, pair=number)
        connection.wait_without_clients()
        used = readings.read(site.postmaster, watcher.pid).since(before)
    blocks = site.blocks_read() - blocks
    return Arm(done.transactions, done.seconds, used, blocks, load_average, watcher.probes)


@dataclass
class _Unwatched:
    pid: int | None = None
    probes: dict[str, Any] = field(default_factory=dict)


@contextmanager
def _watching(site: Site, wanted: Wanted) -> Iterator[_Unwatched]:
    """Probes attached inside; afterwards their figures are there."""
    out = site.folder / "watch"
    out.mkdir(exist_ok=True)
    running = Agent("watch", wanted.request(site, out))
    lines = running.lines()
    try:
        _check(_next(lines, "watching", running))
        found = _Unwatched(running.pid)
        yield found
        running.stop()
        found.probes = _next(lines, "watched", running)
        _check(found.probes)
        running.finish()
    except BaseException:
        running.kill()
        with contextlib.suppress(AgentFailed):
            running.finish()
        raise


def _next(lines: Iterator[dict[str, Any]], event: str, running: Agent) -> dict[str, Any]:
    for line in lines:
        if line["event"] == event:
            return dict(line["probes"])
    running.finish()
    raise Fault(f"the agent's watch ended without saying {event}", remedy="build the agent anew")


def _check(probes: dict[str, Any]) -> None:
    for name, probe in probes.items():
        if probe["status"] != "on":
            remedy = probe["remedy"] or "see ./plimsoll doctor"
            raise Fault(f"probe {name} was refused: {probe['reason']}", remedy=remedy)
