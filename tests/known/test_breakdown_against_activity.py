"""The breakdown against pg_stat_activity, sampled a hundred times a second below half load; and syncs of the log.

Shares are of all sessions' time, waiting for the client included. Compared is what pg_stat_activity shows with the time
blocked and on the run queue after it (activity_shares.py). What stays different: the server sets an event before the
system call, so the call's work on a CPU is the event's for pg_stat_activity and the CPU's for the probe. That is not
corrected for; all of it together is by how much the two differ in the time on a CPU, which is no wait and not judged.

The five minutes are judged by 2 points at the far end of the interval (two standard errors), on a machine that does
nothing else. The short form runs always, so it allows for a busy one: 3 points from what may at least and at most be an
event's, whoever else waits for the CPUs meanwhile, and nothing for sampling, whose error is below 1 point then. While
a CPU is taken away, by a hypervisor too, the backends have no rest and nobody looks, so that share of the time is
allowed for.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from activity_sampler import Sample, Sampler
from activity_shares import CLIENT_READ, HEAD, Share, off, outside, shares
from breakdown_load import Json, Loaded, summary_of, tables_of
from breakdown_server import NEEDS, Laboratory, laboratory, server_user

from plimsoll.environment.memory import page_cache
from plimsoll.target.postgres import DATABASE

pytestmark = pytest.mark.alone

CLIENTS = 4
CLOSED_S, SHORT_S, LONG_S = 2.0, 12.0, 300.0
BOUND, BOUND_SHORT = 0.02, 0.03
BIN_NS, BIN_SHORT_NS = 5_000_000_000, 500_000_000
EVICT_S = 0.2
# A request has fewer waits than a transaction, so its run queue says more of each.
BY_REQUEST: Json = {"rows": "requests"}


@dataclass(frozen=True)
class World:
    """A load, and the part of what it can do at most that it is asked for."""

    workload: Json
    part: float
    cold: bool  # its files are put out of the page cache all the time


WORLDS = {
    "bank": World({"name": "bank", "scale": 10, "seed": 7, "transaction": "tpcb_like"}, 0.25, cold=False),
    "orders": World({"name": "wpi_orders", "size_bytes": 256 << 20, "seed": 7}, 0.25, cold=True),
}


@pytest.fixture(scope="module")
def server(needs: Callable[..., None]) -> Iterator[Laboratory]:
    """Nobody but the load adds to the log: to more than a minimal one the background writer does."""
    needs(*NEEDS, "two CPUs")
    with laboratory(server_user()) as lab:
        with lab.session() as session:
            for setting in ("wal_level = minimal", "max_wal_senders = 0", "max_wal_size = '4GB'"):
                session.execute(f"alter system set {setting}")
        lab.server.stop()
        lab.server.start()
        yield lab


OF_DEFAULT = "bank"  # the other world asks the same with --long


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == OF_DEFAULT else pytest.mark.long) for name in WORLDS],
)
def loaded(request: pytest.FixtureRequest, server: Laboratory) -> tuple[World, Loaded]:
    world = WORLDS[request.param]
    return world, Loaded(server, request.param, world.workload).populate()


@contextlib.contextmanager
def _cold(lab: Laboratory, wanted: bool) -> Iterator[None]:
    """Clean pages of the data leave the page cache every moment."""
    files = [each for each in page_cache.files_of(lab.server.data / "base") if each.stat().st_size >= 1 << 20]
    stop = threading.Event()

    def evict() -> None:
        while not stop.wait(EVICT_S):
            for file in files:
                with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    thread = threading.Thread(target=evict, daemon=True)
    if wanted:
        thread.start()
    yield
    stop.set()
    if wanted:
        thread.join()


def _wal_syncs(lab: Laboratory) -> int:
    """pg_stat_wal's count, when nobody has anything left to add to it: backends tell as they end."""
    assert lab.server.connection.wait_without_clients()
    last, alike = -1, 0
    until = time.monotonic() + 20
    with lab.server.connection.open() as session:
        while alike < 3:
            assert time.monotonic() < until, "pg_stat_wal goes on growing"
            (found,) = session.execute("select wal_sync from pg_stat_wal").fetchone() or (-1,)
            alike = alike + 1 if found == last else 0
            last = int(found)
            time.sleep(0.5)
    return last


@dataclass(frozen=True)
class Measured:
    """What both said of the same segment."""

    summary: Json
    rows: np.ndarray
    waits: np.ndarray
    samples: list[Sample]
    unseen: float  # share of the time
    wal_syncs: int

    def shares(self, bin_ns: int) -> list[Share]:
        """Of every event; shown, too."""
        found = shares(self.rows, self.waits, self.summary, self.samples, bin_ns)
        print(HEAD, *found, sep="\n")
        return found


def _measure(loaded: tuple[World, Loaded], seconds: float) -> Measured:
    world, load = loaded
    lab = load.lab
    with _cold(lab, world.cold), contextlib.ExitStack() as stack:
        most = summary_of(load.run(CLIENTS, CLOSED_S).measure)
        rate = most["identity"]["done"] / (most["ended_ns"] - most["started_ns"]) * 1e9
        session, stopper = (stack.enter_context(lab.server.connection.open()) for _ in range(2))
        with Sampler(session, stopper, DATABASE) as sampler:
            before = _wal_syncs(lab)
            trial = load.run(CLIENTS, seconds, {"kind": "constant", "rate": rate * world.part}, probe=BY_REQUEST)
            after = _wal_syncs(lab)
    summary = summary_of(trial.measure)
    _, rows, waits = tables_of(trial.measure)
    late = np.percentile([each.begin_ns - each.due_ns for each in sampler.samples], [50, 99]) / 1e6
    took = np.percentile([each.end_ns - each.begin_ns for each in sampler.samples], [50, 99]) / 1e6
    print(
        f"{rate:.0f} a second at most, {rate * world.part:.0f} asked for; {_busy(trial.measure):.0%} of the CPUs busy"
    )
    print(f"{len(sampler.samples)} looks, median and p99 in ms: late by {late.round(2)}, took {took.round(2)}")
    return Measured(summary, rows, waits, sampler.samples, sampler.unseen(), after - before)


def _busy(segment: Any) -> float:
    """Of the machine's CPUs in the segment, with whatever else ran on it."""
    host = segment.series("host")
    idle, *work = (
        float(host[name][-1] - host[name][0]) for name in ("cpu_idle", "cpu_user", "cpu_system", "cpu_iowait")
    )
    return (work[0] + work[1]) / (idle + sum(work))


def _judge_syncs(measured: Measured) -> None:
    found = measured.summary["probes"]["breakdown"]["syncs"]
    print(f"syncs: {found}; pg_stat_wal: {measured.wal_syncs}")
    assert found["wal"] == measured.wal_syncs > 0


def test_a_short_while(loaded: tuple[World, Loaded]) -> None:
    measured = _measure(loaded, SHORT_S)
    found = measured.shares(BIN_SHORT_NS)
    assert max(share.binomial for share in found) < 0.01
    assert outside(found, BOUND_SHORT + measured.unseen) == []
    _judge_syncs(measured)


@pytest.mark.long
def test_five_minutes(loaded: tuple[World, Loaded]) -> None:
    measured = _measure(loaded, LONG_S)
    found = measured.shares(BIN_NS)
    (client,) = (share for share in found if share.event == CLIENT_READ)
    assert client.probe > 0.5, "not below half load: something else keeps the machine busy"
    assert off(found, BOUND) == []
    _judge_syncs(measured)
