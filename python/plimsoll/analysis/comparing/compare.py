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

ALPHA = 0.01
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


def beaten(found: Pairs, noise: Noise, alpha: float = ALPHA) -> np.ndarray:
    """[..., i, j]: j beats i.

    By Tukey's test of all pairs at once, with the noise of all trials; and i's own interval with j lies below 1, so
    that no more is said than what is shown.
    """
    levels = found.mean.shape[-1]
    critical = range_quantile(1 - alpha, levels, noise.freedom)[..., None, None] / np.sqrt(2)
    with np.errstate(invalid="ignore"):
        return (found.blocks >= BLOCKS_MIN) & (-found.mean > critical * noise.error()) & (-found.mean > found.half())


def best_set(copies: np.ndarray, alpha: float = ALPHA, floor: float = 0.0) -> np.ndarray:
    """[..., treatment]: not told from the best, of (..., copies, blocks, treatments) as in noise.py.

    A treatment without any value is not in it.
    """
    logs = cells(copies)
    inside = ~beaten(pairs(logs), noise_of(copies, floor), alpha).any(-1)
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
