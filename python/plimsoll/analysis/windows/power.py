"""How large a difference of two levels has to be, to be told in a given share of runs: by the test as it is made.

The fact that constrains it: a difference has to be beyond the noise of all trials, beyond that of the noisier of the
two levels by itself, and beyond what windows and stored trials scatter (judge.py). With two levels the first two are
the same; with more the noisier of two counts, which few blocks make large by chance, and a plan that forgets that
promises 80 % where 60 % are told. So the chance is summed over the joint distribution of the three estimates: residuals
of two levels in a block correlate by -1 / (levels - 1), and so their sums of squares are a Wishart matrix (Bartlett,
Proc. R. Soc. Edinburgh 53, 1933). No random number is drawn: the sum is over quantiles.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from plimsoll.analysis.statistics.distributions import chi2_quantile, normal_quantile

_STEPS = 12  # quantiles of each estimate: more change the power by less than half a percent
_PRECISION = 1e-4


@dataclass(frozen=True)
class Test:
    """Of one pair. `error` is the standard error of its difference, `critical` the value of the test on `freedom`
    degrees, `least` what a difference has to exceed whatever blocks say. In `groups` levels are compared through a
    third."""

    levels: int
    blocks: int
    freedom: int
    error: float
    critical: float
    least: float
    groups: int = 1


def difference_told(test: Test, power: float) -> float:
    """The smallest difference that is told so often."""
    beyond = np.maximum(test.critical * np.sqrt(_larger(test)), test.least / test.error)
    low, high = 0.0, float(beyond.max()) + 10.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        told = float(special.ndtr(middle - beyond).mean())
        low, high = (middle, high) if told < power else (low, middle)
    return high * test.error


def _larger(test: Test) -> np.ndarray:
    """Estimates of the variance of the difference, in units of what it is: the larger of both in each."""
    own, rest = test.blocks - 1, test.freedom
    if test.groups > 1:
        first, second, reference, every = _grid(
            _squares(own), _squares(own), _squares(test.groups * own), _squares(rest)
        )
        one, two, third = first / own, second / own, reference / (test.groups * own)
        return np.maximum(every / rest, (np.maximum(one, third) + np.maximum(third, two)) / 2)
    if test.levels == 2:
        both, twins = _grid(_squares(own), _squares(rest - own))
        return np.maximum((both + twins) / rest, both / own)
    normal = normal_quantile(_shares())
    first, second, product, others = _grid(_squares(own), _squares(own - 1), normal, _squares(rest - 2 * own))
    rho = -1 / (test.levels - 1)
    side = math.sqrt(1 - rho**2)
    across = side * np.sqrt(first) * product  # of the first level with what the second has beside it
    square = rho**2 * first + 2 * rho * across + side**2 * (product**2 + second)
    joint = first + square + 2 * (rho * first + across)
    explained = (test.levels - 1) / test.levels * (first + square + joint / (test.levels - 2))
    return np.maximum((explained + others) / rest, np.maximum(first, square) / own)


def _shares() -> np.ndarray:
    return (np.arange(_STEPS) + 0.5) / _STEPS


def _squares(freedom: int) -> np.ndarray:
    """Quantiles of chi-square; of no degrees of freedom it is nothing."""
    return np.asarray(chi2_quantile(_shares(), float(freedom))) if freedom > 0 else np.zeros(1)


def _grid(*axes: np.ndarray) -> list[np.ndarray]:
    """Every combination of them, a column each."""
    return list(np.array(list(itertools.product(*axes))).T)
