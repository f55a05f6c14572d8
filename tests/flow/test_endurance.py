"""A thousand connections for five minutes, and 60 % of capacity for ten: the identity, the memory and the lag. Long."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory

from plimsoll.analysis.trial.histograms import Histogram, merged
from plimsoll.record import Segment, open_run

pytestmark = pytest.mark.long

EXPERIMENT = """
format = 1
name = "endurance"
title = "Does it last?"

[target.settings]
autovacuum = false
shared_buffers = "256 MiB"

[workload]
name = "bank"
scale = 10
transaction = "select_only"
clients = 8

[probes]
page_cache = false

[warmup]
until = "none"

[measure]
seconds = 10

[design]
blocks = 1
"""
MEMORY_BYTES_MAX = 256 << 20
CAPACITY_SHARE = 0.6


def measured(laboratory: Laboratory, name: str, *sets: str) -> Segment:
    """The measured segment of the one trial, whose identity holds and whose data are right."""
    path = laboratory.state / "endurance.toml"
    path.write_text(EXPERIMENT)
    argv = [item for one in sets for item in ("--set", one)]
    answer = json.loads(laboratory.call("run", str(path), "--json", "--out", name, *argv, seconds=1200))
    trial = open_run(Path(answer["run"])).trials[0]
    assert trial.status == "finished", trial.data.get("reason")
    assert all(check["ok"] for check in trial.data["checks"])
    summary = trial.measure.summary or {}
    identity, health = summary["identity"], summary["health"]
    assert identity["planned"] == sum(identity[key] for key in ("done", "failed", "skipped", "lost"))
    assert identity["done"] == identity["planned"]
    assert (health["records_dropped"], health["connections_lost"]) == (0, 0)
    assert summary["verification"]["wrong"] == 0
    assert health["memory_bytes_max"] < MEMORY_BYTES_MAX
    print(name, identity, f"{health['memory_bytes_max'] / (1 << 20):.0f} MiB")
    return trial.measure


def done_per_second(segment: Segment) -> float:
    """Throughput."""
    summary: dict[str, Any] = segment.summary or {}
    return float(summary["identity"]["done"] / ((summary["ended_ns"] - summary["started_ns"]) / 1e9))


def lag_p99(segment: Segment, minute: int) -> float:
    """Of the transactions that ended in this minute, ns."""
    table = segment.lag_seconds
    assert table is not None
    cells = table[table["second"] // 60 == minute]
    found = merged([Histogram(cells["low_ns"], cells["high_ns"], cells["count"])]).percentile(0.99)
    assert found is not None
    return found


def test_a_thousand_connections_for_five_minutes(laboratory: Laboratory) -> None:
    segment = measured(laboratory, "thousand", "workload.clients=1000", "measure.seconds=300")
    # What no row was kept of is counted by second all the same.
    assert segment.latency_seconds is not None
    assert segment.latency_seconds["count"].sum() == (segment.summary or {})["identity"]["done"]


def test_ten_minutes_at_a_share_of_capacity(laboratory: Laboratory) -> None:
    capacity = done_per_second(measured(laboratory, "capacity"))
    rate = round(CAPACITY_SHARE * capacity)
    schedule = ("schedule.kind=poisson", f"schedule.rate={rate}")
    segment = measured(laboratory, "share", *schedule, "measure.seconds=600")
    assert done_per_second(segment) == pytest.approx(rate, rel=0.02)
    minutes = [lag_p99(segment, minute) for minute in range(10)]
    print(f"{rate}/s; p99 of the lag by minute, us:", *(f"{minute / 1e3:.0f}" for minute in minutes))
    # A backlog grows from minute to minute; the lag of a queue that is stable goes up and down.
    assert max(minutes[-3:]) < 3 * statistics.median(minutes)
