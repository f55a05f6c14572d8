"""How much sharper any test of windows could be that keeps the error whatever the starts' noise: by linear programming.

Two statistics of a pair are all that there is: the difference T, in standard errors of the windows alone, and F, the
variance that blocks show over that of the windows, with few degrees of freedom. The starts multiply both variances by
an unknown factor of 1 or more. A test is the set of (T, F) where it tells; the best one tells most where starts add
nothing and there is a difference, and errs in at most one of a hundred at every factor. It is set beside judge.py's.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy import special
from scipy.optimize import linprog

from plimsoll.analysis.statistics.distributions import normal_quantile, t_quantile
from simulate.rows import Row, Section

ERROR = 0.01
_SHIFT = 3.9  # the true difference in standard errors of the windows: a z test would tell it in 91 of 100
_FACTORS = np.exp(np.linspace(0, np.log(80), 40))
_F = np.exp(np.linspace(np.log(0.02), np.log(60), 70))
_EDGES = np.concatenate([[0.0], np.sqrt(_F[1:] * _F[:-1]), [np.inf]])
_T = np.linspace(0, 25, 126)


def _chances(freedom: int, factor: float, shift: float) -> np.ndarray:
    """(F, T): the chance of each cell; beyond the last T is a cell of its own."""
    below = special.chdtr(freedom, freedom * np.where(np.isfinite(_EDGES), _EDGES, 1e9) / factor)
    sd = math.sqrt(factor)
    inside = special.ndtr((_T - shift) / sd) - special.ndtr((-_T - shift) / sd)
    return np.outer(np.diff(below), np.append(np.diff(inside), 1 - inside[-1]))


def best(freedom: int) -> float:
    """How often the best test tells."""
    errors = np.array([_chances(freedom, factor, 0.0).ravel() for factor in _FACTORS])
    wanted = -_chances(freedom, 1.0, _SHIFT).ravel()
    found = linprog(wanted, A_ub=errors, b_ub=np.full(len(errors), ERROR), bounds=(0, 1), method="highs")
    return float(-found.fun)


def ours(freedom: int) -> float:
    """How often that of judge.py does: beyond both errors, each with its own quantile."""
    own = float(t_quantile(1 - ERROR / 2, freedom)) * np.sqrt(_F)
    least = np.maximum(own, float(normal_quantile(1 - ERROR / 2)))
    beyond = special.ndtr(_SHIFT - least) + special.ndtr(-_SHIFT - least)
    return float(_chances(freedom, 1.0, _SHIFT).sum(1) @ beyond)


def _row(freedom: int, bound: float, _seed: int, _runs: int) -> list[Row]:
    told, most = ours(freedom), best(freedom)
    case = f"{freedom} degrees of freedom: {told:.0%} of {most:.0%}"
    return [Row("windows: of what any test could tell", case, told / most, bound, False, 0)]


def sections() -> list[Section]:
    """What this file can show: nothing here is drawn by chance."""
    cases = ((3, 0.7), (5, 0.85), (8, 0.9))
    return [
        Section("windows best", tuple((str(freedom), partial(_row, freedom, bound)) for freedom, bound in cases), 1)
    ]
