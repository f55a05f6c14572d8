"""Quantiles and tails of the distributions that intervals and tests need.

The fact that constrains it: scipy.stats takes a second of CPU time to import, at the start of every verb that judges
and beside a server that is measured; scipy.special, on which it is built, a tenth of that. Each is checked against
scipy.stats (tests/unit/analysis/test_distributions.py).

A quantile is the value with a share `p` below it (ppf in scipy); "beyond" is the chance of a larger one (sf in scipy).
Arguments broadcast as numpy's do; NaN in, NaN out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special


def t_quantile(p: Any, freedom: Any) -> Any:
    """Of Student's t."""
    return special.stdtrit(freedom, p)


def t_beyond(value: Any, freedom: Any) -> Any:
    """Of Student's t."""
    return special.stdtr(freedom, -np.asarray(value))


def normal_quantile(p: Any) -> Any:
    """Of the standard normal distribution."""
    return special.ndtri(p)


def chi2_quantile(p: Any, freedom: Any) -> Any:
    """Of chi-squared."""
    return 2 * special.gammaincinv(np.asarray(freedom) / 2, p)


def chi2_beyond(value: Any, freedom: Any) -> Any:
    """Of chi-squared."""
    return special.chdtrc(freedom, value)


def f_beyond(value: Any, between: Any, within: Any) -> Any:
    """Of the F distribution of a ratio of variances with these degrees of freedom."""
    return special.fdtrc(between, within, value)


def binomial_quantile(p: float, count: int, chance: float) -> int:
    """The fewest successes of `count` that are reached or not exceeded with probability `p` at least."""
    found = max(math.ceil(special.bdtrik(p, count, chance)), 0)
    return found - 1 if found > 0 and special.bdtr(found - 1, count, chance) >= p else found


def binomial_beyond(successes: int, count: int, chance: float) -> float:
    """The probability of that many successes of `count`, or of more."""
    return float(special.bdtrc(successes - 1, count, chance)) if successes > 0 else 1.0


def share_interval(count: float, of: float, confidence: float) -> tuple[float, float]:
    """Of a share of which `count` of `of` were seen: the exact interval of Clopper and Pearson (Biometrika 26, 1934).

    Both may be fractions where what was counted is not independent.
    """
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(count, of - count + 1, tail)) if count > 0 else 0.0
    high = float(special.betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high


def rate_interval(count: int, confidence: float) -> tuple[float, float]:
    """Of a Poisson mean of which `count` events were seen: the exact interval of Garwood (Biometrika 28, 1936)."""
    tail = (1 - confidence) / 2
    low = float(chi2_quantile(tail, 2 * count)) / 2 if count else 0.0
    return low, float(chi2_quantile(1 - tail, 2 * count + 2)) / 2
