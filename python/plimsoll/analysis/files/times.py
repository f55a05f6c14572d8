"""Where the time of each operation on files went, from its plan to its end: waiting for a session, on a CPU, asleep and
for what.

The facts that constrain it: an operation begins and ends on a CPU, so each time that its thread was off one lies whole
within an operation or between two; and those times were seen at the kernel's switches, the operation's by the load's
own clock, which is the same. What an operation was not off a CPU it was on one, between two switches that were seen.
That none was missed is held against the kernel's own count of each thread's switches (`missed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plimsoll.record import Segment

DONE, FAILED = 0, 1
PROBE: Final = "file_waits"
LAG: Final = "lag"
CPU: Final = "cpu"
RUN_QUEUE: Final = "run_queue"
COMPLETION: Final = "completion"
# In the order in which they are shown; what the record has beside is behind them.
ORDER: Final = (
    LAG,
    CPU,
    RUN_QUEUE,
    "page",
    "writeback",
    "throttled",
    "journal",
    "lock",
    "device",
    "frozen",
    "socket",
    "pause",
    "nfs_read",
    "nfs_write",
    "nfs_commit",
    "nfs_attributes",
    "nfs_call",
    "other_wait",
    COMPLETION,
)


@dataclass(frozen=True)
class Times:
    """Operations of one segment that were performed, in nanoseconds; `parts` of each add up to its latency."""

    kind: np.ndarray
    latency: np.ndarray
    parts: dict[str, np.ndarray]
    straddling: int  # waits that seem to last beyond the operation's end, up to which they count: see `arrivals_unseen`
    missed: (
        int  # switches that the kernel has counted and nobody has seen: 0, or time asleep is taken for that on a CPU
    )


def _performed(segment: Segment) -> np.ndarray | None:
    """Rows of operations that were performed; None where there are none."""
    rows = segment.transactions
    if rows is None:
        return None
    rows = rows[np.isin(rows["outcome"], (DONE, FAILED))]
    return rows if len(rows) else None


def completions(segment: Segment) -> Times | None:
    """Of operations on a ring, which the kernel performs while their thread does others: waiting for the thread to hand
    them over, and from there until it has heard that they are done. None where no operation has a row."""
    rows = _performed(segment)
    if rows is None:
        return None
    parts = {LAG: rows["start_ns"] - rows["planned_ns"], COMPLETION: rows["end_ns"] - rows["start_ns"]}
    latency = (rows["end_ns"] - rows["planned_ns"]).astype(float)
    return Times(rows["kind"], latency, {name: values.astype(float) for name, values in parts.items()}, 0, 0)


def times(segment: Segment) -> Times | None:
    """None where the probe was not on, or no operation has a row."""
    entry, waits, rows = segment.probes.get(PROBE) or {}, segment.file_waits, _performed(segment)
    if entry.get("status") != "on" or waits is None or rows is None:
        return None
    rows = rows[np.lexsort((rows["start_ns"], rows["connection"]))]
    waits = waits[np.lexsort((waits["left_ns"], waits["connection"]))]
    owner, straddling = _owners(rows, waits)
    buckets = list(entry.get("buckets") or [])
    of_place = np.array([buckets.index(place["bucket"]) for place in entry.get("places") or []], dtype=np.int64)
    within = owner >= 0
    owned, mine = owner[within], waits[within]
    off = np.minimum(mine["back_ns"], rows["end_ns"][owned]) - mine["left_ns"]
    queued = np.minimum(mine["run_queue_ns"], off).astype(float)
    asleep = off - queued
    count = len(rows)
    parts = {name: np.zeros(count) for name in buckets}
    for number, name in enumerate(buckets):
        chosen = of_place[mine["place"]] == number
        parts[name] += np.bincount(owned[chosen], asleep[chosen], count)
    parts[RUN_QUEUE] = parts.get(RUN_QUEUE, np.zeros(count)) + np.bincount(owned, queued, count)
    parts[CPU] = (rows["end_ns"] - rows["start_ns"]) - sum(parts.values(), np.zeros(count))
    parts[LAG] = (rows["start_ns"] - rows["planned_ns"]).astype(float)
    latency = (rows["end_ns"] - rows["planned_ns"]).astype(float)
    ordered = {name: parts[name] for name in _in_order(parts)}
    return Times(rows["kind"], latency, ordered, straddling, _missed(waits))


def _in_order(parts: dict[str, Any]) -> list[str]:
    known = [name for name in ORDER if name in parts]
    return known + [name for name in parts if name not in ORDER]


def _owners(rows: np.ndarray, waits: np.ndarray) -> tuple[np.ndarray, int]:
    """The place in `rows` of the operation that each wait begins in, or -1; and how many seem to end behind it. Both
    are sorted by session and time."""
    owner = np.full(len(waits), -1)
    straddling = 0
    for session in np.unique(waits["connection"]):
        first, last = np.searchsorted(rows["connection"], (session, session + 1))
        begin, end = np.searchsorted(waits["connection"], (session, session + 1))
        if first == last:
            continue
        one, own = waits[begin:end], rows[first:last]
        at = np.searchsorted(own["start_ns"], one["left_ns"], side="right") - 1
        is_begun = at >= 0
        ends = own["end_ns"][np.maximum(at, 0)]
        inside = is_begun & (one["left_ns"] < ends)
        straddling += int((inside & (one["back_ns"] > ends)).sum())
        owner[begin:end][inside] = at[inside] + first
    return owner, straddling


def _missed(waits: np.ndarray) -> int:
    """How many switches the kernel has counted from each of a thread's waits to its next, beside the one."""
    same = waits["connection"][1:] == waits["connection"][:-1]
    return int((waits["switches"][1:] - waits["switches"][:-1] - 1)[same].sum())
