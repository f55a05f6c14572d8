"""Intervals over blocks: Student's t on the metric's scale.

The block is the unit: seconds inside a trial are autocorrelated and are never counted as repeats. Fewer than three
blocks give no interval, three or four an "indicative" one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
BLOCKS_MIN = 3
BLOCKS_FULL = 5
Grade = Literal["none", "indicative", "interval"]


def grade(blocks: int) -> Grade:
    """What so many blocks can carry."""
    return "none" if blocks < BLOCKS_MIN else "indicative" if blocks < BLOCKS_FULL else "interval"


@dataclass(frozen=True)
class Estimate:
    """A mean over blocks with its interval; low and high are None where there are too few blocks."""

    value: float
    low: float | None
    high: float | None
    blocks: int


def half_width(sd: np.ndarray, count: np.ndarray, confidence: float = CONFIDENCE) -> np.ndarray:
    """Half the length of a two-sided t interval of a mean; NaN below two values."""
    count = np.asarray(count)
    with np.errstate(invalid="ignore", divide="ignore"):
        critical = stats.t.ppf(0.5 + confidence / 2, np.where(count > 1, count - 1, np.nan))
        return critical * sd / np.sqrt(count)


def welch(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> dict[str, Any] | None:
    """Mean of the second less that of the first, of blocks that are not paired, with Welch's t interval.

    {value, low, high, blocks (the fewer)}; low and high are None where a side has too few; None without any value.
    """
    one, two = np.asarray(first, float), np.asarray(second, float)
    blocks = min(len(one), len(two))
    if not blocks:
        return None
    value = float(two.mean() - one.mean())
    if blocks < BLOCKS_MIN:
        return {"value": value, "low": None, "high": None, "blocks": blocks}
    parts = np.array([one.var(ddof=1) / len(one), two.var(ddof=1) / len(two)])
    total = float(parts.sum())
    freedom = total**2 / float((parts**2 / [len(one) - 1, len(two) - 1]).sum()) if total > 0 else blocks - 1
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * math.sqrt(total)
    return {"value": value, "low": value - half, "high": value + half, "blocks": blocks}


def over_blocks(
    values: list[float],
    log: bool,
    ceiling: float | None = None,
    confidence: float = CONFIDENCE,
    floor: float | None = 0.0,
) -> Estimate | None:
    """Mean (geometric on logs) and t interval of one value a block, kept between floor and ceiling.

    None without any value. What counts something has the floor 0; a remainder, which may be negative, has none.
    """
    data = np.array([value for value in values if value is not None and np.isfinite(value)], float)
    if log:
        data = data[data > 0]
    if not len(data):
        return None
    scaled = np.log(data) if log else data
    mean = float(scaled.mean())
    back = np.exp if log else float
    if len(data) < BLOCKS_MIN:
        return Estimate(float(back(mean)), None, None, len(data))
    half = float(half_width(scaled.std(ddof=1), np.array(len(data)), confidence))
    low, high = float(back(mean - half)), float(back(mean + half))
    if not log and floor is not None:
        low = max(floor, low)
    return Estimate(float(back(mean)), low, high if ceiling is None else min(ceiling, high), len(data))
