"""Logs of trials in randomised blocks, in orders as experiment/design.py plans them, with noise of a stated kind.

Noise goes on in time, from trial to trial in the order that they ran in; a level's own scatter is on top of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NOISY = 5.0
DRIFT = 3.0


@dataclass(frozen=True)
class Shape:
    """Blocks, levels, and whether a duplicate runs in each block (of each level in turn)."""

    blocks: int
    levels: int
    duplicate: bool = True

    def __str__(self) -> str:
        return f"{self.levels} levels, {self.blocks} blocks{'' if self.duplicate else ', no duplicate'}"


def copies(
    kind: str, shape: Shape, runs: int, seed: int, sd: float = 1.0, truth: np.ndarray | None = None
) -> np.ndarray:
    """(runs, copies, blocks, levels) of logs; `sd` is one trial's, `truth` the levels' effects."""
    random = np.random.default_rng([seed, shape.blocks, shape.levels, shape.duplicate])
    arms = shape.levels + shape.duplicate
    order = np.argsort(random.random((runs, shape.blocks, arms)), -1)
    half = (shape.blocks + 1) // 2
    order[:, half:] = order[:, : shape.blocks - half, ::-1]
    noise = _in_time(kind, random, runs, shape.blocks * arms).reshape(runs, shape.blocks, arms)
    placed = np.empty_like(noise)
    np.put_along_axis(placed, order, noise, -1)
    found = np.full((runs, 2, shape.blocks, shape.levels), np.nan)
    found[:, 0] = placed[..., : shape.levels]
    if shape.duplicate:
        blocks = np.arange(shape.blocks)
        found[:, 1, blocks, blocks % shape.levels] = placed[..., shape.levels]
    if kind == "one noisy":
        found[..., 0] *= NOISY
    return found * sd + (0.0 if truth is None else truth)


def _in_time(kind: str, random: np.random.Generator, runs: int, trials: int) -> np.ndarray:
    """Noise of standard deviation 1 (of a t distribution with 3 degrees of freedom: scale 1), by time."""
    if kind == "heavy":
        return random.standard_t(3, (runs, trials))
    noise = random.standard_normal((runs, trials))
    if kind.startswith("AR "):
        rho = float(kind.removeprefix("AR "))
        noise[:, 1:] *= np.sqrt(1 - rho**2)
        for trial in range(1, trials):
            noise[:, trial] += rho * noise[:, trial - 1]
    if kind == "drift":
        noise = noise + DRIFT * np.arange(trials)
    return noise
