"""How transactions began: late against their plan, and whether a connection was free to begin them.

In an open loop a transaction that is due waits while every connection is busy: that wait is the system's. What it waits
while a connection is free is the generator's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics import queueing
from plimsoll.analysis.trial.readings import FAILED, fact, is_whole, seconds_measured, weights
from plimsoll.record import Segment, Trial
from plimsoll.record.judged_trial import Backlog

_LOOKED_AT_MAX = 1_000_000
_EVEN = ("constant", "poisson")


@dataclass(frozen=True)
class OwnLag:
    """Lag while a connection was free: its mean over all transactions, ns, and the share of the mean latency it is."""

    mean_ns: float
    share: float


def _sent(segment: Segment) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows of transactions that were answered, and what each stands for."""
    table = segment.transactions
    if table is None or not len(table):
        return None
    sent = table["outcome"] <= FAILED
    return (table[sent], weights(segment)[sent]) if sent.any() else None


def mean_lag_share(segment: Segment) -> float | None:
    """Mean of start - planned over mean of end - planned; done and failed transactions."""
    found = _sent(segment)
    if found is None:
        return None
    rows, weight = found
    latency = float(((rows["end_ns"] - rows["planned_ns"]) * weight).sum())
    return float(((rows["start_ns"] - rows["planned_ns"]) * weight).sum()) / latency if latency > 0 else None


def connections(trial: Trial) -> int | None:
    """How many connections carried the load at a time; one that was opened again counts once."""
    summary = trial.measure.told
    opened = len(summary.get("backend_pids") or []) - int(summary.get("reconnects") or 0)
    return opened if opened > 0 else ((trial.planned.get("resolved") or {}).get("workload") or {}).get("clients")


def connections_busy_share(trial: Trial) -> float | None:
    """Time that connections had a transaction under way, of the time they were there."""
    found, seconds, count = _sent(trial.measure), seconds_measured(trial.measure), connections(trial)
    if found is None or not seconds or not count:
        return None
    rows, weight = found
    return float(((rows["end_ns"] - rows["start_ns"]) * weight).sum()) / (seconds * 1e9 * count)


def own_lag(trial: Trial) -> OwnLag | None:
    """The generator's own lag; None where rows are missing, because then nothing tells which connection was free.

    A lag is its own when, at the time a transaction was due, there was a connection for it beyond those for the ones
    that were due before it: behind a queue, the short time between two transactions of a connection frees none.
    """
    found, count = _sent(trial.measure), connections(trial)
    if found is None or not count or not is_whole(trial.measure):
        return None
    rows, _ = found
    begun, ended = np.sort(rows["start_ns"]), np.sort(rows["end_ns"])
    looked = rows[:: max(1, len(rows) // _LOOKED_AT_MAX)]
    due = looked["planned_ns"]
    under_way = np.searchsorted(begun, due, side="right") - np.searchsorted(ended, due, side="right")
    waiting = np.searchsorted(np.sort(rows["planned_ns"]), due, side="right") - np.searchsorted(begun, due, side="left")
    lag = (looked["start_ns"] - due).astype(float)
    own = float(np.where(count - under_way >= waiting, lag, 0.0).mean())
    latency = float((looked["end_ns"] - due).mean())
    return OwnLag(own, own / latency if latency > 0 else 0.0)


def backlog(segment: Segment) -> Backlog | None:
    """Whether transactions that are due and not answered grow in number (queueing.py); None where it cannot be told.

    Counted from the rows; where these are a sample, the mean lag of each second times the planned rate (Little's law).
    Under steps and ramps more are under way because more are due, so nothing is said of them.
    """
    summary = segment.told
    if (summary.get("schedule") or {}).get("kind") not in _EVEN:
        return None
    seconds, started, rate = seconds_measured(segment), summary.get("started_ns"), fact(segment, "planned_rate")
    planned = (summary.get("identity") or {}).get("planned")
    if seconds is None or started is None or not rate or planned is None:
        return None
    whole = round(min(seconds, planned / rate))  # what is answered after the end of the plan makes no room for more
    outstanding: np.ndarray | None = None
    if segment.transactions is not None and len(segment.transactions) and is_whole(segment):
        rows = segment.transactions
        ticks = int(started) + (np.arange(whole) + 1) * 1_000_000_000
        answered = np.sort(np.maximum(rows["end_ns"], rows["planned_ns"]))
        due = np.sort(rows["planned_ns"])
        outstanding = np.searchsorted(due, ticks, "right") - np.searchsorted(answered, ticks, "right")
    elif segment.lag_seconds is not None:
        outstanding = _mean_lag_by_second(segment.lag_seconds, whole) / 1e9 * rate
    if outstanding is None:
        return None
    judged = queueing.backlog(outstanding.astype(float))
    if judged is None:
        return None
    return {
        "building": judged.building,
        "growth": judged.growth,
        "mean": judged.mean,
        "p_value": judged.p_value,
    }


def _mean_lag_by_second(table: np.ndarray, whole: int) -> np.ndarray:
    inside = table[table["second"] < whole]
    second, count = inside["second"].astype(np.int64), inside["count"].astype(float)
    middle = (inside["low_ns"].astype(float) + inside["high_ns"].astype(float) - 1) / 2
    totals = np.bincount(second, weights=count, minlength=whole)
    sums = np.bincount(second, weights=count * middle, minlength=whole)
    return np.divide(sums, totals, out=np.zeros(whole), where=totals > 0)
