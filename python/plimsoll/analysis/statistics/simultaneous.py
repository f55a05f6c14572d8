"""Critical values for many comparisons at once: of every pair (Tukey) and of each level with the best (Hsu).

scipy has both distributions in scipy.stats only, which is slow to import (distributions.py says why that matters), so
their integrals are taken here by Gauss and Legendre: over the standard normal value of one mean, and over the quantiles
of the estimated standard deviation. Within 0.1 % of scipy.stats (tests/unit/analysis/test_simultaneous.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

_NORMAL_FAR = 9.0  # a standard normal value beyond it has a chance of 1e-19
_ABSCISSAS, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_VALUES = _ABSCISSAS * _NORMAL_FAR
_DENSITY = _WEIGHTS * _NORMAL_FAR * np.exp(-(_VALUES**2) / 2) / np.sqrt(2 * np.pi)
_LEVELS, _LEVEL_WEIGHTS = np.polynomial.legendre.leggauss(48)
_LARGEST = 2.0**12  # no critical value of two degrees of freedom or more is beyond it
_HALVINGS = 48

Inside = Callable[[np.ndarray], np.ndarray]


def range_quantile(p: float, means: int, freedom: Any) -> np.ndarray:
    """Of the studentized range of so many means (Tukey), in standard errors of one mean; `freedom` broadcasts.

    NaN without a degree of freedom.
    """
    return _each(_range_quantile, p, means, freedom)


def best_quantile(p: float, means: int, freedom: Any) -> np.ndarray:
    """One-sided critical value of the best of so many means against each other one, in standard errors of a difference.

    Dunnett's, of equal errors, by which Hsu's comparison with the best is made (Annals of Statistics 9, 1981).
    """
    return _each(_best_quantile, p, means, freedom)


def _each(quantile: Callable[[float, int, float], float], p: float, means: int, freedom: Any) -> np.ndarray:
    """The quantile for each of the degrees of freedom, of which there are few different ones."""
    known, place = np.unique(np.asarray(freedom, float), return_inverse=True)
    found = [quantile(p, means, one) if one >= 1 and means > 1 else np.nan for one in known.tolist()]
    return np.asarray(found, float)[place].reshape(np.shape(freedom))


@lru_cache(maxsize=4096)
def _range_quantile(p: float, means: int, freedom: float) -> float:
    def inside(width: np.ndarray) -> np.ndarray:
        between = special.ndtr(_VALUES) - special.ndtr(_VALUES - width[:, None])
        chance: np.ndarray = means * (np.clip(between, 0, 1) ** (means - 1)) @ _DENSITY
        return chance

    return _root(inside, p, freedom)


@lru_cache(maxsize=4096)
def _best_quantile(p: float, means: int, freedom: float) -> float:
    def inside(width: np.ndarray) -> np.ndarray:
        chance: np.ndarray = special.ndtr(_VALUES + np.sqrt(2) * width[:, None]) ** (means - 1) @ _DENSITY
        return chance

    return _root(inside, p, freedom)


def _root(inside: Inside, p: float, freedom: float) -> float:
    """Where `inside`, of a width in true standard deviations, is `p` on average over the estimated ones."""
    sd = np.sqrt(2 * special.gammaincinv(freedom / 2, (_LEVELS + 1) / 2) / freedom)
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(_LEVEL_WEIGHTS @ inside(middle * sd)) / 2 < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
