"""Critical values of many comparisons against scipy.stats, which is too slow to import, and against a printed table."""

import numpy as np
import pytest
from scipy import stats

from plimsoll.analysis.statistics.simultaneous import best_quantile, range_quantile


@pytest.mark.parametrize(("p", "means", "freedom"), [(0.99, 2, 2), (0.99, 4, 9), (0.99, 8, 17), (0.95, 20, 60)])
def test_the_studentized_range_is_scipys(p: float, means: int, freedom: int) -> None:
    assert range_quantile(p, means, freedom) == pytest.approx(stats.studentized_range.ppf(p, means, freedom), rel=1e-3)


def test_the_best_of_two_is_students_t() -> None:
    freedom = np.array([2, 5, 30])
    assert best_quantile(0.95, 2, freedom) == pytest.approx(stats.t.ppf(0.95, freedom), rel=1e-3)


def test_the_best_of_several_is_dunnetts_table() -> None:
    """One-sided 5 % values of Dunnett (Journal of the American Statistical Association 50, 1955), 3 treatments."""
    assert best_quantile(0.95, 4, np.array([5, 10, 20, 60])).tolist() == pytest.approx(
        [2.68, 2.34, 2.19, 2.10], abs=5e-3
    )


def test_without_a_degree_of_freedom_there_is_no_value() -> None:
    assert np.isnan(range_quantile(0.99, 3, 0))
    assert np.isnan(best_quantile(0.95, 3, np.array([0, 4]))).tolist() == [True, False]
