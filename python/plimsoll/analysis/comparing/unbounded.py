"""Levels whose percentile has no bound in some block: an open loop did not answer that many transactions in time.

Such a value is censored and not missing: it is above a known least (the late limit, or the largest latency that was
seen), and in its block it ranks behind every value that is known. So a level never wins by it: it is not said to beat
one that was bounded where it was not. The other way round a level loses by any of three tests:

- by that of compare.py with the unbounded blocks at their least, which is a value seen like any other, and lower;
- by that of the blocks in which both are bounded: the others can only confirm it;
- by being unbounded in every common block while the other never is. Between equals that has a chance of at most a
  quarter a block (q (1 - q)), so three blocks are 1 in 64.

A block in which both are unbounded tells nothing between them and counts as no difference.
tests/unit/analysis/test_unbounded.py has the errors by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plimsoll.analysis.comparing.compare import Pairs, beaten, pairs
from plimsoll.analysis.comparing.noise import Noise, cells, noise_of
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, over_blocks
from plimsoll.analysis.statistics.simultaneous import best_quantile
from plimsoll.record.verdict import Mean, Ratio

Json = dict[str, Any]
_DISCORDANT = 0.25  # the largest chance between equals that one is unbounded in a block and the other is not
_ALWAYS_ERROR = 0.05  # of calling a level worse because it is unbounded in every block, over all of its pairs


def reading(entry: Mapping[str, Any] | None, key: str) -> tuple[float | None, bool]:
    """A trial's metric, and whether it is only the least that it can be."""
    if entry is None:
        return None, False
    value = entry["metrics"].get(key)
    least = (entry.get("unbounded") or {}).get(key) if value is None else None
    return (value, False) if least is None else (least, True)


def together(entry: Mapping[str, Any], twin: Mapping[str, Any] | None, metric: Metric) -> tuple[float | None, bool]:
    """What a treatment has in a block: the mean, on the metric's scale, of its trial and of that one's duplicate.

    A trial that is unbounded, or that has no duplicate with a value, stands by itself, as it does in a comparison.
    """
    (own, is_least), (other, is_other_least) = reading(entry, metric.key), reading(twin, metric.key)
    if own is None or other is None or is_least or is_other_least:
        return own, is_least
    if metric.scale == "plain":
        return (own + other) / 2, False
    return (math.sqrt(own * other) if min(own, other) > 0 else own), False


def estimate(readings: Iterable[tuple[float | None, bool]], metric: Metric) -> Mean | None:
    """Mean over blocks with its interval; with `unbounded` blocks it is the least it can be, and has no interval."""
    known = [(value, beyond) for value, beyond in readings if value is not None]
    over = over_blocks([value for value, _ in known], metric.scale == "log", metric.ceiling, floor=metric.floor)
    if over is None:
        return None
    if beyond := sum(beyond for _, beyond in known):
        found: Mean = {"value": over.value, "low": None, "high": None, "blocks": over.blocks, "unbounded": beyond}
        return {**found, "stood_still": True} if metric.better == "higher" else found
    return {"value": over.value, "low": over.low, "high": over.high, "blocks": over.blocks}


@dataclass(frozen=True)
class Compared:
    """Pairs of levels of [block, level] logs, higher is better; indexed [i, j].

    `shown` has unbounded blocks at their least and two of a block as equal; `bounded` lacks both. `lost` counts blocks
    in which i is unbounded and j is not, `tied` those in which both are.
    """

    shown: Pairs
    bounded: Pairs
    lost: np.ndarray
    tied: np.ndarray
    beaten: np.ndarray
    noise: Noise
    confidence: float = CONFIDENCE

    @property
    def touched(self) -> np.ndarray:
        """[i, j]: either is unbounded somewhere."""
        return (self.lost + self.lost.swapaxes(-1, -2) + self.tied) > 0

    def half(self) -> np.ndarray:
        """Half widths; NaN for pairs that are unbounded somewhere: no interval has two ends there."""
        return np.where(self.touched, np.nan, self.shown.half())

    def with_best(self, best: int, index: int) -> Ratio:
        """How many times `index` is behind the best: {ratio, low, high, blocks}, by Hsu's simultaneous intervals.

        They know that the best was chosen for its estimate. Nothing is better than the best, so low is at least 1; and
        as a level may be noisier than all together, the interval holds the pair's own. A pair that is unbounded
        somewhere has its `ratio`.
        """
        if self.touched[best, index]:
            return self.ratio(best, index)
        mean, blocks = float(self.shown.mean[best, index]), int(self.shown.blocks[best, index])
        critical = float(best_quantile(self.confidence, len(self.shown.mean), self.noise.freedom))
        half = float(np.maximum(critical * self.noise.error(), self.shown.half())[best, index])
        ends = (max(1.0, math.exp(mean - half)), math.exp(mean + half)) if math.isfinite(half) else (None, None)
        return {"ratio": math.exp(mean), "low": ends[0], "high": ends[1], "blocks": blocks}

    def ratio(self, first: int, second: int, sign: float = 1.0) -> Ratio:
        """exp(sign x (first - second)): {ratio, low, high, blocks}, and what it is a `bound` of where it is one.

        `bound` is "at least" or "at most" (of the two ends one is then null), or "unknown" where each of the two is
        unbounded somewhere without the other: then ratio is null, too.
        """
        firsts, seconds = int(self.lost[first, second]), int(self.lost[second, first])
        blocks = int(self.shown.blocks[first, second])
        if (firsts and seconds) or (not firsts and not seconds and self.bounded.blocks[first, second] == 0):
            return {"ratio": None, "low": None, "high": None, "blocks": blocks, "bound": "unknown"}
        if not firsts and not seconds:  # whatever is unbounded is so on both sides: what can be told is in the rest
            ratio, low, high = _ends(self.bounded, first, second, sign)
            return {"ratio": ratio, "low": low, "high": high, "blocks": int(self.bounded.blocks[first, second])}
        ends = [_ends(compared, first, second, sign) for compared in (self.shown, self.bounded)]
        is_least = (sign < 0) == (firsts > 0)  # an unbounded level is the lower one on this scale
        tells = [
            end is not None and end != 1 and (end > 1) == is_least
            for end in (three_ends[1 if is_least else 2] for three_ends in ends)
        ]
        ratio, low, high = ends[1] if tells[1] and not tells[0] else ends[0]
        if is_least:
            return {"ratio": ratio, "low": low, "high": None, "blocks": blocks, "bound": "at least"}
        return {"ratio": ratio, "low": None, "high": high, "blocks": blocks, "bound": "at most"}


def _ends(compared: Pairs, first: int, second: int, sign: float) -> tuple[float, float | None, float | None]:
    """The ratio of two levels and the ends of its interval."""
    centre, half = sign * float(compared.mean[first, second]), float(compared.half()[first, second])
    if not math.isfinite(half):
        return math.exp(centre), None, None
    return math.exp(centre), math.exp(centre - half), math.exp(centre + half)


def compare(copies: np.ndarray, beyond: np.ndarray, floor: float = 0.0) -> Compared:
    """Every level against every other, of (..., copies, blocks, levels) as in noise.py.

    `beyond`, (..., blocks, levels), marks originals at the least they can be; such a one has no duplicate.
    """
    at_least = alike(copies, beyond)
    shown, bounded = pairs(cells(at_least)), pairs(np.where(beyond, np.nan, cells(copies)))
    lost, tied = counted(np.isfinite(cells(copies)), beyond)
    noise = noise_of(at_least, floor)
    tells = beaten(shown, noise)
    if beyond.any():
        tells |= beaten(bounded, noise_of(np.where(beyond[..., None, :, :], np.nan, copies), floor))
        tells |= (lost == shown.blocks) & always_tells(shown.blocks, copies.shape[-1])
    return Compared(shown, bounded, lost, tied, tells & (lost.swapaxes(-1, -2) == 0), noise)


def counted(present: np.ndarray, beyond: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[..., i, j]: blocks in which i is unbounded and j is not, and in which both are; of (..., blocks, levels)."""
    both = present[..., :, None] & present[..., None, :]
    lost = (both & beyond[..., :, None] & ~beyond[..., None, :]).sum(-3)
    tied = (both & beyond[..., :, None] & beyond[..., None, :]).sum(-3) * ~np.eye(beyond.shape[-1], dtype=bool)
    return lost, tied


def alike(copies: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """All that are unbounded in a block at the smallest of their leasts, so that they are equal there."""
    marked = beyond[..., None, :, :] & np.isfinite(copies)
    least = np.where(marked, copies, -np.inf).max((-3, -1), keepdims=True)
    return np.where(marked, least, copies)


def always_tells(blocks: Any, levels: int = 2) -> Any:
    """Whether so many blocks tell a level that is unbounded in all of them from one that is so in none."""
    error = min(_ALWAYS_ERROR / max(1, levels - 1), _ALWAYS_ERROR / 2)
    return (blocks >= BLOCKS_MIN) & (_DISCORDANT**blocks <= error)


def blocks_words(counted: Mapping[str, Any]) -> str:
    """ "unbounded in 2 of 5 blocks", of {blocks, of}; of a rate "stood still in 2 of 5 blocks"."""
    what = "stood still" if counted.get("stood_still") else "unbounded"
    if counted["blocks"] == counted["of"]:
        return f"{what} in all {counted['of']} blocks" if counted["of"] > 1 else f"{what} in its only block"
    return f"{what} in {counted['blocks']} of {counted['of']} blocks"
