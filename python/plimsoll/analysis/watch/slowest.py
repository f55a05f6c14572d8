"""The transactions of a watched server one by one: their percentiles, and the slowest with what they were made of.

From breakdown.npy, a row a transaction; those still under way at the end are rows too (flag 64) and count from where
they began to the end of the watch.
"""

from __future__ import annotations

import numpy as np

from plimsoll.analysis.breakdown.parts import CPU, RUN_QUEUE, in_order
from plimsoll.analysis.watch.document import Latency, SlowTransaction
from plimsoll.analysis.watch.heard import Activity
from plimsoll.record import Segment, read_table
from plimsoll.record.summary import Probe

SLOWEST = 10
OPEN = 64
PERCENTILES = (50, 95, 99)


def transactions(segment: Segment, probed: Probe, own_pids: list[int], names: Activity) -> Latency | None:
    """Their percentiles and the slowest; None where there is no row."""
    rows = segment.breakdown
    if rows is None or not len(rows):
        return None
    places = np.nonzero(~np.isin(rows["backend_pid"], own_pids))[0]
    if not len(places):
        return None
    lengths = (rows["ended_ns"] - rows["arrived_ns"])[places]
    is_open = (rows["flags"][places] & OPEN) != 0
    ended = lengths[~is_open]
    worst = places[np.argsort(-lengths, kind="stable")[:SLOWEST]]
    return {
        "count": len(ended),
        "open": int(is_open.sum()),
        "mean_ns": float(ended.mean()) if len(ended) else None,
        "percentiles": {str(percent): float(np.percentile(ended, percent)) for percent in PERCENTILES}
        if len(ended)
        else {},
        "max_ns": int(ended.max()) if len(ended) else None,
        "slowest": _slowest(segment, rows, worst, probed, names),
    }


def _slowest(
    segment: Segment, rows: np.ndarray, worst: np.ndarray, probed: Probe, names: Activity
) -> list[SlowTransaction]:
    waits, seen = segment.breakdown_waits, read_table(segment.path / "seen.npy")
    looks = read_table(segment.path / "looks.npy")
    of_worst = waits[np.isin(waits["request"], rows["request"][worst])] if waits is not None else None
    result: list[SlowTransaction] = []
    for place in worst.tolist():
        row = rows[place]
        parts = {CPU: int(row["cpu_ns"]), RUN_QUEUE: int(row["run_queue_ns"])}
        of_request = of_worst[of_worst["request"] == row["request"]] if of_worst is not None else ()
        for wait in of_request:
            bucket = str(probed["buckets"][wait["bucket"]])
            parts[bucket] = parts.get(bucket, 0) + int(wait["ns"])
        result.append(
            {
                "pid": int(row["backend_pid"]),
                "began_ns": int(row["arrived_ns"]),
                "ns": int(row["ended_ns"] - row["arrived_ns"]),
                "requests": int(row["requests"]) if "requests" in (rows.dtype.names or ()) else None,
                "open": bool(row["flags"] & OPEN),
                "parts": {name: parts[name] for name in in_order(set(parts)) if parts[name]},
                "query": _query(row, looks, seen, names),
            }
        )
    return result


def _query(row: np.void, looks: np.ndarray | None, seen: np.ndarray | None, names: Activity) -> str | None:
    """What looks saw it do most often."""
    if looks is None or seen is None or not len(looks) or not len(seen):
        return None
    first, last = np.searchsorted(looks["t_ns"], [row["arrived_ns"], row["ended_ns"]])
    if first == last:
        return None
    wanted = (seen["pid"] == row["backend_pid"]) & (seen["look"] >= looks["look"][first])
    wanted &= seen["look"] <= looks["look"][last - 1]
    if not wanted.any():
        return None
    numbers, counts = np.unique(seen["query"][wanted], return_counts=True)
    text = names["queries"].get(str(int(numbers[np.argmax(counts)])))
    return None if text is None else text["text"]
