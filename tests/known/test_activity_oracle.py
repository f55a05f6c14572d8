"""What holds the breakdown against pg_stat_activity can refuse: shares a few points apart, an event not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from activity_sampler import ON_CPU, Sample
from activity_shares import CLIENT_READ, off, outside, shares
from breakdown_watch import MS, QUEUED

BOUND, WIDE = 0.02, 0.03
PID, OTHER_PID, LENGTH_NS = 11, 12, 10 * MS
SYNC = 7


def _by_hand(requests: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Two sessions. A request: 2 ms on a CPU, 2 on the run queue after two wake-ups, 6 in a sync; then 10 of pause."""
    columns = ("request", "backend_pid", "flags", "arrived_ns", "ended_ns", "cpu_ns", "run_queue_ns", "after_ns")
    rows = np.zeros(2 * requests, [(name, "<i8") for name in columns])
    rows["request"] = np.arange(2 * requests)
    rows["backend_pid"] = np.tile([PID, OTHER_PID], requests)
    rows["arrived_ns"] = np.repeat(np.arange(requests), 2) * 2 * LENGTH_NS
    rows["ended_ns"] = rows["arrived_ns"] + LENGTH_NS
    rows["cpu_ns"] = rows["run_queue_ns"] = 2 * MS
    rows["after_ns"] = MS
    waits = np.zeros(2 * requests, [(name, "<i8") for name in ("request", "wait", "bucket", "count", "ns")])
    waits["request"], waits["wait"], waits["count"], waits["ns"] = rows["request"], SYNC, 1, 6 * MS
    probe = {"wait_names": {str(SYNC): "IO:WALSync"}}
    ended = int(rows["ended_ns"][-1])
    summary = {"backend_pids": [PID, OTHER_PID], "started_ns": 0, "ended_ns": ended, "probes": {"breakdown": probe}}
    return rows, waits, summary


def _looks(until_ns: int, syncs_in_100: int) -> list[Sample]:
    """A hundred looks a second: in so many both sessions sync, in fifteen they are on a CPU, else with the client."""
    found = []
    for number, at in enumerate(range(0, until_ns, LENGTH_NS)):
        others = ON_CPU if number % 100 >= 85 else CLIENT_READ
        event = "IO:WALSync" if number % 100 < syncs_in_100 else others
        found.append(Sample(at, at, at, {PID: event, OTHER_PID: event}))
    return found


def test_shares_are_as_worked_out_by_hand() -> None:
    rows, waits, summary = _by_hand(1000)
    found = {each.event: each for each in shares(rows, waits, summary, _looks(summary["ended_ns"], 35), 1_000_000_000)}
    sync, client = found["IO:WALSync"], found[CLIENT_READ]
    # Of 20 ms: 6 blocked and half of 2 on the run queue; the client the other half, and 10 less 1 after the answer.
    assert [sync.blocked, sync.probe, sync.most] == pytest.approx([6 / 20, 7 / 20, 8 / 20])
    assert [client.blocked, client.probe, client.most] == pytest.approx([9 / 20, 10 / 20, 11 / 20])
    assert (sync.sampled, client.sampled) == pytest.approx((0.35, 0.50))
    assert (found[ON_CPU].probe, found[ON_CPU].sampled) == pytest.approx((3 / 20, 0.15))
    assert sync.binomial == pytest.approx((0.35 * 0.65 / 3400) ** 0.5)
    assert sync.error < 1e-6, "each second was alike"


def test_what_waited_already_was_not_woken() -> None:
    rows, waits, summary = _by_hand(1000)
    rows["flags"] = QUEUED
    found = {each.event: each for each in shares(rows, waits, summary, _looks(summary["ended_ns"], 35), 1_000_000_000)}
    assert found["IO:WALSync"].probe == pytest.approx(8 / 20)


def _names(lines: list[str]) -> list[str]:
    return sorted(line.split()[0] for line in lines)


BOTH = sorted([CLIENT_READ, "IO:WALSync"])


@pytest.mark.parametrize(
    ("seen", "refused", "refused_widely"),
    [
        (34, [], []),
        (36, [], []),
        (32, BOTH, []),
        (38, BOTH, []),
        (26, BOTH, BOTH),
        (44, BOTH, BOTH),
        (0, BOTH, BOTH),
    ],
)
def test_three_points_are_too_many(seen: int, refused: list[str], refused_widely: list[str]) -> None:
    """By the record 35 of 100 are in a sync, and from 30 to 40 may be."""
    rows, waits, summary = _by_hand(1000)
    found = shares(rows, waits, summary, _looks(summary["ended_ns"], seen), 1_000_000_000)
    assert _names(off(found, BOUND)) == refused
    assert _names(outside(found, WIDE)) == refused_widely


def test_an_event_that_the_probe_does_not_know_is_refused() -> None:
    rows, waits, summary = _by_hand(1000)
    found = shares(rows, waits[:0], summary, _looks(summary["ended_ns"], 35), 1_000_000_000)
    assert "IO:WALSync" in _names(off(found, BOUND)) and "IO:WALSync" in _names(outside(found, WIDE))
