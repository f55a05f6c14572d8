"""How far trials scatter that ought to be equal: what a difference of two levels has to be larger than.

Three blocks tell next to nothing about the scatter of one pair, so all trials of a comparison tell together: what
neither block nor level explains (the residual of the two-way model), and how a duplicate differs from its original. A
level that scatters more than the others is not judged by them: its own distances from their mean count where they are
larger. So does what a stored A/A run found, which never makes a run's own noise smaller.

Arrays are (..., copies, blocks, levels) of logs, copy 0 the original and copy 1 the duplicate; NaN is a trial that does
not enter. Blocks and levels need not be complete. benches/verdicts.py has the errors by simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def cells(copies: np.ndarray) -> np.ndarray:
    """[..., block, level]: the mean of a level's trials in a block; NaN without any."""
    present = np.isfinite(copies)
    with np.errstate(invalid="ignore"):
        found: np.ndarray = np.where(present, copies, 0.0).sum(-3) / present.sum(-3)
    return found


@dataclass(frozen=True)
class Noise:
    """Variances of logs. `variance` is one trial's, with its degrees of `freedom`; `own` each level's by itself."""

    variance: np.ndarray
    freedom: np.ndarray
    own: np.ndarray
    weight: np.ndarray
    blocks: np.ndarray

    def error(self) -> np.ndarray:
        """[..., i, j]: standard error of the mean difference of two levels over the blocks that have both."""
        return np.asarray(np.sqrt(np.fmax(*self.squares())))

    def squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Its square by all trials, and by the noisier of the two levels alone; the larger counts."""
        with np.errstate(invalid="ignore", divide="ignore"):
            pooled = self.variance[..., None, None] * self.weight
            alone = np.fmax(self.own[..., :, None], self.own[..., None, :]) * 2 / self.blocks
        return pooled, alone


def noise_of(copies: np.ndarray, floor: float = 0.0) -> Noise:
    """The noise of a comparison; `floor` is the standard deviation of a trial's log that is known from elsewhere."""
    present = np.isfinite(copies)
    counts, sums = present.sum(-3), np.where(present, copies, 0.0).sum(-3)
    in_block = counts.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(in_block > 0, counts / in_block, 0.0)
        block_mean = np.where(in_block > 0, sums.sum(-1, keepdims=True) / in_block, 0.0)
        # the normal equations of the levels once the blocks are taken out
        normal = counts.sum(-2)[..., None] * np.eye(counts.shape[-1]) - np.swapaxes(counts, -1, -2) @ share
        effect = np.linalg.pinv(normal, hermitian=True) @ (sums - counts * block_mean).sum(-2)[..., None]
        effect = np.swapaxes(effect, -1, -2)
        fitted = block_mean - (share * effect).sum(-1, keepdims=True) + effect
        residual = np.where(present, copies - fitted[..., None, :, :], 0.0)
        rank = np.linalg.matrix_rank(normal, tol=1e-6, hermitian=True)
        freedom = present.sum((-3, -2, -1)) - (in_block > 0).sum((-2, -1)) - rank
        variance = np.where(freedom > 0, (residual**2).sum((-3, -2, -1)) / np.maximum(freedom, 1), np.nan)
        both = (counts[..., :, None] > 0) & (counts[..., None, :] > 0)
        each = np.where(both, 1 / counts[..., :, None] + 1 / counts[..., None, :], 0.0)
        blocks = both.sum(-3)
        weight = each.sum(-3) / blocks**2
    return Noise(
        np.fmax(variance, floor**2), freedom, _own(np.where(counts > 0, cells(copies) - fitted, np.nan)), weight, blocks
    )


def _own(residual: np.ndarray) -> np.ndarray:
    """[..., level]: variance of a level's distance from the mean of the others, of [..., block, level] residuals.

    Scaled so that it expects one trial's variance where all levels are equally noisy; NaN below two blocks. Its own
    trial has a share of (levels - 1) / levels in that distance.
    """
    present = np.isfinite(residual)
    others = present.sum(-1, keepdims=True) - present
    known = np.where(present, residual, 0.0)
    usable = present & (others > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = known - (known.sum(-1, keepdims=True) - known) / others
        scale = others / (others + 1)
        blocks = usable.sum(-2, keepdims=True)
        mean = np.where(usable, distance, 0.0).sum(-2, keepdims=True) / blocks
        square = np.where(usable, (distance - mean) ** 2 * scale, 0.0).sum(-2)
        return np.where(blocks[..., 0, :] > 1, square / (blocks[..., 0, :] - 1), np.nan)
