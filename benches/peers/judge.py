"""What pairs show: ratios of ours to the peer's with intervals, and whether a bound holds. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from peers.arms import Run
from plimsoll.analysis.statistics.intervals import over_blocks

PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Ratio:
    """Ours divided by the peer's, within pairs: the geometric mean with its 95 % t interval on logs, and the median."""

    what: str
    value: float
    low: float
    high: float
    median: float
    pairs: int


@dataclass(frozen=True)
class Bound:
    """A bound and whether it holds: True, False, or None where the interval contains it."""

    text: str
    holds: bool | None


def ratio(what: str, ours: list[float], theirs: list[float]) -> Ratio:
    """Of figures in the order of the pairs; at least three."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    found = over_blocks(ratios, log=True)
    if found is None or found.low is None or found.high is None:
        raise ValueError("fewer than three pairs")
    return Ratio(what, found.value, found.low, found.high, statistics.median(ratios), len(ratios))


def cost(ours: list[Run], theirs: list[Run]) -> list[Ratio]:
    """CPU time a transaction and throughput."""
    return [
        ratio("generator CPU a transaction", [run.cpu_us for run in ours], [run.cpu_us for run in theirs]),
        ratio("throughput", [run.tps for run in ours], [run.tps for run in theirs]),
    ]


def latency(ours: list[Run], theirs: list[Run]) -> list[Ratio]:
    """Mean and percentiles from the planned start, in which the generator's own lag is, and from the start."""
    found = []
    for since in ("latency_us", "service_us"):
        what = "from the plan" if since == "latency_us" else "from the start"
        both = [[np.sort(getattr(run, since)) for run in runs] for runs in (ours, theirs)]
        found.append(ratio(f"mean {what}", *([float(np.mean(one)) for one in runs] for runs in both)))
        for name, share in PERCENTILES.items():
            found.append(ratio(f"{name} {what}", *([_rank(one, share) for one in runs] for runs in both)))
    return found


def at_most(found: Ratio, bound: float) -> Bound:
    """The upper end of the interval is not above it."""
    holds = True if found.high <= bound else False if found.low > bound else None
    return Bound(f"{found.what}: at most {bound:g} x", holds)


def at_least(found: Ratio, bound: float) -> Bound:
    """The lower end of the interval is not below it."""
    holds = True if found.low >= bound else False if found.high < bound else None
    return Bound(f"{found.what}: at least {bound:g} x", holds)


def median_at_least(found: Ratio, bound: float) -> Bound:
    """The median of the pairs is not below it."""
    return Bound(f"{found.what}: median at least {bound:g} x", found.median >= bound)


def within(found: Ratio, share: float) -> Bound:
    """The whole interval lies within so much of 1."""
    low, high = 1 - share, 1 + share
    holds = True if low <= found.low and found.high <= high else False if found.high < low or found.low > high else None
    return Bound(f"{found.what}: within {share:.0%}", holds)


def _rank(ordered: np.ndarray, share: float) -> float:
    """Nearest rank."""
    return float(ordered[int(np.ceil(share * len(ordered))) - 1])
