"""Throughput second by second, and how sure its mean is within one trial.

The fact that constrains it: neighbouring seconds resemble each other (a checkpoint, a full cache, a busy neighbour), so
n seconds are worth fewer independent ones. The effective number divides n by the integrated autocorrelation time, the
larger of two estimates: the initial monotone positive sequence (C. J. Geyer, Practical Markov chain Monte Carlo,
Statistical Science 7, 1992), and an AR(1) whose coefficient is corrected for the bias of short series (F. H. C.
Marriott and J. A. Pope, Bias in the estimation of autocorrelations, Biometrika 41, 1954).
tests/unit/analysis/test_throughput.py states the coverage by simulation.

Trials are still compared by blocks, never by seconds: what differs from trial to trial is not in here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.trial.readings import DONE, is_whole, seconds_measured
from plimsoll.analysis.trial.windows import windows
from plimsoll.record import Segment, Trial
from plimsoll.record.judged_trial import Throughput as ThroughputEntry

SECONDS_MIN = 4
EFFECTIVE_MIN = 3  # as few give no interval as of blocks: Student's t of less than two degrees says nothing
METHOD = (
    "mean of whole seconds (of a run of windows: of windows, each as a second); "
    "Student's t for the effective number of seconds: their number divided by the integrated "
    "autocorrelation time, the larger of Geyer's initial monotone sequence and a bias-corrected AR(1); no interval "
    f"from fewer than {EFFECTIVE_MIN} of them"
)


@dataclass(frozen=True)
class Throughput:
    """Transactions per second over whole seconds of one segment; no interval where there are too few of them."""

    mean: float
    low: float | None
    high: float | None
    seconds: int
    effective_seconds: float
    sd: float


def per_second(segment: Segment) -> np.ndarray | None:
    """Done transactions of each whole second since the segment began; None where the record cannot tell."""
    length = seconds_measured(segment)
    started = segment.told.get("started_ns")
    if length is None or started is None or length < 1:
        return None
    whole = int(length)
    table = segment.latency_seconds
    if table is not None and len(table):
        second, count = table["second"].astype(np.int64), table["count"].astype(float)
        inside = second < whole
        return np.bincount(second[inside], weights=count[inside], minlength=whole)
    rows = segment.transactions
    if rows is None or not is_whole(segment):
        return None
    second = (rows["end_ns"][rows["outcome"] == DONE] - int(started)) // 1_000_000_000
    return np.bincount(second[(second >= 0) & (second < whole)], minlength=whole).astype(float)


def autocorrelation_time(values: np.ndarray) -> float:
    """How many seconds are worth one independent second; at least 1."""
    count = len(values)
    deviation = values - values.mean()
    power = float((deviation**2).sum())
    if count < 3 or power <= 0:
        return 1.0
    covariance = np.correlate(deviation, deviation, "full")[count - 1 :] / power
    pairs = covariance[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    geyer = 2 * float(pairs.sum()) - 1
    raw = float(covariance[1])
    rho = min(max(raw + (1 + 4 * max(raw, 0.0)) / count, 0.0), 0.9)
    return max(1.0, geyer, (1 + rho) / (1 - rho))


def throughput(trial: Trial) -> Throughput | None:
    """The mean over whole seconds, or over windows, with its 95 % interval within this trial."""
    found = windows(trial)
    values = per_second(trial.measure) if found is None else found.rates
    return None if values is None or not len(values) else of_seconds(values)


def of_seconds(values: np.ndarray) -> Throughput:
    """As `throughput`, from the counts themselves."""
    mean = float(values.mean())
    effective = max(1.0, len(values) / autocorrelation_time(values))
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if len(values) < SECONDS_MIN or effective < EFFECTIVE_MIN:
        return Throughput(mean, None, None, len(values), effective, sd)
    half = float(t_quantile(0.5 + CONFIDENCE / 2, effective - 1)) * sd / math.sqrt(effective)
    return Throughput(mean, max(0.0, mean - half), mean + half, len(values), effective, sd)


def as_json(trial: Trial) -> ThroughputEntry | None:
    """The `throughput` of a trial in verdict.json."""
    found = throughput(trial)
    if found is None:
        return None
    return {
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "seconds": found.seconds,
        "effective_seconds": found.effective_seconds,
        "sd": found.sd,
    }


def relative_half_width(found: ThroughputEntry | None) -> float | None:
    """Half the interval of the mean of a trial's seconds, as a share of the mean; None where there is no interval."""
    if not found or found["high"] is None or not found["mean"]:
        return None
    return (found["high"] - found["mean"]) / found["mean"]
