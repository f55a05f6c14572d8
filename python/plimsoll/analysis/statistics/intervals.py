"""Intervals over blocks: Student's t on the metric's scale.

The block is the unit: seconds inside a trial are autocorrelated and are never counted as repeats. Fewer than three
blocks give no interval, three or four an "indicative" one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plimsoll.analysis.statistics.distributions import t_beyond, t_quantile
from plimsoll.record.verdict import Mean

CONFIDENCE = 0.95
BLOCKS_MIN = 3
BLOCKS_FULL = 5
Grade = Literal["none", "indicative", "interval"]


def grade(blocks: int, blocks_min: int = BLOCKS_MIN) -> Grade:
    """What so many blocks can carry; below `blocks_min` there is no interval."""
    return "none" if blocks < blocks_min else "indicative" if blocks < BLOCKS_FULL else "interval"


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
        critical = t_quantile(0.5 + confidence / 2, np.where(count > 1, count - 1, np.nan))
        return critical * sd / np.sqrt(count)


@dataclass(frozen=True)
class MeanDifference:
    """A difference of two means with its standard error, for intervals of any confidence."""

    value: float
    error: float
    freedom: float
    blocks: int

    def interval(self, confidence: float = CONFIDENCE) -> Mean:
        """As a document has it; low and high are None where there are too few blocks."""
        if self.blocks < BLOCKS_MIN:
            return {"value": self.value, "low": None, "high": None, "blocks": self.blocks}
        half = float(t_quantile(0.5 + confidence / 2, self.freedom)) * self.error
        return {"value": self.value, "low": self.value - half, "high": self.value + half, "blocks": self.blocks}

    def chance(self) -> float:
        """The p-value: how likely so large a difference is between equals; 1 where there is no interval."""
        if self.blocks < BLOCKS_MIN:
            return 1.0
        if self.error == 0:
            return 0.0 if self.value else 1.0
        return float(2 * t_beyond(abs(self.value) / self.error, self.freedom))


def paired(differences: Sequence[float]) -> MeanDifference | None:
    """The mean of differences within blocks; None without any."""
    data = np.asarray(differences, float)
    blocks = len(data)
    if not blocks:
        return None
    error = float(data.std(ddof=1)) / math.sqrt(blocks) if blocks > 1 else math.nan
    return MeanDifference(float(data.mean()), error, blocks - 1, blocks)


def unpaired(first: Sequence[float], second: Sequence[float]) -> MeanDifference | None:
    """Mean of the second less that of the first, of blocks that are not paired, by Welch; None if a side has no value.

    Its `blocks` are those of the side that has fewer.
    """
    one, two = np.asarray(first, float), np.asarray(second, float)
    blocks = min(len(one), len(two))
    if not blocks:
        return None
    value = float(two.mean() - one.mean())
    if blocks < BLOCKS_MIN:
        return MeanDifference(value, math.nan, math.nan, blocks)
    parts = np.array([one.var(ddof=1) / len(one), two.var(ddof=1) / len(two)])
    total = float(parts.sum())
    freedom = total**2 / float((parts**2 / [len(one) - 1, len(two) - 1]).sum()) if total > 0 else blocks - 1
    return MeanDifference(value, math.sqrt(total), freedom, blocks)


def welch(first: Sequence[float], second: Sequence[float]) -> Mean | None:
    """The difference of blocks that are not paired, with its interval; None if a side has no value."""
    found = unpaired(first, second)
    return None if found is None else found.interval()


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
