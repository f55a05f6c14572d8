"""Percentiles of latency with intervals that respect queueing.

The fact that constrains it: latencies near saturation come in clusters, because operations wait for the same queue, so
a thousand slow operations may be five independent events. The binomial interval of an order statistic takes them for a
thousand and is far too narrow. Here the seconds are the unit: the variance of the number of operations beyond the
percentile is estimated from sums over batches of seconds, for several lengths of batch, and the largest ratio to the
binomial variance (the design effect) divides the number of operations before the order statistics are taken. Taking
the variance at each value instead of at the percentile would be kinder to rare stalls, and holds the true percentile of
a queue at 90 % load in 17 to 80 of 100 only: where one cluster made the tail, nothing tells how far the next one goes.
tests/unit/analysis/test_capacity_percentile.py states the coverage by simulation of queues whose percentiles are known.
"""

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.distributions import binomial_quantile, normal_quantile, t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE

BATCHES_MIN = 8
METHOD = (
    "nearest rank with interpolation inside the histogram's cell; the 95 % interval takes order statistics of the "
    "number of operations divided by the design effect: the variance of the number beyond the percentile over batches "
    f"of seconds (the largest over batch lengths that leave at least {BATCHES_MIN} batches, widened for correlation "
    "between neighbouring batches) over the binomial variance; with Student's t for the number of batches; operations "
    "without a timely answer are beyond every value"
)


@dataclass(frozen=True)
class Cells:
    """Latencies by second: `count` operations that ended in `second` took from `low` to `high` ns.

    `beyond` has one entry a second: operations that got no timely answer, slower than any latency.
    """

    second: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    beyond: np.ndarray

    @property
    def seconds(self) -> int:
        """How many seconds were looked at, also those in which nothing ended."""
        return len(self.beyond)

    @property
    def total(self) -> float:
        """Operations, those beyond included."""
        return float(self.count.sum() + self.beyond.sum())

    @property
    def middle(self) -> np.ndarray:
        """The middle of each cell, ns."""
        return (self.low + self.high) / 2

    def by_second(self, weights: np.ndarray) -> np.ndarray:
        """Sums of a weight a cell over the seconds."""
        return np.bincount(self.second.astype(np.int64), weights=weights, minlength=self.seconds)


@dataclass(frozen=True)
class Estimate:
    """A percentile, ns, with its 95 % interval; infinite where it lies among the operations without an answer.

    `high` is infinite too where there are too few operations to bound it.
    """

    level: float
    value: float
    low: float
    high: float
    operations: int
    design_effect: float


def joined(parts: list[Cells]) -> Cells:
    """Segments one after the other, as if they were one."""
    starts = np.cumsum([0, *(part.seconds for part in parts[:-1])])
    return Cells(
        np.concatenate([part.second + start for part, start in zip(parts, starts, strict=True)]),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "count", "beyond")),
    )


@dataclass(frozen=True)
class _Distribution:
    """The cells of all seconds, in order of latency."""

    low: np.ndarray
    high: np.ndarray
    upto: np.ndarray
    total: float

    @classmethod
    def of(cls, cells: Cells) -> "_Distribution":
        order = np.argsort(cells.low, kind="stable")
        edges, place = np.unique(cells.low[order], return_inverse=True)
        high = np.zeros(len(edges))
        np.maximum.at(high, place, cells.high[order])
        count = np.bincount(place, weights=cells.count[order], minlength=len(edges))
        return cls(edges, high, np.cumsum(count), cells.total)

    def at(self, level: float) -> float:
        """The latency that a share `level` of the operations does not exceed."""
        rank = min(max(level, 0.0), 1.0) * self.total
        if not len(self.upto) or rank > self.upto[-1] * (1 + 1e-12):
            return math.inf
        place = min(int(np.searchsorted(self.upto, rank, side="left")), len(self.upto) - 1)
        before = self.upto[place - 1] if place else 0.0
        share = (rank - before) / (self.upto[place] - before)
        return float(self.low[place] + share * (self.high[place] - self.low[place]))


def mean_ns(cells: Cells) -> float | None:
    """Mean latency of the operations that were answered."""
    answered = float(cells.count.sum())
    return float((cells.middle * cells.count).sum()) / answered if answered else None


def design_effect(cells: Cells, value: float) -> tuple[float, int]:
    """How much larger than binomial the variance of the number beyond `value` is, and the degrees of freedom."""
    beyond = cells.by_second(cells.count * (cells.middle > value)) + cells.beyond
    everything = cells.by_second(cells.count) + cells.beyond
    share = float(beyond.sum() / everything.sum())
    seconds = cells.seconds
    if seconds < 2:
        return math.inf, 1
    if not 0 < share < 1:
        return 1.0, seconds - 1
    residual = beyond - share * everything
    binomial = float(everything.sum()) * share * (1 - share)
    largest, freedom = 1.0, seconds - 1
    for length in range(1, seconds):
        batches = seconds // length
        if batches < BATCHES_MIN and length > 1:
            break
        used = batches * length
        sums = residual[seconds - used :].reshape(batches, length).sum(axis=1)
        sums = sums - sums.mean()
        variance = float(sums.var(ddof=1)) * batches * seconds / used
        factor = variance * inflation(sums) / binomial
        if factor > largest:
            largest, freedom = factor, batches - 1
    return largest, freedom


def inflation(values: np.ndarray) -> float:
    """Variance inflation of a total of values (mean 0) whose neighbours are correlated as in AR(1); never below 1."""
    power = float((values**2).sum())
    if power <= 0 or len(values) < 3:
        return 1.0
    raw = float((values[1:] * values[:-1]).sum()) / power
    rho = min(max(raw + 1 / len(values), 0.0), 0.7)  # the estimate from few values is biased downwards by about 1 / n
    return (1 + rho) / (1 - rho)


def percentile(cells: Cells, level: float, confidence: float = CONFIDENCE) -> Estimate | None:
    """The percentile at `level` (a share of 1) with its interval; None without any operation."""
    total = cells.total
    if total <= 0:
        return None
    found = _Distribution.of(cells)
    value = found.at(level)
    effect, freedom = design_effect(cells, value if math.isfinite(value) else float(cells.high.max(initial=0.0)))
    side = (1 - confidence) / 2
    widened = float((t_quantile(side, freedom) / normal_quantile(side)) ** 2)
    effective = int(total / (effect * widened)) if math.isfinite(effect) else 0
    tail = 1 - level
    low, high = 0.0, math.inf
    if effective >= 1:
        # As many beyond the upper end as are seen by chance at most so often, and the same the other way.
        fewest = binomial_quantile(side, effective, tail) - 1
        most = binomial_quantile(1 - side, effective, tail) + 1
        high = found.at(1 - fewest / effective) if fewest >= 0 else math.inf
        low = found.at(1 - most / effective) if most < effective else 0.0
    return Estimate(level, value, min(low, value), max(high, value), int(total), effect)
