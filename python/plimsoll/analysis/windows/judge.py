"""Levels compared by windows: two levels of noise, the window's and the start's, pooled over all levels.

Servers of a block run a window each in every round, in random order, so a drift strikes all of them alike: what counts
is how their rates differ within a round. A level's rate in a block is that of its rounds together, stalls and windows
without a transaction included; none is left out, which would favour what stalls. Each fresh start of a server differs
from the next by more than its windows do, and only further blocks tell by how much. So levels are told apart by what
neither block nor level explains of the blocks' log rates (noise.py; Tukey's test of all pairs at once), of which the
windows' noise is a part. Beside that a difference has to be beyond what the windows alone scatter, with what a stored
A/A of windows found of starts: few blocks may agree by chance.

Arrays are (..., copies, blocks, levels, rounds) of rates, copy 0 the original and copy 1 the duplicate; NaN is a window
that is not there. benches/verdicts.py has the errors by simulation (its sections of windows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.comparing.compare import Pairs, pairs
from plimsoll.analysis.comparing.noise import Noise, cells, noise_of
from plimsoll.analysis.comparing.unbounded import Compared
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.analysis.windows.spending import FULL, Share

_CORRELATION_MAX = 0.9
_MANY = 200  # from so many degrees of freedom on a critical value stays within 1 %


@dataclass(frozen=True)
class Start:
    """How starts of one server differ, from a stored A/A of windows: standard deviation of the log, and its freedom."""

    sd_log: float
    freedom: float


@dataclass(frozen=True)
class WindowNoise(Noise):
    """As `Noise`, and what the windows alone say: the standard error of each pair, with the starts of a stored A/A.

    `window_freedom` are its degrees of freedom. A difference has to be beyond both errors, each with its own freedom.
    """

    least: np.ndarray
    window_freedom: np.ndarray

    def error(self) -> np.ndarray:
        """[..., i, j]: standard error of the mean difference of two levels; of one block that of the windows alone."""
        return np.asarray(np.where(self.freedom[..., None, None] >= 1, super().error(), self.least))

    def beyond(self, quantile: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """[..., i, j]: what a difference has to exceed, for a critical value of given degrees of freedom."""
        own = quantile(np.where(self.freedom >= 1, self.freedom, np.nan))[..., None, None] * super().error()
        return np.asarray(np.fmax(own, quantile(self.window_freedom)[..., None, None] * self.least))


@dataclass(frozen=True)
class WindowPairs(Pairs):
    """As `Pairs`; `width` is half of each interval, by the noise of all levels."""

    width: np.ndarray

    def half(self, confidence: float = CONFIDENCE) -> np.ndarray:  # noqa: ARG002  made at one confidence
        """Half width of each pair's interval, at the confidence that it was made with."""
        return self.width


@dataclass(frozen=True)
class Within:
    """What windows alone scatter. `pair` is [..., block, i, j], the variance of two levels' log ratio in a block.

    `window` [...] is the variance of one window's log as far as the mean of many is concerned (with their correlation),
    `correlation` [...] that of neighbouring rounds.
    """

    pair: np.ndarray
    window: np.ndarray
    correlation: np.ndarray
    rounds: np.ndarray


def logs_of(rates: np.ndarray) -> np.ndarray:
    """(..., copies, blocks, levels): log of the rate of all rounds together; NaN without any transaction."""
    present = np.isfinite(rates)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, rates, 0.0).sum(-1) / present.sum(-1)
        return np.where(mean > 0, np.log(np.where(mean > 0, mean, 1.0)), np.nan)


def within(rates: np.ndarray) -> Within:
    """The scatter of windows about their own server's rate, by rounds: each divided by it, less 1 (linearisation).

    What rounds share cancels in the difference of two levels, and so does a drift. The variance of a mean counts the
    correlation of neighbouring rounds as of an AR(1), pooled over blocks and pairs, never as a negative one.
    """
    present = np.isfinite(rates)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, rates, 0.0).sum(-1, keepdims=True) / present.sum(-1, keepdims=True)
        own = rates / mean - 1
        shown = np.isfinite(own)
        level = np.where(shown, own, 0.0).sum(-4) / shown.sum(-4)
        single = np.where(shown, 1.0, 0.0).sum(-4).clip(1)
    known = np.isfinite(level)
    filled = np.where(known, level, 0.0)
    rounds = known.sum(-1)
    both = np.minimum(rounds[..., :, None], rounds[..., None, :])
    square = _of_differences(filled, filled)
    after = _of_differences(filled[..., 1:], filled[..., :-1])
    apart = np.where((both > 1) & ~np.eye(both.shape[-1], dtype=bool), 1.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        raw = (after * apart).sum((-3, -2, -1)) / (square * apart).sum((-3, -2, -1))
        typical = (both * apart).sum((-3, -2, -1)) / apart.sum((-3, -2, -1))
        # short series make it look smaller (Marriott and Pope, Biometrika 41, 1954)
        rho = np.clip(raw + (1 + 4 * np.maximum(raw, 0)) / typical, 0.0, _CORRELATION_MAX)
        factor = ((1 + rho) / (1 - rho))[..., None, None, None]
        of_window = square / (both - 1) * factor
        pair = np.where(apart > 0, of_window / both, np.nan)
        copies = np.where(known, single, 0.0).sum(-1) / np.maximum(rounds, 1)
        each = 1 / copies[..., :, None].clip(1) + 1 / copies[..., None, :].clip(1)
        window = (of_window / each * apart).sum((-3, -2, -1)) / apart.sum((-3, -2, -1))
    return Within(pair, window, rho, rounds)


def _of_differences(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """[..., i, j]: sum over rounds of the products of i - j in one with i - j in two."""
    product = one @ np.swapaxes(two, -1, -2)
    own = np.diagonal(product, axis1=-2, axis2=-1)
    return np.asarray(own[..., :, None] + own[..., None, :] - product - np.swapaxes(product, -1, -2))


def noise(rates: np.ndarray, start: Start | None = None) -> tuple[WindowNoise, Within]:
    """The noise of a comparison by windows, and what of it is the windows'."""
    found, inside = noise_of(logs_of(rates)), within(rates)
    known = np.isfinite(inside.pair)
    blocks = known.sum(-3)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(known, inside.pair, 0.0).sum(-3) / np.where(blocks > 0, blocks, np.nan) ** 2
        of_starts = 0.0 if start is None else 2 * start.sd_log**2 / blocks
        freedom = _window_freedom(variance, of_starts, inside, start)
        least = np.sqrt(variance + of_starts)
    own = np.asarray(found.freedom, float)
    return WindowNoise(found.variance, own, found.own, found.weight, found.blocks, least, freedom), inside


def _window_freedom(
    variance: np.ndarray, of_starts: np.ndarray | float, inside: Within, start: Start | None
) -> np.ndarray:
    """Degrees of freedom of the windows' variance, with stored starts by Satterthwaite: the fewest of any pair."""
    rounds = inside.rounds.max(-1)
    rho = inside.correlation
    independent = np.where(rounds > 1, rounds - 1, 0).sum(-1) * (1 - rho) / (1 + rho)
    own = np.maximum(independent, 1.0)
    if start is None:
        return np.asarray(own)
    each = (variance + of_starts) ** 2
    each = each / (variance**2 / own[..., None, None] + np.square(of_starts) / start.freedom)
    return np.asarray(np.where(np.isfinite(each), each, np.inf).min((-2, -1)))


def compare(rates: np.ndarray, start: Start | None = None, share: Share = FULL) -> tuple[Compared, Within]:
    """Every level against every other; `share` is of the errors that this look may spend (spending.py).

    One block tells nothing of starts: without a stored A/A (`start`) nothing is told from it.
    """
    scatter, inside = noise(rates, start)
    apart = pairs(cells(logs_of(rates)))
    levels = apart.mean.shape[-1]
    able = (scatter.freedom[..., None, None] >= 1) | (start is not None)
    able = able & (apart.blocks > 0)
    critical = scatter.beyond(lambda freedom: range_quantile(1 - share.alpha, levels, whole(freedom)) / np.sqrt(2))
    width = scatter.beyond(lambda freedom: t_quantile(0.5 + share.confidence / 2, freedom))
    width = np.where(able, width, np.nan)
    shown = WindowPairs(apart.mean, apart.sd, apart.blocks, width)
    with np.errstate(invalid="ignore"):
        told = able & (-apart.mean > critical) & (-apart.mean > width)
    none = np.zeros(apart.mean.shape, int)
    return Compared(shown, shown, none, none, told, scatter, share.confidence), inside


def whole(freedom: np.ndarray) -> np.ndarray:
    """Down to whole degrees of freedom, and to few different ones where many make no difference."""
    kept = np.where(freedom > _MANY, _MANY, np.floor(freedom))
    return np.asarray(np.where(np.isfinite(freedom), np.maximum(kept, 1.0), np.nan))
