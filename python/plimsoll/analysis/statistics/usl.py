"""Gunther's Universal Scalability Law fitted to throughput by level, with what the data can and cannot say of it.

X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)): sigma is the share of work that is done one at a time
(contention), kappa the cost of every pair's agreeing on shared state (coherency). Throughput is largest at
n* = sqrt((1 - sigma) / kappa). N. J. Gunther, A simple capacity model for massively parallel transaction systems (CMG
1993); Guerrilla Capacity Planning (Springer 2007), chapters 4 to 6, for processors and for users alike.

The fact that constrains it: there are few levels and few blocks. So logs of the rates are fitted by least squares with
an effect a block, sigma within [0, 1] and kappa at least 0; intervals of sigma, kappa and the peak are where the
profile of the sum of squares stays below what Student's t of the residual degrees of freedom allows; those of lambda
and the curve are by the delete-one-block jackknife. The law is withheld below four levels or three blocks, where the
levels differ no more than trials do, and where it does not describe them (lack of fit at 1 %).
tests/unit/analysis/test_usl.py states the coverage by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plimsoll.analysis.statistics.distributions import f_beyond, t_quantile
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, half_width
from plimsoll.analysis.statistics.law import CurvePoint, Fitted, Parameter, Peak, Scale

LEVELS_MIN = 4
DIFFERENT_AT = 0.05
LACK_AT = 0.01
CURVE_POINTS = 41
METHOD = (
    "Universal Scalability Law (Gunther 1993, 2007), least squares on logarithms with an effect a block, sigma within "
    "0 and 1, kappa at least 0; intervals of sigma, kappa and the peak from the profile of the sum of squares, of "
    "lambda and the curve by the delete-one-block jackknife; withheld below four levels or three blocks, where levels "
    f"differ no more than trials do ({DIFFERENT_AT:.0%}), and where it does not describe them ({LACK_AT:.0%})"
)
_VARIANCE_MIN = 1e-10  # rates without noise: no interval is narrower than what the fit itself can tell
_GRID, _ROUNDS = 33, 5
_KAPPA_MIN, _KAPPA_MAX = 1e-9, 1e3


def rate(n: Any, scale: float, sigma: float, kappa: float) -> Any:
    """Throughput at n by the law."""
    return scale * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fit(levels: np.ndarray, logs: np.ndarray) -> Fitted:
    """The law's parameters from log rates (blocks x levels, NaN where there is none), or why they cannot be told."""
    levels = np.asarray(levels, float)
    have = np.isfinite(logs).sum(0)
    blocks = int(have.min()) if len(levels) else 0
    found: Fitted = {
        "status": "cannot tell",
        "why": None,
        "blocks": blocks,
        "levels": [float(n) for n in levels],
        "lambda": None,
        "sigma": None,
        "kappa": None,
        "peak": None,
        "lack_of_fit_p": None,
        "curve": [],
    }
    if len(levels) < LEVELS_MIN:
        why = f"{len(levels)} levels; the law has three parameters and is fitted from {LEVELS_MIN} on"
        return {**found, "why": why}
    if blocks < BLOCKS_MIN:
        return {**found, "why": f"fewer than {BLOCKS_MIN} blocks"}
    squares = _Squares(levels, logs)
    if squares.alike_p() > DIFFERENT_AT:
        return {**found, "why": "throughput does not change with the levels by more than trials of a level differ"}
    best = squares.best()
    found["lack_of_fit_p"] = lack = squares.lack_of_fit_p(best[2])
    if lack is not None and lack < LACK_AT:
        return {**found, "why": f"the law does not describe these rates (lack of fit, p = {lack:.1g})"}
    sigma, kappa, peak = _intervals(squares, best)
    scale, curve = _over_blocks(levels, logs, best)
    fitted: Fitted = {**found, "status": "fitted", "sigma": sigma, "kappa": kappa, "peak": peak}
    return {**fitted, "lambda": scale, "curve": curve}


class _Squares:
    """The sum of squares that curves leave, block effects taken out."""

    def __init__(self, levels: np.ndarray, logs: np.ndarray) -> None:
        self.levels = levels
        present = np.isfinite(logs)
        present = present & (present.sum(1, keepdims=True) > 1)
        self.values, self.used_blocks = int(present.sum()), int(present.any(1).sum())
        weight = present.astype(float)
        each = np.maximum(weight.sum(1, keepdims=True), 1)
        # sum over blocks of squares about the block's own mean, as a quadratic form of what the curve leaves
        self.form = np.diag(weight.sum(0)) - weight.T @ (weight / each)
        filled = np.where(present, logs, 0.0)
        centred = np.where(present, filled - filled.sum(1, keepdims=True) / each, 0.0)
        self.effects = np.linalg.pinv(self.form) @ centred.sum(0)
        left = np.where(present, filled - self.effects, 0.0)
        left = np.where(present, left - left.sum(1, keepdims=True) / each, 0.0)
        self.pure = float((left**2).sum())
        self.pure_freedom = self.values - self.used_blocks - (len(levels) - 1)
        self.freedom = self.values - self.used_blocks - 2

    def of(self, divisor: np.ndarray) -> np.ndarray:
        """Sum of squares of the curves log(n / divisor), one a row."""
        left = self.effects - np.log(self.levels / divisor)
        return np.asarray(self.pure + ((left @ self.form) * left).sum(-1))

    def least(self, fixed: np.ndarray, free: np.ndarray, top: float) -> tuple[float, float]:
        """(value, squares) of the least over q in [0, top] of the divisor 1 + fixed + q free."""
        grid = np.append(0.0, np.geomspace(_KAPPA_MIN, top, 3 * _GRID)) if top > 1 else np.linspace(0, top, _GRID)
        for _ in range(_ROUNDS):
            squares = self.of(1 + fixed + grid[:, None] * free)
            place = int(np.argmin(squares))
            value, found = float(grid[place]), float(squares[place])
            grid = np.linspace(grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)], _GRID)
        return value, found

    def at_sigma(self, sigma: float) -> tuple[float, float]:
        """(kappa, squares) of the best law with this sigma."""
        n = self.levels
        return self.least(sigma * (n - 1), n * (n - 1), _KAPPA_MAX)

    def at_kappa(self, kappa: float) -> tuple[float, float]:
        """(sigma, squares) of the best law with this kappa."""
        n = self.levels
        return self.least(kappa * n * (n - 1), n - 1, 1.0)

    def at_peak(self, inverse_square: float) -> tuple[float, float]:
        """(sigma, squares) of the best law whose peak is at n* = inverse_square ** -0.5; 0: no peak."""
        n = self.levels
        coherent = inverse_square * n * (n - 1)
        return self.least(coherent, n - 1 - coherent, 1.0)

    def best(self) -> tuple[float, float, float]:
        """(sigma, kappa, squares) of the best law."""
        grid = np.linspace(0, 1, _GRID)
        n, kappas = self.levels, np.append(0.0, np.geomspace(_KAPPA_MIN, _KAPPA_MAX, 3 * _GRID))
        squares = self.of(1 + grid[:, None, None] * (n - 1) + kappas[None, :, None] * n * (n - 1))
        place = int(np.argmin(squares.min(1)))
        around = float(grid[max(0, place - 1)]), float(grid[min(_GRID - 1, place + 1)])
        from scipy import optimize

        found = optimize.minimize_scalar(
            lambda sigma: self.at_sigma(sigma)[1], bounds=around, method="bounded", options={"xatol": 1e-6}
        )
        candidates = [float(found.x), *(end for end in around if end in (0.0, 1.0))]
        sigma = min(candidates, key=lambda one: self.at_sigma(one)[1])
        return sigma, *self.at_sigma(sigma)

    def alike_p(self) -> float:
        """How likely levels that are all equal would differ as much."""
        between = float(self.effects @ self.form @ self.effects) / (len(self.levels) - 1)
        within = max(self.pure / self.pure_freedom, _VARIANCE_MIN)
        return float(f_beyond(between / within, len(self.levels) - 1, self.pure_freedom))

    def lack_of_fit_p(self, squares: float) -> float | None:
        """How likely the law, were it true, would be left by as much."""
        freedom = len(self.levels) - 3
        if freedom < 1:
            return None
        within = max(self.pure / self.pure_freedom, _VARIANCE_MIN)
        return float(f_beyond((squares - self.pure) / freedom / within, freedom, self.pure_freedom))


def _intervals(squares: _Squares, best: tuple[float, float, float]) -> tuple[Parameter, Parameter, Peak]:
    """Sigma, kappa and the peak with the values that the profile does not refuse."""
    from scipy import optimize

    sigma, kappa, least = best
    critical = float(t_quantile(0.5 + CONFIDENCE / 2, squares.freedom)) ** 2
    limit = least + critical * max(least / squares.freedom, _VARIANCE_MIN)
    inverse = kappa / (1 - sigma) if sigma < 1 else 0.0

    def ends(profile: Callable[[float], tuple[float, float]], at: float, top: float) -> tuple[float, float | None]:
        def beyond(value: float) -> float:
            return profile(value)[1] - limit

        low = 0.0 if at <= 0 or beyond(0.0) <= 0 else float(optimize.brentq(beyond, 0.0, at, xtol=1e-9, rtol=1e-6))
        outer = at + max(at, _KAPPA_MIN)
        while top > 1 and outer < top and beyond(outer) <= 0:
            outer *= 4
        outer = top if top <= 1 else min(outer, top)
        if beyond(outer) <= 0:
            return low, (top if top <= 1 else None)
        return low, float(optimize.brentq(beyond, at, outer, xtol=1e-12, rtol=1e-6))

    of_sigma = _with_zero(sigma, *ends(squares.at_sigma, sigma, 1.0))
    of_kappa = _with_zero(kappa, *ends(squares.at_kappa, kappa, _KAPPA_MAX))
    if sigma >= 1:  # a curve without growth has its peak at the first level, wherever kappa lies
        return of_sigma, of_kappa, {"value": None, "low": None, "high": None, "beyond_measured": None}
    low, high = ends(squares.at_peak, inverse, _KAPPA_MAX)
    value = inverse**-0.5 if inverse > 0 else None
    peak: Peak = {
        "value": value,
        "low": high**-0.5 if high else None,
        "high": low**-0.5 if low > 0 else None,
        "beyond_measured": value is None or value > float(squares.levels.max()),
    }
    return of_sigma, of_kappa, peak


def _with_zero(value: float, low: float, high: float | None) -> Parameter:
    return {"value": value, "low": low, "high": high, "holds_zero": low <= 0}


def _over_blocks(
    levels: np.ndarray, logs: np.ndarray, best: tuple[float, float, float]
) -> tuple[Scale, list[CurvePoint]]:
    """Lambda and the curve between the fewest and the most, by the delete-one-block jackknife on logarithms."""
    logs = logs[np.isfinite(logs).sum(1) > 1]
    at = np.linspace(levels.min(), levels.max(), CURVE_POINTS)
    at = np.unique(np.concatenate([[1.0], at, levels]))
    whole = _curve(levels, logs, at, best)
    count = len(logs)
    without = np.array([_curve(levels, rest, at) for rest in (np.delete(logs, row, 0) for row in range(count))])
    pseudo = count * whole - (count - 1) * without
    half = half_width(pseudo.std(0, ddof=1), np.array(count))
    rows: list[CurvePoint] = [
        {"n": float(n), "value": math.exp(y), "low": math.exp(y - wide), "high": math.exp(y + wide)}
        for n, y, wide in zip(at, whole, half, strict=True)
    ]
    scale = next(row for row in rows if row["n"] == 1)
    inside = [row for row in rows if row["n"] >= levels.min()]
    return {"value": scale["value"], "low": scale["low"], "high": scale["high"]}, inside


def _curve(
    levels: np.ndarray, logs: np.ndarray, at: np.ndarray, best: tuple[float, float, float] | None = None
) -> np.ndarray:
    """Logs of the fitted curve, its lambda the geometric mean of the blocks'."""
    sigma, kappa, _ = best or _Squares(levels, logs).best()
    left = np.nanmean(logs - np.log(rate(levels, 1.0, sigma, kappa)), axis=1)
    return np.asarray(left.mean() + np.log(rate(at, 1.0, sigma, kappa)))
