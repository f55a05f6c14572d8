"""Histograms of latency: percentiles from them, and several merged into one.

They hold every done transaction, whatever was kept row by row, so they take the place of rows where there are too many.
A cell is as wide as its significant digits allow: latency.npy has three (0.1 %), latency_seconds.npy two (1 %).

Interval of a percentile of merged trials: the delete-one-block jackknife on logarithms. It is inconsistent for
quantiles when single values are left out and consistent when whole groups are (J. Shao and C. F. J. Wu, A general
theory for jackknife variance estimation, Annals of Statistics 17, 1989); a block is such a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from plimsoll.analysis.percentiles import PERCENTILES
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE
from plimsoll.analysis.trial import readings
from plimsoll.record import Segment
from plimsoll.record.verdict import MergedLatency, MergedMean

BEYOND_MIN = 10
ALL = "all"


@dataclass(frozen=True)
class Histogram:
    """Cells in order of latency, ns; `high` does not belong to its cell. `unanswered` lie beyond every cell."""

    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    unanswered: int = 0

    @property
    def total(self) -> int:
        """How many latencies it holds."""
        return int(self.count.sum())

    @property
    def largest(self) -> float | None:
        """The end of the last cell that holds something."""
        return float(self.high[-1] - 1) if len(self.high) else None

    def percentile(self, share: float) -> float | None:
        """Nearest rank, the middle of its cell; None unless ten lie beyond the rank, or where no cell holds it."""
        total = self.total + self.unanswered
        rank = math.ceil(share * total - 1e-9)
        if not 1 <= rank <= self.total or total - rank < BEYOND_MIN:
            return None
        cell = int(np.searchsorted(np.cumsum(self.count), rank))
        return float((self.low[cell] + self.high[cell] - 1) / 2)

    def is_unbounded(self, share: float) -> bool:
        """Whether a percentile lies among the unanswered, and at least ten beyond it."""
        total = self.total + self.unanswered
        return self.total < math.ceil(share * total - 1e-9) <= total - BEYOND_MIN


def merged(parts: Iterable[Histogram]) -> Histogram:
    """The sum of histograms; cells are told apart by where they begin."""
    listed = list(parts)
    unanswered = sum(part.unanswered for part in listed)
    low = np.concatenate([part.low for part in listed]) if listed else np.empty(0)
    if not len(low):
        return Histogram(np.empty(0), np.empty(0), np.empty(0, np.int64), unanswered)
    edges, place = np.unique(low, return_inverse=True)
    high = np.zeros(len(edges))
    np.maximum.at(high, place, np.concatenate([part.high for part in listed]))
    count = np.zeros(len(edges), np.int64)
    np.add.at(count, place, np.concatenate([part.count for part in listed]).astype(np.int64))
    kept = count > 0
    return Histogram(edges[kept], high[kept], count[kept], unanswered)


def _cells(table: np.ndarray) -> Histogram:
    return Histogram(table["low_ns"].astype(float), table["high_ns"].astype(float), table["count"].astype(np.int64))


def of_segment(segment: Segment) -> dict[str, Histogram]:
    """Latency of a segment by kind, and of all kinds together ("all"); empty where there is no histogram."""
    table = segment.latency if segment.latency is not None else segment.latency_seconds
    if table is None or not len(table):
        return {}
    kinds = segment.kinds
    by_kind = {ALL: replace(merged([_cells(table)]), unanswered=readings.unanswered(segment))}
    for index in np.unique(table["kind"]):
        name = str(kinds[index]) if index < len(kinds) else f"kind {index}"
        by_kind[name] = merged([_cells(table[table["kind"] == index])])
    return by_kind


def over_trials(segments: Sequence[Segment]) -> dict[str, MergedLatency]:
    """Percentiles of the transactions of all trials together, one trial a block, by kind.

    One that lies among the unanswered has the largest latency as its value, `bound` "at least", and no interval.
    Reaches farther than one trial does (ten beyond p99.99 are a hundred thousand transactions), and gives each
    transaction the same weight instead of each trial.
    """
    by_trial = [by_kind for segment in segments if (by_kind := of_segment(segment))]
    kinds = sorted({kind for by_kind in by_trial for kind in by_kind})
    return {kind: _merged_percentiles([by_kind[kind] for by_kind in by_trial if kind in by_kind]) for kind in kinds}


def _merged_percentiles(parts: list[Histogram]) -> MergedLatency:
    whole = merged(parts)
    rest = [merged(parts[:place] + parts[place + 1 :]) for place in range(len(parts))]
    result: dict[str, MergedMean | None] = {}
    for name, share in PERCENTILES.items():
        value = whole.percentile(share)
        if value is None and whole.is_unbounded(share):
            largest = whole.largest
            result[name] = None if largest is None else _at_least(largest, len(parts))
        else:
            result[name] = None if value is None else _jackknifed(value, [part.percentile(share) for part in rest])
    return cast(MergedLatency, {"count": whole.total, **result})


def _at_least(value: float, blocks: int) -> MergedMean:
    return {"value": value, "low": None, "high": None, "blocks": blocks, "bound": "at least"}


def _jackknifed(value: float, without: list[float | None]) -> MergedMean:
    blocks = len(without)
    estimate: MergedMean = {"value": value, "low": None, "high": None, "blocks": blocks}
    present = [left_out for left_out in without if left_out is not None]
    if blocks < BLOCKS_MIN or len(present) < blocks:
        return estimate
    logs = np.log(present)
    error = math.sqrt((blocks - 1) / blocks * float(((logs - logs.mean()) ** 2).sum()))
    half = float(t_quantile(0.5 + CONFIDENCE / 2, blocks - 1)) * error
    return {**estimate, "low": value * math.exp(-half), "high": value * math.exp(half)}
