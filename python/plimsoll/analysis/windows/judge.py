"""Levels compared by windows: two levels of noise, the window's and the start's, pooled over all levels.

Servers of a block run a window each in every round, in random order, so a drift strikes all of them alike: what counts
is how their rates differ within a round. A level's rate in a block is that of its rounds together, stalls and windows
without a transaction included; none is left out, which would favour what stalls. Each fresh start of a server differs
from the next by more than its windows do, and only further blocks tell by how much. So levels are told apart by what
neither block nor level explains of the blocks' log rates (noise.py; Tukey's test of all pairs at once), of which the
windows' noise is a part. Beside that a difference has to be beyond what the windows alone scatter, with what a stored
A/A of windows found of starts: few blocks may agree by chance. Levels of different groups are compared through one that
all groups have (through.py).

Arrays are (..., copies, blocks, levels, rounds) of rates, copy 0 the original and copy 1 the duplicate; NaN is a window
that is not there. benches/verdicts.py has the errors by simulation (its sections of windows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plimsoll.analysis.comparing.compare import Pairs, pairs
from plimsoll.analysis.comparing.noise import Noise, cells, noise_of
from plimsoll.analysis.comparing.unbounded import Compared, always_tells, counted
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.analysis.windows.spending import FULL, Share
from plimsoll.analysis.windows.through import Through, is_direct

_CORRELATION_MAX = 0.9
_MANY = 200  # from so many degrees of freedom on a critical value stays within 1 %


@dataclass(frozen=True)
class Start:
    """How trials of one server differ in a stored A/A of windows, by their starts and their windows together.

    `trial_sd_log`: standard deviation of a trial's log, with its degrees of `freedom`; `windows_sd_log`: what windows
    alone explain of it, which is known much better (equals.py).
    """

    trial_sd_log: float
    freedom: float
    windows_sd_log: float = 0.0

    @property
    def sd_log(self) -> float:
        """Of a start alone, as what the windows leave of a trial: for readers, since it may be 0 by chance."""
        return math.sqrt(max(self.trial_sd_log**2 - self.windows_sd_log**2, 0.0))


@dataclass(frozen=True)
class WindowNoise(Noise):
    """As `Noise`, and what the windows alone say, with the trials of a stored A/A.

    `between` is the standard error of each pair by whole blocks; `windows` and `trials` are the variances that windows
    and trials as in the stored A/A each add to it, with their degrees of freedom (`trial_freedom` is None without an
    A/A); `beside` is what of `windows` those trials do not have in them already. A difference has to be beyond both
    errors.
    """

    between: np.ndarray
    windows: np.ndarray
    trials: np.ndarray
    beside: np.ndarray
    window_freedom: np.ndarray
    trial_freedom: float | None

    @property
    def least_freedom(self) -> np.ndarray:
        """Of the windows' error with the stored trials: at least that of the one which is known less well."""
        known = math.inf if self.trial_freedom is None else self.trial_freedom
        return np.minimum(self.window_freedom, known)

    def error(self) -> np.ndarray:
        """[..., i, j]: standard error of the mean difference of two levels; of one block that of the windows alone."""
        least = np.sqrt(np.fmax(self.windows, self.beside + self.trials))
        return np.asarray(np.where(self.freedom[..., None, None] >= 1, self.between, least))

    def beyond(self, quantile: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """[..., i, j]: what a difference has to exceed, for a critical value of given degrees of freedom.

        Windows and stored trials each count with the critical value of their own freedom (Banerjee, Sankhya 22, 1960),
        which errs to the safe side whatever their shares are. One freedom of both, estimated from them, is too large
        just where the starts happen to look small: it accused up to 1.8 of 100 runs of equals. So is a start's
        variance by itself, of which an A/A finds nothing in every other run where it is well below the windows'.
        """
        own = quantile(np.where(self.freedom >= 1, self.freedom, np.nan))[..., None, None] * self.between
        of_windows = quantile(self.window_freedom)[..., None, None] ** 2
        least = of_windows * self.windows
        if self.trial_freedom is not None:
            of_trials = quantile(np.asarray(self.trial_freedom)) ** 2
            least = np.fmax(least, of_windows * self.beside + of_trials * self.trials)
        return np.asarray(np.fmax(own, np.sqrt(least)))

    def first(self, levels: int) -> WindowNoise:
        """Of the first so many levels; the noise stays that of all."""
        cut = (..., slice(levels), slice(levels))
        square = {
            name: getattr(self, name)[cut] for name in ("weight", "blocks", "between", "windows", "trials", "beside")
        }
        return replace(self, own=self.own[..., :levels], **square)


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


def noise(rates: np.ndarray, start: Start | None = None, through: Through | None = None) -> tuple[WindowNoise, Within]:
    """The noise of a comparison by windows, and what of it is the windows'."""
    found, inside = noise_of(logs_of(rates)), within(rates)
    found = found if through is None else through.noise(found)
    known = np.isfinite(inside.pair)
    blocks = known.sum(-3)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(known, inside.pair, 0.0).sum(-3) / np.where(blocks > 0, blocks, np.nan) ** 2
        of_trial, explained = (0.0, 0.0) if start is None else (start.trial_sd_log**2, start.windows_sd_log**2)
        of_trials = np.where(blocks > 0, 2 * of_trial / blocks, np.nan)
        beside = np.fmax(variance - 2 * explained / blocks, 0.0)
        pooled, alone = found.squares()
        if through is not None:
            pooled, alone = (through.joined(square, is_direct(found.blocks)) for square in (pooled, alone))
            each = (variance, of_trials, beside)
            variance, of_trials, beside = (through.joined(one, is_direct(blocks)) for one in each)
    scatter = WindowNoise(
        found.variance,
        np.asarray(found.freedom, float),
        found.own,
        found.weight,
        found.blocks,
        np.sqrt(np.fmax(pooled, alone)),
        variance,
        of_trials,
        beside,
        _window_freedom(inside),
        None if start is None else start.freedom,
    )
    return scatter, inside


def _window_freedom(inside: Within) -> np.ndarray:
    """Degrees of freedom of the windows' variance: the fewest of any pair that has blocks in common.

    Of two levels that are compared through a third they are at least those of the comparison that has fewer.
    """
    of_pair = np.minimum(inside.rounds[..., :, None], inside.rounds[..., None, :]) - 1
    each = np.where(np.isfinite(inside.pair), of_pair, 0).sum(-3)
    fewest = np.where(each > 0, each, np.inf).min((-2, -1))
    rho = inside.correlation
    return np.asarray(np.maximum(np.where(np.isfinite(fewest), fewest, 0) * (1 - rho) / (1 + rho), 1.0))


def compare(
    rates: np.ndarray,
    start: Start | None = None,
    share: Share = FULL,
    through: Through | None = None,
    beyond: np.ndarray | None = None,
) -> tuple[Compared, Within]:
    """Every level against every other; `share` is of the errors that this look may spend (spending.py).

    One block tells nothing of starts: without a stored A/A (`start`) nothing is told from it. `through`: how levels are
    compared that have no block in common. `beyond` [..., block, level]: these stood still, and are at the most that
    they can have done: such a level never wins, and loses as one without a bound does (comparing/unbounded.py).
    """
    if beyond is None or not beyond.any():
        return _compare(rates, start, share, through)
    is_still = beyond[..., None, :, :, None] & np.isfinite(rates)
    most = np.where(is_still, rates, -np.inf).max((-4, -2), keepdims=True)
    with_them, _ = _compare(np.where(is_still, most, rates), start, share, through)
    rest, inside = _compare(np.where(is_still, np.nan, rates), start, share, through)
    levels = rest.shown.mean.shape[-1]
    present = np.isfinite(rates).any((-4, -1))
    lost, tied = counted(present[..., :levels], beyond[..., :levels])
    touched = lost + np.swapaxes(lost, -1, -2) + tied > 0
    shown = with_them.shown
    assert isinstance(shown, WindowPairs)
    shown = replace(shown, width=np.where(touched, shown.width, rest.shown.half()))
    told = rest.beaten | (touched & with_them.beaten)
    told |= (lost > 0) & (lost == shown.blocks) & always_tells(shown.blocks, levels)
    told &= np.swapaxes(lost, -1, -2) == 0
    return Compared(shown, rest.shown, lost, tied, told, rest.noise, share.confidence), inside


def _compare(rates: np.ndarray, start: Start | None, share: Share, through: Through | None) -> tuple[Compared, Within]:
    scatter, inside = noise(rates, start, through)
    apart = pairs(cells(logs_of(rates)))
    if through is not None:
        apart, scatter = _first(through.pairs(apart), through.levels), scatter.first(through.levels)
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


def _first(found: Pairs, levels: int) -> Pairs:
    cut = (..., slice(levels), slice(levels))
    return Pairs(found.mean[cut], found.sd[cut], found.blocks[cut])


def whole(freedom: np.ndarray) -> np.ndarray:
    """Down to whole degrees of freedom, and to few different ones where many make no difference."""
    kept = np.where(freedom > _MANY, _MANY, np.floor(freedom))
    return np.asarray(np.where(np.isfinite(freedom), np.maximum(kept, 1.0), np.nan))
