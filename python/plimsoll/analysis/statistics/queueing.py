"""Does a backlog build? The number of operations outstanding over a segment, its slope against its noise.

The fact that constrains it: a queue near saturation wanders for long stretches, so a straight line fitted to it is
steep by chance far more often than independent noise would make it. A backlog is said to build only when the slope is
positive at 5 % with the correlation of neighbouring seconds allowed for, and the growth it means is at least the mean
itself (a queue that grows steadily from nothing grows by twice its mean). tests/unit/analysis/test_capacity_queueing.py
states by simulation how often it cries wolf and what it misses.
"""

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.distributions import t_beyond

ALPHA = 0.05
GROWTH_MIN = 1.0
GROWTH_OPERATIONS_MIN = 2.0
SECONDS_MIN = 6
_POINTS_MAX = 40
RULE = (
    "the number of operations outstanding, second by second, grows over the segment by at least its own mean and by at "
    f"least {GROWTH_OPERATIONS_MIN:.0f}, and its slope is above zero by a one-sided t test at {ALPHA:.0%} with the "
    "correlation of neighbouring seconds allowed for"
)


@dataclass(frozen=True)
class Backlog:
    """Outcome for one segment. `growth` is in operations over the segment; `p_value` is one-sided."""

    building: bool
    growth: float
    mean: float
    p_value: float


def backlog(outstanding: np.ndarray) -> Backlog | None:
    """Judges a series of outstanding operations, one value a second; None where it is too short to tell."""
    seconds = len(outstanding)
    if seconds < SECONDS_MIN:
        return None
    length = max(1, math.ceil(seconds / _POINTS_MAX))
    points = seconds // length
    values = outstanding[seconds - points * length :].reshape(points, length).mean(axis=1)
    times = np.arange(points) - (points - 1) / 2
    power = float((times**2).sum())
    mean = float(values.mean())
    slope = float((values * times).sum()) / power
    residual = values - mean - slope * times
    rho = _correlation(residual)
    effective = points * (1 - rho) / (1 + rho)
    freedom = max(1.0, effective - 2)
    variance = float((residual**2).sum()) / freedom * (effective / points)
    error = math.sqrt(variance / power * (1 + rho) / (1 - rho))
    growth = slope * points
    p_value = float(t_beyond(slope / error, freedom)) if error > 0 else float(slope <= 0)
    material = growth >= GROWTH_MIN * mean and growth >= GROWTH_OPERATIONS_MIN
    return Backlog(bool(material and p_value < ALPHA), growth, mean, p_value)


def _correlation(residual: np.ndarray) -> float:
    """AR(1) coefficient of residuals, corrected for the bias of short series, between 0 and 0.9."""
    power = float((residual**2).sum())
    if power <= 0:
        return 0.0
    raw = float((residual[1:] * residual[:-1]).sum()) / power
    return min(max(raw + (1 + 4 * max(raw, 0.0)) / len(residual), 0.0), 0.9)
