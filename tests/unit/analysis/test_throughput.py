"""Throughput by second: how often the interval holds the true mean when seconds resemble their neighbours."""

import numpy as np
import pytest

from plimsoll.analysis.trial.throughput import autocorrelation_time, of_seconds


def series(rho: float, seconds: int, random: np.random.Generator) -> np.ndarray:
    """AR(1) around 1000 with a standard deviation of 50."""
    noise = random.normal(0, 50 * np.sqrt(1 - rho**2), seconds)
    values = np.empty(seconds)
    values[0] = random.normal(0, 50)
    for place in range(1, seconds):
        values[place] = rho * values[place - 1] + noise[place]
    return 1000 + values


@pytest.mark.parametrize(
    ("rho", "seconds", "least"),
    [(0.0, 10, 0.94), (0.0, 60, 0.94), (0.5, 20, 0.88), (0.5, 60, 0.91), (0.8, 60, 0.90), (0.8, 300, 0.92)],
)
def test_the_interval_holds_the_mean(rho: float, seconds: int, least: float) -> None:
    random = np.random.default_rng(7)
    found = [of_seconds(series(rho, seconds, random)) for _ in range(1000)]
    known = [(one.low, one.high) for one in found if one.low is not None and one.high is not None]
    assert len(known) > 850, "few have none: their seconds are worth less than three"
    assert sum(low <= 1000 <= high for low, high in known) / len(known) >= least


def test_independent_seconds_are_worth_nearly_all() -> None:
    random = np.random.default_rng(8)
    found = [of_seconds(series(0.0, 200, random)).effective_seconds for _ in range(200)]
    assert np.median(found) > 140
    assert max(found) <= 200


def test_a_level_series_is_its_own_mean() -> None:
    found = of_seconds(np.full(10, 500.0))
    assert (found.mean, found.low, found.high, found.sd) == (500, 500, 500, 0)
    assert autocorrelation_time(np.full(10, 500.0)) == 1


def test_too_few_seconds_have_no_interval() -> None:
    assert of_seconds(np.array([1.0, 2.0, 3.0])).low is None
    drifting = of_seconds(np.arange(10.0))
    assert drifting.effective_seconds < 3
    assert drifting.low is None
