"""The windows of one trial: when each was open, and how much was done in it.

The fact that constrains it: a window's first moments (the lead-in: caches of the CPU, pages that a neighbour displaced)
and what drains after its end are of no steady rate, so a rate is of what ended between opened + lead-in and closed.
Series have two rows a window (per device): just before its first transaction, and after it has drained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.trial.readings import DONE, weights
from plimsoll.record import Segment, Trial

LEAST = 0.5  # transactions: what a server that has done none counts as


@dataclass(frozen=True)
class Windows:
    """One row a window, in time: `seconds` is how long it counts, `done` the transactions that ended in that time."""

    round: np.ndarray
    position: np.ndarray
    opened_ns: np.ndarray
    closed_ns: np.ndarray
    drained_ns: np.ndarray
    lead_in_ns: int
    seconds: np.ndarray
    done: np.ndarray

    @property
    def rates(self) -> np.ndarray:
        """Transactions a second of each window, 0 where none was done."""
        return np.asarray(self.done / self.seconds)

    @property
    def rate(self) -> float:
        """Transactions a second of all windows together; where none was done in any, as of half a transaction.

        So a server that only stalls has a value, which is the lowest, and not none.
        """
        return float(max(self.done.sum(), LEAST) / self.seconds.sum())


def windows(trial: Trial) -> Windows | None:
    """None where a trial was not made in windows, or none of them is longer than its lead-in."""
    table, rows = trial.measure.windows, trial.measure.transactions
    if table is None or rows is None or not len(table):
        return None
    lead_in_ns = round(float((trial.data.get("windows") or {}).get("lead_in_seconds") or 0.0) * 1e9)
    table = table[np.argsort(table["opened_ns"], kind="stable")]
    opened, closed = table["opened_ns"].astype(np.int64), table["closed_ns"].astype(np.int64)
    kept = closed - opened > lead_in_ns
    if not kept.any():
        return None
    table, opened, closed = table[kept], opened[kept], closed[kept]
    return Windows(
        table["round"].astype(int),
        table["position"].astype(int),
        opened,
        closed,
        table["drained_ns"].astype(np.int64),
        lead_in_ns,
        (closed - opened - lead_in_ns) / 1e9,
        done_between(trial.measure, opened + lead_in_ns, closed),
    )


def done_between(segment: Segment, after_ns: np.ndarray, upto_ns: np.ndarray) -> np.ndarray:
    """Transactions done that ended later than `after_ns` and not later than `upto_ns`, of each such span."""
    rows = segment.transactions
    assert rows is not None
    is_done = rows["outcome"] == DONE
    ends = rows["end_ns"][is_done].astype(np.int64)
    order = np.argsort(ends, kind="stable")
    upto = np.concatenate([[0.0], np.cumsum(weights(segment)[is_done][order])])
    last, first = (np.searchsorted(ends[order], times, side="right") for times in (upto_ns, after_ns))
    return np.asarray(upto[last] - upto[first])
