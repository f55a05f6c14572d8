"""Many means at once, each of a few blocks: variances that borrow from one another, and Holm's correction.

Three blocks tell a variance with two degrees of freedom. Where many series are measured alike, their variances are
taken for draws from a scaled inverse chi-squared distribution whose two parameters all of them tell; each is then moved
towards it (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, MeanDifference

_SERIES_MIN = 3
# Few series tell poorly how much their variances scatter, and to take too little for it accuses: so many standard
# errors are added to what was seen. benches/verdicts.py has what comes of it.
_CAUTION = 2.0


def moderated(found: Sequence[MeanDifference]) -> list[MeanDifference]:
    """The same means with moderated errors and their degrees of freedom; too few blocks or series stay as they are."""
    able = [one for one in found if one.blocks >= BLOCKS_MIN and one.error > 0]
    if len(able) < _SERIES_MIN:
        return list(found)
    variances = np.array([one.error**2 * one.blocks for one in able])
    freedom = np.array([one.freedom for one in able])
    prior, prior_freedom = _prior(variances, freedom)

    def moved(one: MeanDifference) -> MeanDifference:
        if one.blocks < BLOCKS_MIN:
            return one
        total = prior_freedom + one.freedom
        variance = (prior_freedom * prior + one.freedom * one.error**2 * one.blocks) / total
        return replace(one, error=math.sqrt(variance / one.blocks), freedom=total)

    return [moved(one) for one in found]


def _prior(variances: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """The variance that all tell, and how many degrees of freedom it is worth (Smyth 2004, section 6.2)."""
    logs = np.log(variances) - special.digamma(freedom / 2) + np.log(freedom / 2)
    chance = float(np.mean(special.polygamma(1, freedom / 2)))
    # the standard error of a variance whose fourth moment is that of the logarithm of chi-squared
    error = math.sqrt((2 * chance**2 + float(np.mean(special.polygamma(3, freedom / 2)))) / len(logs))
    excess = float(np.var(logs, ddof=1)) - chance + _CAUTION * error
    worth = 2 * _inverse_trigamma(max(excess, _CAUTION * error))
    return float(np.exp(logs.mean() + special.digamma(worth / 2) - np.log(worth / 2))), worth


def _inverse_trigamma(value: float) -> float:
    """By Newton's method on 1 / trigamma, which is convex: from above it never overshoots."""
    found = 0.5 + 1 / value
    for _ in range(50):
        now = float(special.polygamma(1, found))
        step = now * (1 - now / value) / float(special.polygamma(2, found))
        found += step
        if -step / found < 1e-8:
            break
    return found


def holm(chances: Sequence[float], error: float) -> list[float]:
    """The error at which each is to be judged so that all together are wrong with at most `error` (Holm, 1979).

    Those that are told have error / (number left at their step); the others that of the first step that failed.
    """
    order = np.argsort(chances, kind="stable")
    levels, failed = [0.0] * len(chances), 0.0
    for step, place in enumerate(order):
        level = failed or error / (len(chances) - step)
        if chances[place] > level:
            failed = level
        levels[place] = level
    return levels
