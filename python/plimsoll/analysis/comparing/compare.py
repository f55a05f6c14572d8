"""Treatments compared within blocks: log ratios, the set that cannot be told from the best, verdicts.

Only what ran in the same block is compared, because a shared machine drifts between blocks; a block that misses a
treatment serves the pairs it has. A treatment leaves the best set only when some other beats it, by a test of all pairs
at once: among equals none is called worse in 99 of 100 runs (benches/verdicts.py).
Arrays are (..., blocks, treatments) of logs where higher is better; NaN is a trial that does not enter.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from plimsoll.analysis.comparing.noise import Noise, cells, noise_of
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, half_width
from plimsoll.analysis.statistics.simultaneous import range_quantile

ALPHA = 0.01  # what is promised of a whole verdict: the share of runs that call any of equal levels worse
# What Tukey's test is held at. It is exact for independent trials alone: where neighbours in time resemble one another
# (AR(1) of 0.9) and the second half of the blocks has the orders of the first backwards it errs by up to 1.11 times its
# level: at 1 % in 1.11 of 100 runs, at 0.9 % in 1.005, at 0.88 % in 0.98. Of more blocks the halves lie farther apart,
# so that it errs by at most 1.05 times (+- 0.02; 200,000 simulated runs a cell, benches/README.md).
ALPHA_OF_TEST = 0.0088
ALPHA_OF_TEST_MANY = 0.0095
FEW_BLOCKS_MAX = 16
DELTA = 0.05
Word = Literal["better", "worse", "no relevant difference", "cannot tell"]


@dataclass(frozen=True)
class Pairs:
    """Within-block differences of treatment i minus treatment j, indexed [..., i, j]."""

    mean: np.ndarray
    sd: np.ndarray
    blocks: np.ndarray

    def half(self, confidence: float = CONFIDENCE) -> np.ndarray:
        """Half width of each pair's interval; NaN below three blocks."""
        return np.where(self.blocks >= BLOCKS_MIN, half_width(self.sd, self.blocks, confidence), np.nan)


def alpha_of_test(blocks: int) -> float:
    """What the test of so many blocks is held at, so that ALPHA is kept."""
    return ALPHA_OF_TEST if blocks <= FEW_BLOCKS_MAX else ALPHA_OF_TEST_MANY


def pairs(logs: np.ndarray) -> Pairs:
    """Every treatment against every other, over the blocks that have both."""
    difference = logs[..., :, None] - logs[..., None, :]
    present = np.isfinite(difference)
    count = present.sum(-3)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, difference, 0.0).sum(-3) / count
        square = np.where(present, difference - mean[..., None, :, :], 0.0) ** 2
        sd = np.sqrt(square.sum(-3) / (count - 1))
    return Pairs(mean, np.where(count > 1, sd, np.nan), count)


def beaten(found: Pairs, noise: Noise) -> np.ndarray:
    """[..., i, j]: j beats i.

    By Tukey's test of all pairs at once, with the noise of all trials; and i's own interval with j lies below 1, so
    that no more is said than what is shown.
    """
    levels, alpha = found.mean.shape[-1], alpha_of_test(int(found.blocks.max(initial=0)))
    critical = range_quantile(1 - alpha, levels, noise.freedom)[..., None, None] / np.sqrt(2)
    with np.errstate(invalid="ignore"):
        return (found.blocks >= BLOCKS_MIN) & (-found.mean > critical * noise.error()) & (-found.mean > found.half())


def best_set(copies: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """[..., treatment]: not told from the best, of (..., copies, blocks, treatments) as in noise.py.

    A treatment without any value is not in it.
    """
    logs = cells(copies)
    inside = ~beaten(pairs(logs), noise_of(copies, floor)).any(-1)
    return inside & np.isfinite(logs).any(-2)


def effects(logs: np.ndarray) -> np.ndarray:
    """Least-squares treatment effects with block effects taken out (2-D only); NaN without any value.

    The plain means when no trial is missing; otherwise a treatment that missed a slow block gains nothing by it.
    """
    blocks, treatments = logs.shape
    rows, columns = np.nonzero(np.isfinite(logs))
    if not len(rows):
        return np.full(treatments, np.nan)
    design = np.zeros((len(rows), treatments + blocks))
    design[np.arange(len(rows)), columns] = 1.0
    design[np.arange(len(rows)), treatments + rows] = 1.0
    solution = np.linalg.lstsq(design, logs[rows, columns], rcond=None)[0]
    used = np.unique(rows)
    result = solution[:treatments] + solution[treatments + used].mean()
    return np.where(np.isfinite(logs).any(0), result, np.nan)


def word(mean: float, half: float, delta: float = DELTA, spread_log: float = 0.0) -> Word:
    """The verdict on one log ratio with its interval. `half` is NaN when there is no interval."""
    if not np.isfinite(half):
        return "cannot tell"
    margin = np.log1p(delta)
    if abs(mean) + half <= margin:
        return "no relevant difference"
    if abs(mean) <= half or abs(mean) <= spread_log:
        return "cannot tell"
    return "better" if mean > 0 else "worse"
