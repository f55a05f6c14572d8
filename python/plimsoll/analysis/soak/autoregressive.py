"""A straight-line model of rounds whose noise goes on from round to round: estimates that know they do not know how
much.

The fact that constrains it: a soak has five rounds or fifty, and so few do not tell how strongly neighbours agree.
Taking them as independent makes a slow wave of the machine a drift; plugging in the correlation that was found
does, too, for of short series it is found too small. So it is not estimated but averaged over: each correlation
from 0 to 0.95 counts by how well it explains the rounds (its restricted likelihood, Patterson and Thompson,
Biometrika 58, 1971; Harville, JASA 72, 1977), and an estimate's distribution is the mixture of their Student's t.
Noise that wanders for ever is outside the model.

Acceptance: benches/verdicts.py --only soak, and tests/unit/analysis/test_soak_rounds.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.distributions import t_beyond

CORRELATIONS = np.linspace(0.0, 0.95, 20)
_HALVINGS = 60


@dataclass(frozen=True)
class Coefficient:
    """What is known of one coefficient: for each correlation of neighbours its estimate, standard error and weight."""

    values: np.ndarray
    errors: np.ndarray
    weights: np.ndarray
    freedom: int

    @property
    def value(self) -> float:
        """Its mean over all correlations."""
        return float(self.weights @ self.values)

    def chance(self) -> float:
        """The p-value, two-sided: how likely so much is where there is nothing."""
        above = self._beyond(0.0)
        return min(1.0, 2 * min(above, 1 - above))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Between which it lies, as many values beyond the one end as beyond the other."""
        tail = (1 - confidence) / 2
        return self._quantile(1 - tail), self._quantile(tail)

    def _beyond(self, value: float) -> float:
        """The share of the mixture above `value`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(
                self.errors > 0, (value - self.values) / self.errors, np.sign(value - self.values) * math.inf
            )
        chances = np.where(np.isnan(far), 0.5, t_beyond(far, self.freedom))
        return float(self.weights @ chances)

    def _quantile(self, beyond: float) -> float:
        """The value that this share lies above."""
        reach = 1.0 + float(np.max(self.errors))
        low, high = float(np.min(self.values)) - reach, float(np.max(self.values)) + reach
        while self._beyond(low) < beyond:
            low -= high - low
        while self._beyond(high) > beyond:
            high += high - low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._beyond(middle) > beyond:
                low = middle
            else:
                high = middle
        return (low + high) / 2


@dataclass(frozen=True)
class Fit:
    """The model of one series, averaged over correlations."""

    coefficients: tuple[Coefficient, ...]
    weights: np.ndarray
    new: np.ndarray  # by correlation: the variance of what a round does not have from the last one
    likelihood: float  # log, at its best correlation, for models of the same series
    freedom: int

    @property
    def correlation(self) -> float:
        """Of neighbours, its mean."""
        return float(self.weights @ CORRELATIONS)

    def apart(self, rounds: int) -> float:
        """Standard deviation of the difference of two rounds so far apart, by chance alone."""
        return math.sqrt(float(self.weights @ (2 * self.new * (1 - CORRELATIONS**rounds) / (1 - CORRELATIONS**2))))


def fit(values: np.ndarray, *columns: np.ndarray) -> Fit | None:
    """A level, and a coefficient for each of `columns`, of equally spaced values; None of too few for any scatter."""
    count, terms = len(values), 1 + len(columns)
    freedom = count - terms
    if freedom < 1:
        return None
    design = np.column_stack([np.ones(count), *columns])
    both = np.column_stack([design, values])
    rho = CORRELATIONS[:, None, None]
    whitened = np.concatenate([np.sqrt(1 - rho**2) * both[None, :1], both[None, 1:] - rho * both[None, :-1]], axis=1)
    wide, told = whitened[:, :, :terms], whitened[:, :, terms]
    gram = np.swapaxes(wide, 1, 2) @ wide
    inverse = np.linalg.inv(gram)
    found = (inverse @ (np.swapaxes(wide, 1, 2) @ told[:, :, None]))[:, :, 0]
    left = told - (wide @ found[:, :, None])[:, :, 0]
    squares = (left**2).sum(1)
    if not np.any(
        squares > 1e-24 * max(1.0, float((values**2).sum()))
    ):  # every round is on the line: no scatter at all
        weights, none = np.eye(len(CORRELATIONS))[0], np.zeros(len(CORRELATIONS))
        exact = np.where(np.abs(found) > 1e-12, found, 0.0)
        return Fit(_coefficients(exact, np.zeros_like(found), weights, freedom), weights, none, math.inf, freedom)
    squares = np.maximum(squares, 1e-300)
    stationary = 0.5 * np.log(1 - CORRELATIONS**2)
    restricted = stationary - 0.5 * np.linalg.slogdet(gram)[1] - freedom / 2 * np.log(squares)
    weights = np.exp(restricted - restricted.max())
    weights /= weights.sum()
    errors = np.sqrt(squares[:, None] / freedom * np.diagonal(inverse, axis1=1, axis2=2))
    likelihood = float((stationary - count / 2 * np.log(squares / count)).max())
    return Fit(
        _coefficients(found, errors, weights, freedom),
        weights,
        squares / freedom,
        likelihood,
        freedom,
    )


def _coefficients(found: np.ndarray, errors: np.ndarray, weights: np.ndarray, freedom: int) -> tuple[Coefficient, ...]:
    return tuple(Coefficient(found[:, one], errors[:, one], weights, freedom) for one in range(found.shape[1]))
