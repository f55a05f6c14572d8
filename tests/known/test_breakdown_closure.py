"""The account closes under load: every request that was sent is counted, and the parts sum to what the client saw.

The wall time is the client's record, less the ways to the server and back; no bucket is what the others leave.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breakdown_load import Json, Loaded, requests_in, summary_of, tables_of
from breakdown_server import NEEDS, laboratory, server_user
from breakdown_truth import children, status_of
from breakdown_watch import MS, QUEUED
from scipy.stats import binom

from plimsoll.analysis.breakdown.breakdown import CLOSURE_MAX, UNNAMED_MAX, caveats
from plimsoll.analysis.breakdown.parts import BUCKETS
from plimsoll.analysis.breakdown.trial import reading
from plimsoll.record import Trial

pytestmark = pytest.mark.alone

SCALE, ORDERS_BYTES, SEED = 4, 64 << 20, 7
SECONDS = 1.0
CLIENTS = 8  # where one number of them is enough
LOOKED_AT_S = 2.5
# A request that waited already when the one before was answered may be given to the transaction after its own.
WITHOUT_MAX = 0.005
UNTOLD_MAX = 2
BLOCKS_MAX, CPU_MAX = 0.01, 0.02
ONE_IN_A_MILLION = 1e-6
A_SWITCH_NS = 2_000
NAMELESS = 0xFEFFFFFE  # the number of a system call that nobody makes
Falsify = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
BANK: Json = {"name": "bank", "scale": SCALE, "seed": SEED}
ORDERS: Json = {"name": "wpi_orders", "size_bytes": ORDERS_BYTES, "seed": SEED}
ORDER_ENTRY: Json = {"name": "order_entry", "warehouses": 2, "seed": SEED}
WORKLOADS: dict[str, tuple[str, Json]] = {
    "select-only": ("bank", {"transaction": "select_only"}),
    "tpcb-like": ("bank", {"transaction": "tpcb_like"}),
    "wpi_orders": ("orders", {}),
    "order_entry": ("order_entry", {}),
}


@dataclass(frozen=True)
class Prepared:
    """Data sets by schema."""

    sets: dict[str, Loaded]

    def run(self, name: str, clients: int, seconds: float = SECONDS, **more: Any) -> Trial:
        schema, settings = WORKLOADS[name]
        return self.sets[schema].run(clients, seconds, **settings, **more)

    @property
    def server_pid(self) -> int:
        """The server that all of them are in."""
        (pid,) = {each.lab.server.pid() for each in self.sets.values()}
        assert pid is not None
        return pid


@pytest.fixture(scope="module")
def prepared(needs: Callable[..., None]) -> Iterator[Prepared]:
    needs(*NEEDS)
    with laboratory(server_user()) as lab:
        data = {"bank": BANK, "orders": ORDERS, "order_entry": ORDER_ENTRY}
        found = {schema: Loaded(lab, schema, workload) for schema, workload in data.items()}
        yield Prepared({schema: each.populate() for schema, each in found.items()})


def _not_closed(found: Json) -> list[str]:
    """Why it does not close, type by type; nothing if it does."""
    wrong = [f"{what}: {count}" for what, count in found["faults"].items()]
    for kind, one in found["types"].items():
        closure = one["closure"]
        share, unnamed = closure["share"], closure["unnamed_share"]
        print(f"{kind}: {share:+.4%}, absolute {closure['absolute_share']:.4%}, without a name {unnamed:.3%}")
        if abs(share) > CLOSURE_MAX:
            wrong.append(f"{kind}: {share:+.2%} of the time is in no bucket")
        if unnamed > UNNAMED_MAX:
            wrong.append(f"{kind}: {unnamed:.2%} of the time is in waits without a bucket of their own")
    return wrong


def _read(trial: Trial) -> Json:
    found = reading(trial)
    assert found is not None and found["reason"] is None
    return found


@pytest.mark.parametrize("clients", [1, 8, 32])
@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_it_closes(prepared: Prepared, workload: str, clients: int) -> None:
    trial = prepared.run(workload, clients)
    summary = summary_of(trial.measure)
    transactions, rows, _ = tables_of(trial.measure)
    done = summary["identity"]["done"]
    assert done == (transactions["outcome"] == 0).sum() > 0
    counts = summary["probes"]["breakdown"]["request_counts"]
    # An answer whose end the kernel could not read then (a page on the move) may end no request, and the
    # kernel does not tell of every one; the report says so.
    missing = summary["requests_sent"] - requests_in(rows)
    assert 0 <= missing <= counts["unread_answers"] + UNTOLD_MAX, counts
    found = _read(trial)
    print(found["joined"], found["counts"])
    assert _not_closed(found) == [] and len(caveats(found)) == (missing > 0), caveats(found)
    assert len(found["types"]) == (1 + len(np.unique(transactions["kind"][transactions["outcome"] == 0])))
    without = done - found["types"]["all"]["bands"]["all"]["transactions"]
    print(f"{without} of {done} transactions without a breakdown")
    most = binom.isf(ONE_IN_A_MILLION, done, WITHOUT_MAX)
    assert without <= most, f"{without} of {done} transactions have no breakdown"


@dataclass(frozen=True)
class Look:
    """What the kernel says of the server, by process: time on a CPU, and how often it was given up to wait."""

    at_ns: dict[int, int]
    cpu_ns: dict[int, int]
    blocks: dict[int, int]
    stolen_ns: int

    @staticmethod
    def at(server: int) -> Look:
        look = Look({}, {}, {}, _stolen_ns())
        for pid in children(server):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                look.cpu_ns[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
                look.blocks[pid] = status_of(pid, "voluntary_ctxt_switches")
                look.at_ns[pid] = time.monotonic_ns()
        return look


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_the_kernel_counts_the_same(prepared: Prepared, workload: str) -> None:
    """Parts that miss something close, too: so blocks and time on a CPU are held against the kernel's own counts."""
    looks: list[Look] = []
    server = prepared.server_pid
    trial = prepared.run(workload, CLIENTS, LOOKED_AT_S, each_second=lambda: looks.append(Look.at(server)))
    begin, end, *_ = looks
    pids = summary_of(trial.measure)["backend_pids"]
    assert len(pids) == CLIENTS
    cpu = sum(end.cpu_ns[pid] - begin.cpu_ns[pid] for pid in pids)
    blocks = sum(end.blocks[pid] - begin.blocks[pid] for pid in pids)
    found_cpu, found_blocks, cpu_max, blocks_max = _found(trial, begin, end)
    stolen = end.stolen_ns - begin.stolen_ns
    print(
        f"blocks: {found_blocks} of {blocks} (edges {blocks_max}); CPU: {found_cpu / MS:.1f} ms of {cpu / MS:.1f}",
        end="",
    )
    print(f" (edges {cpu_max / MS:.1f}, stolen {stolen / MS:.0f})")
    # Some end between the decision to wait and the switch, and are no waits; none is counted twice.
    fewer = binom.isf(ONE_IN_A_MILLION, blocks, BLOCKS_MAX) + blocks_max
    assert blocks > 0 and -fewer <= found_blocks - blocks <= blocks * BLOCKS_MAX + blocks_max
    # The kernel charges a switch to who comes, the probe to who leaves; and what a hypervisor took is nobody's.
    vague = blocks * A_SWITCH_NS + cpu * CPU_MAX + cpu_max
    assert cpu - vague <= found_cpu <= cpu + stolen + vague


def _found(trial: Trial, begin: Look, end: Look) -> tuple[int, int, int, int]:
    """CPU time and blocks of what ended between two looks, and of each the largest of a row of every backend."""
    _, rows, waits = tables_of(trial.measure)
    cpu = rows["cpu_ns"] + rows["after_ns"]
    # What arrived and was not there already ended a wait for the client.
    blocks = np.bincount(np.searchsorted(rows["request"], waits["request"]), waits["count"], len(rows)).astype(np.int64)
    blocks += rows["flags"] & QUEUED == 0
    sums = np.zeros(4, np.int64)
    for pid in summary_of(trial.measure)["backend_pids"]:
        ended = np.where(rows["backend_pid"] == pid, rows["ended_ns"], 0)
        mine = (begin.at_ns[pid] <= ended) & (ended < end.at_ns[pid])
        sums += [cpu[mine].sum(), blocks[mine].sum(), cpu[mine].max(initial=0), blocks[mine].max(initial=0)]
    found_cpu, found_blocks, cpu_max, blocks_max = sums.tolist()
    return found_cpu, found_blocks, cpu_max, blocks_max


def _stolen_ns() -> int:
    return int(Path("/proc/stat").read_text().split(None, 9)[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _without_syncs(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows, waits[waits["bucket"] != BUCKETS.index("wal_sync")]


def _without_cpu(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows["cpu_ns"] = 0
    return rows, waits


def _cpu_as_nameless_waits(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    added = np.zeros(len(rows), waits.dtype)
    added["request"], added["ns"], added["count"] = rows["request"], rows["cpu_ns"], 1
    added["bucket"], added["wait"] = BUCKETS.index("unattributed"), NAMELESS
    rows["cpu_ns"] = 0
    return rows, np.concatenate([waits, added])


def _syncs_doubled(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    waits["ns"][waits["bucket"] == BUCKETS.index("wal_sync")] *= 2
    return rows, waits


def _syncs_said_twice(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows, np.concatenate([waits, waits[waits["bucket"] == BUCKETS.index("wal_sync")]])


@pytest.fixture(scope="module")
def honest(prepared: Prepared) -> Trial:
    """A segment of the bank with many syncs, as it was recorded."""
    return prepared.run("tpcb-like", 1)


@pytest.mark.parametrize(
    ("falsify", "said"),
    [
        (_without_syncs, "is in no bucket"),
        (_without_cpu, "is in no bucket"),
        (_cpu_as_nameless_waits, "without a bucket of their own"),
        (_syncs_doubled, "parts exceed"),
        (_syncs_said_twice, "a wait is counted twice"),
    ],
)
def test_a_falsified_record_does_not(honest: Trial, tmp_path: Path, falsify: Falsify, said: str) -> None:
    assert _not_closed(_read(honest)) == []
    shutil.copytree(honest.path, tmp_path / "false")
    rows, waits = honest.measure.breakdown, honest.measure.breakdown_waits
    assert rows is not None and waits is not None
    rows, waits = falsify(rows.copy(), waits.copy())
    np.save(tmp_path / "false/measure/breakdown.npy", rows)
    np.save(tmp_path / "false/measure/breakdown_waits.npy", waits)
    found = _read(Trial(tmp_path / "false", {}))
    assert any(said in why for why in _not_closed(found)), _not_closed(found)
    assert caveats(found) != []
    assert found["faults"] == {} or found["types"] == {}, "what is counted twice gives no figures"
