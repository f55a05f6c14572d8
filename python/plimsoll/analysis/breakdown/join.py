"""Transactions, as the load saw them, joined with the record's rows of the backend that carried them.

A row (a transaction of the server, or a single request) belongs to the transaction of its backend in which it arrived,
whole, even where its end was noted after the client had the answer and went on; one whose message was never waited for
counts from the answer before it, and belongs where it was answered. What belongs to none is counted; time that would
be counted twice is a fault. All times are whole nanoseconds and all sums are exact.
"""

from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.breakdown import sampling as breakdown_sampling
from plimsoll.analysis.breakdown.parts import CLIENT, CPU, LAG, NEVER_BLOCKED, RUN_QUEUE, WAY_IN, WAY_OUT
from plimsoll.analysis.breakdown.sampling import QUEUED, between, requests_in
from plimsoll.analysis.trial.readings import SKIPPED

# Two looks at the clock at one switch of tasks: so much may the parts of a request exceed it and be no fault.
CLOCK_NS = 1_000
# So long before its answer the message of a request was there for certain: no server executes it in less.
READ_BEFORE_NS = 5_000
_WAIT_KEY = ("cause", "bucket", "wait", "request")


@dataclass(frozen=True)
class Joined:
    """Transactions and the rows of their backends, ordered by backend and time, and the waits as they were.

    `first` and `last` (exclusive) are each transaction's rows, `owner` is each row's transaction or -1; `wait_row` is
    each wait's row and `wait_owner` its transaction, or -1. `whole`: all that was sent for a transaction is in its
    rows; `served`: and was kept, so that it has a breakdown.
    """

    transactions: np.ndarray
    rows: np.ndarray
    waits: np.ndarray
    first: np.ndarray
    last: np.ndarray
    owner: np.ndarray
    wait_row: np.ndarray
    wait_owner: np.ndarray
    whole: np.ndarray
    served: np.ndarray
    counts: dict[str, int]

    def over_rows(self, values: np.ndarray) -> np.ndarray:
        """A column of the rows summed over each transaction's."""
        return between(values, self.first, self.last)


def _by_backend(table: np.ndarray, time: str) -> np.ndarray:
    return table[np.lexsort((table[time], table["backend_pid"]))]


def _spans(pids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each wanted backend's rows begin and end, (backends, 2)."""
    return np.stack([np.searchsorted(pids, wanted, side) for side in ("left", "right")], axis=1)


def join(
    transactions: np.ndarray, rows: np.ndarray, waits: np.ndarray, load: list[int] | None = None, highest: int = 1
) -> Joined:
    """Give each row to its transaction. Transactions that were skipped or have no backend take no part.

    `load`: the backends of the load, those of the transactions unless given; requests of others are counted apart.
    `highest`: the highest `one_in` that the probe says of itself.
    """
    done, highest = _by_backend(_begun(transactions), "start_ns"), breakdown_sampling.one_in_max(rows, highest)
    asked = _by_backend(rows, "arrived_ns")
    first, last, placed = np.zeros(len(done), np.int64), np.zeros(len(done), np.int64), _placed(asked)
    sent = breakdown_sampling.column(done, "requests", 0) if highest == 1 else np.zeros(len(done), np.int64)
    straddling = np.zeros(len(asked), bool)
    backends = np.unique(np.concatenate([done["backend_pid"], asked["backend_pid"]]))
    spans = np.concatenate([_spans(done["backend_pid"], backends), _spans(asked["backend_pid"], backends)], axis=1)
    for low, high, begin, end in spans.tolist():
        of_load, of_server = done[low:high], asked[begin:end]
        bounds = _bounds(placed[begin:end], of_load)
        if _settle(placed[begin:end], of_server, of_load, sent[low:high], bounds):
            bounds = _bounds(placed[begin:end], of_load)
        first[low:high], last[low:high] = begin + bounds[0], begin + bounds[1]
        starts, arrived = of_load["start_ns"], np.searchsorted(of_load["start_ns"], placed[begin:end], "right")
        straddling[begin:end] = np.searchsorted(starts, of_server["ended_ns"], "left") > arrived
    owner, row = _owner(first, last, len(asked)), _rows_of(waits, asked)
    whole = breakdown_sampling.whole(done, asked, first, last, highest)
    served = whole & breakdown_sampling.kept(done, asked, owner, highest)
    ours = np.isin(asked["backend_pid"], load or np.unique(done["backend_pid"])) | (owner >= 0)
    counts = _of_requests(done, asked, owner, straddling & ours, ours)
    counts |= _of_transactions(done, last > first, whole, served, highest > 1)
    wait_owner = np.where(row >= 0, _at(owner, row), -1)
    return Joined(done, asked, waits, first, last, owner, row, wait_owner, whole, served, counts)


def _placed(asked: np.ndarray) -> np.ndarray:
    """A moment of each row at which its first message was there; in the order of the rows of a backend."""
    latest = np.maximum(asked["ended_ns"] - READ_BEFORE_NS, asked["arrived_ns"])
    return np.where(asked["flags"] & QUEUED, latest, asked["arrived_ns"])


def _bounds(placed: np.ndarray, done: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of one backend the first and last (exclusive) row of each transaction."""
    first = np.searchsorted(placed, done["start_ns"], "left")
    # A message that arrives in the very nanosecond in which the next transaction starts is the next one's.
    limit = np.append(first[1:], len(placed))[: len(done)]
    return first, np.minimum(np.searchsorted(placed, done["end_ns"], "right"), limit)


def _settle(
    placed: np.ndarray, asked: np.ndarray, done: np.ndarray, sent: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> bool:
    """Moves rows of one backend to earlier transactions that lack what was sent for them; whether it moved any.

    The fact that constrains it: where a hypervisor takes the CPU between an answer and the server's note of it, the
    client may have sent the next message by then, and the one after. Such a message was there already, so its row
    begins at the late note; if the row's own end is noted late too, the client is one transaction further by then. But
    a backend answers in order. So each goes to the first transaction that had not ended when the answer before it
    was noted, and that has not yet all that was sent for it.
    """
    weights = breakdown_sampling.requests_in(asked)
    behind = np.append(0, np.cumsum(breakdown_sampling.between(weights, *bounds) - sent))[:-1]
    if not len(done) or not sent.any() or behind.min() >= 0:
        return False
    starts, ends = done["start_ns"], done["end_ns"]
    earliest = np.searchsorted(ends, asked["arrived_ns"], "left")
    latest = np.searchsorted(starts, placed, "right") - 1
    waited_already = (asked["flags"] & QUEUED != 0) & (earliest < latest)
    unsettled = np.flatnonzero(waited_already & (behind[np.maximum(latest, 0)] < 0))
    upto = np.append(0, np.cumsum(weights))
    for row in unsettled.tolist():
        at = int(earliest[row])
        while at < latest[row] and upto[row] - upto[np.searchsorted(placed[:row], starts[at], "left")] >= sent[at]:
            at += 1
        placed[row] = max(starts[at], min(placed[row], ends[at]))
    return len(unsettled) > 0


def _begun(transactions: np.ndarray) -> np.ndarray:
    return transactions[(transactions["outcome"] != SKIPPED) & (transactions["backend_pid"] != 0)]


def _owner(first: np.ndarray, last: np.ndarray, rows: int) -> np.ndarray:
    owner = np.full(rows, -1, np.int64)
    if len(first):
        places = np.arange(rows)
        candidate = np.searchsorted(first, places, "right") - 1
        owned = (candidate >= 0) & (places < last[candidate])
        owner[owned] = candidate[owned]
    return owner


def _of_requests(
    done: np.ndarray, asked: np.ndarray, owner: np.ndarray, straddling: np.ndarray, ours: np.ndarray
) -> dict[str, int]:
    """What became of every request; joined and without a transaction add up to all of the load's."""
    is_joined, answered = owner >= 0, requests_in(asked)
    late = asked["ended_ns"][is_joined] - done["end_ns"][owner[is_joined]]
    return {
        "requests": int(answered[ours].sum()),
        "requests_of_others": int(answered[~ours].sum()),
        "requests_joined": int(answered[is_joined].sum()),
        "requests_without_transaction": int(answered[ours & ~is_joined].sum()),
        # Of a row only the last request can do either. Of both: those that reach into a transaction after the one, or
        # the pause, in which they arrived.
        "requests_straddling": int(straddling.sum()),
        # Of those joined: the client had the answer before the server had noted that it was sent.
        "requests_ended_later": int((late > 0).sum()),
        "ended_later_ns_max": int(late.max(initial=0)),
    }


def _of_transactions(
    done: np.ndarray, met: np.ndarray, whole: np.ndarray, served: np.ndarray, sampled: bool
) -> dict[str, int]:
    """What became of every transaction: the last five add up to the first. `sampled`: not all the time was watched."""
    not_watched = ~met & (breakdown_sampling.column(done, "requests", 0) > 0) & sampled
    return {
        "transactions": len(done),
        "transactions_joined": int(served.sum()),
        "transactions_without_request": int((~met & ~not_watched).sum()),
        "transactions_not_watched": int(not_watched.sum()),
        "transactions_in_part": int((met & ~whole).sum()),
        # Recorded when more were, and left out so that early ones count no more than late ones.
        "transactions_thinned": int((whole & ~served).sum()),
    }


def _rows_of(waits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The place in `rows` of the row that each wait is of; -1 where there is none."""
    order = np.argsort(rows["request"], kind="stable").astype(np.int64)
    numbers = rows["request"][order]
    if not len(numbers):
        return np.full(len(waits), -1, np.int64)
    place = np.minimum(np.searchsorted(numbers, waits["request"]), len(numbers) - 1)
    return np.where(numbers[place] == waits["request"], order[place], -1)


def parts_of(joined: Joined, buckets: list[str]) -> dict[str, np.ndarray]:
    """Nanoseconds of each part for each transaction of `joined`; waits that are nobody's are in none."""
    done, asked, first, last = joined.transactions, joined.rows, joined.first, joined.last
    met = last > first
    gaps = np.zeros(len(asked), np.int64)
    gaps[:-1] = asked["arrived_ns"][1:] - asked["ended_ns"][:-1]
    zero = np.zeros(len(done), np.int64)
    parts = {
        LAG: done["start_ns"] - done["planned_ns"],
        WAY_IN: np.where(met, _at(asked["arrived_ns"], first) - done["start_ns"], zero),
        CPU: joined.over_rows(asked["cpu_ns"]),
        RUN_QUEUE: joined.over_rows(asked["run_queue_ns"]),
        CLIENT: between(gaps, first, np.maximum(first, last - 1)),
        WAY_OUT: np.where(met, done["end_ns"] - _at(asked["ended_ns"], last - 1), zero),
    }
    waits, owner = joined.waits, joined.wait_owner
    for place in np.unique(waits["bucket"][owner >= 0]).tolist():
        in_bucket = (owner >= 0) & (waits["bucket"] == place)
        # The client is waited for between rows and, for its next message or the rest of one, within one.
        np.add.at(parts.setdefault(buckets[place], zero.copy()), owner[in_bucket], waits["ns"][in_bucket])
    return parts


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Values at places of which some may lie outside: those give any value and are for the caller to leave out."""
    if not len(values):
        return np.zeros(len(places), np.int64)
    at_places: np.ndarray = values[np.clip(places, 0, len(values) - 1)]
    return at_places


def faults(joined: Joined, buckets: list[str]) -> dict[str, int]:
    """Time counted twice, or impossible: how often of which kind; empty when all is well."""
    done, asked, waits, row = joined.transactions, joined.rows, joined.waits, joined.wait_row
    elapsed = asked["ended_ns"] - asked["arrived_ns"]
    same = asked["backend_pid"][1:] == asked["backend_pid"][:-1]
    alike = done["backend_pid"][1:] == done["backend_pid"][:-1]
    parts = asked["cpu_ns"] + asked["run_queue_ns"]
    np.add.at(parts, row[row >= 0], waits["ns"][row >= 0])
    never = [place for place, name in enumerate(buckets) if name in NEVER_BLOCKED]
    negative = (asked["cpu_ns"] < 0) | (asked["run_queue_ns"] < 0)
    wrong_rows = {
        "requests of one backend overlap": same & (asked["arrived_ns"][1:] < asked["ended_ns"][:-1]),
        "transactions of one backend overlap": alike & (done["start_ns"][1:] < done["end_ns"][:-1]),
        "requests end before they begin": elapsed < 0,
        "a request's parts exceed its time": parts > elapsed + CLOCK_NS,
        "a request number is given twice": np.diff(np.sort(asked["request"])) == 0,
        "times are negative": np.concatenate([negative, waits["ns"] < 0]),
        "a wait is of no request": row < 0,
        "a wait is in no bucket of waits": (waits["bucket"] >= len(buckets)) | np.isin(waits["bucket"], never),
        "a wait is counted twice": _repeated(waits),
    }
    return {what: int(wrong.sum()) for what, wrong in wrong_rows.items() if wrong.any()}


def _repeated(waits: np.ndarray) -> np.ndarray:
    """Rows that say again what the row before them, in order, said."""
    ordered = waits[np.lexsort([waits[key] for key in _WAIT_KEY])]
    return np.logical_and.reduce([ordered[key][1:] == ordered[key][:-1] for key in _WAIT_KEY])
