"""Quantiles and tails against scipy.stats, and what a verb that runs imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from plimsoll.analysis.statistics import distributions

TAILS = np.array([1e-6, 0.001, 0.025, 0.5, 0.95, 0.975, 0.9999])
FREEDOMS = np.array([1, 2.5, 7, 30, 1e4])[:, None]
VALUES = np.array([0.0, 0.1, 1.0, 3.7, 20.0])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (distributions.t_quantile(TAILS, FREEDOMS), stats.t.ppf(TAILS, FREEDOMS)),
        (distributions.t_beyond(VALUES, FREEDOMS), stats.t.sf(VALUES, FREEDOMS)),
        (distributions.normal_quantile(TAILS), stats.norm.ppf(TAILS)),
        (distributions.chi2_quantile(TAILS, FREEDOMS), stats.chi2.ppf(TAILS, FREEDOMS)),
        (distributions.chi2_beyond(VALUES, FREEDOMS), stats.chi2.sf(VALUES, FREEDOMS)),
        (distributions.f_beyond(VALUES, 3, FREEDOMS), stats.f.sf(VALUES, 3, FREEDOMS)),
    ],
    ids=["t quantile", "t beyond", "normal quantile", "chi2 quantile", "chi2 beyond", "F beyond"],
)
def test_they_are_those_of_scipy(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-300)


def test_nan_in_is_nan_out() -> None:
    assert np.isnan(distributions.t_quantile(0.975, np.array([np.nan, 3.0]))).tolist() == [True, False]


@pytest.mark.parametrize("count", [1, 2, 20, 999, 100_000])
@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.99])
def test_binomial_quantiles_are_those_of_scipy(count: int, chance: float) -> None:
    for p in (0.0001, 0.025, 0.5, 0.975, 0.9999):
        assert distributions.binomial_quantile(p, count, chance) == stats.binom.ppf(p, count, chance)


@pytest.mark.parametrize(("successes", "count"), [(0, 20), (1, 1), (15, 20), (20, 20), (21, 20), (180, 239)])
def test_the_chance_of_as_many_successes_is_that_of_scipy(successes: int, count: int) -> None:
    wanted = stats.binom.sf(successes - 1, count, 0.5)
    assert distributions.binomial_beyond(successes, count, 0.5) == pytest.approx(wanted, rel=1e-9, abs=0)


@pytest.mark.parametrize(("count", "of"), [(0, 20), (3, 20), (20, 20), (1, 100_000), (99_999, 100_000)])
def test_the_interval_of_a_share_is_that_of_scipy(count: int, of: int) -> None:
    wanted = stats.binomtest(count, of).proportion_ci(0.95)
    assert distributions.share_interval(count, of, 0.95) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def test_a_run_starts_without_what_takes_a_second_to_import() -> None:
    asked = "import sys, plimsoll.cli.app, plimsoll.cli.execute, plimsoll.analysis; print('scipy.stats' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
