"""The slowest transactions of a trial as timelines: the way in, each row with its parts, the gaps, the way out.

A row is a transaction of the server, the waits for its client among its parts, or a single request. Within it only sums
are known: its parts stand one after another in the order of the buckets, not in the order in which they happened.
"""

from typing import Any, cast

import numpy as np

from plimsoll.analysis.breakdown.join import Joined
from plimsoll.analysis.breakdown.parts import CLIENT, CPU, LAG, RUN_QUEUE, WAY_IN, WAY_OUT, in_order
from plimsoll.analysis.breakdown.reading import Segment, SlowOne
from plimsoll.analysis.breakdown.sampling import between, requests_in
from plimsoll.analysis.breakdown.waits import wait_name
from plimsoll.record.summary import Probe

SLOWEST = 10
SEGMENTS_MAX = 160


def slowest(joined: Joined, done: np.ndarray, kinds: list[str], probed: Probe) -> list[SlowOne]:
    """The slowest of the `done` transactions (a mask), slowest first; times in nanoseconds from the planned start."""
    rows = joined.transactions
    latency = rows["end_ns"] - rows["planned_ns"]
    places = np.nonzero(done)[0]
    worst = places[np.lexsort((rows["index"][places], -latency[places]))][:SLOWEST]
    of_worst = np.isin(joined.wait_owner, worst)
    waits, row = joined.waits[of_worst], joined.wait_row[of_worst]
    answered = requests_in(joined.rows)
    requests = between(answered, joined.first, joined.last)
    result: list[SlowOne] = []
    for place in worst.tolist():
        transaction = rows[place]
        segments = _segments(joined, answered, waits, row, place, probed)
        result.append(
            {
                "index": int(transaction["index"]),
                "kind": kinds[transaction["kind"]]
                if transaction["kind"] < len(kinds)
                else f"kind {transaction['kind']}",
                "backend_pid": int(transaction["backend_pid"]),
                "latency_ns": int(latency[place]),
                "requests": int(requests[place]),
                "segments": segments[:SEGMENTS_MAX],
                "cut": len(segments) > SEGMENTS_MAX,
            }
        )
    return result


def _segments(
    joined: Joined, answered: np.ndarray, waits: np.ndarray, row: np.ndarray, place: int, probed: Probe
) -> list[Segment]:
    """In time."""
    transaction = joined.transactions[place]
    zero = int(transaction["planned_ns"])
    result: list[Segment] = []

    def add(part: str, begin: int, end: int, **more: Any) -> None:
        if end > begin:
            result.append(cast(Segment, {"part": part, "at_ns": begin - zero, "ns": end - begin, **more}))

    add(LAG, zero, int(transaction["start_ns"]))
    before, name = int(transaction["start_ns"]), WAY_IN
    for number, request in enumerate(range(int(joined.first[place]), int(joined.last[place])), 1):
        asked, where = joined.rows[request], {"row": number, "requests": int(answered[request])}
        add(name, before, int(asked["arrived_ns"]))
        at = int(asked["arrived_ns"])
        for part, spent, waited in _in_row(asked, waits[row == request], probed):
            add(part, at, at + spent, **where, **({"wait": waited} if waited else {}))
            at += spent
        before, name = int(asked["ended_ns"]), CLIENT
    add(WAY_OUT, before, int(transaction["end_ns"]))
    return result


def _in_row(asked: np.void, waits: np.ndarray, probed: Probe) -> list[tuple[str, int, str]]:
    """Part, nanoseconds and the wait's name, in the order of the parts."""
    buckets, names = [str(name) for name in probed["buckets"]], probed.get("wait_names") or {}
    parts = [(CPU, int(asked["cpu_ns"]), ""), (RUN_QUEUE, int(asked["run_queue_ns"]), "")]
    for wait in waits:
        bucket = buckets[wait["bucket"]]
        parts.append((bucket, int(wait["ns"]), wait_name(int(wait["wait"]), bucket, int(wait["cause"]), names)))
    order = in_order({part for part, _, _ in parts})
    return sorted(parts, key=lambda part: order.index(part[0]))
