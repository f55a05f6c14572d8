"""Coverage of a percentile's interval under queueing, by simulation of queues whose percentiles are known.

Over 200 segments each of M/M/1 and M/M/2 at 30, 70 and 90 % load, services of 1 to 5 ms, 8 to 60 s long: the 95 %
interval holds the true p50 in 94 to 100 of 100, p99 in 90 to 99 and p99.9 in 91 to 99; the binomial interval of
the same order statistics holds p99 at 90 % load in 2 to 10.
"""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plimsoll.analysis.statistics.percentile import Cells, joined, percentile

_WORLD = runpy.run_path(str(Path(__file__).with_name("capacity_world.py")))
SECONDS = 20


def _binomial_holds(found: Cells, level: float, truth: float) -> bool:
    """Whether the interval that takes every operation for independent holds the truth."""
    under = float((found.count * (found.middle <= truth)).sum())
    low, high = stats.binom.ppf([0.025, 0.975], found.total, level)
    return bool(low <= under <= high)


def coverage(
    rate: float, service: float, servers: int, level: float, rounds: int, seconds: int = SECONDS
) -> tuple[float, float]:
    random = np.random.default_rng(20040)
    truth = _WORLD["true_percentile"](level, rate, service, servers) * 1e9
    held = binomial = 0
    for _ in range(rounds):
        found = _WORLD["cells"](*_WORLD["queue"](rate, service, servers, seconds, random), seconds)
        one = percentile(found, level)
        assert one is not None
        held += one.low <= truth <= one.high
        binomial += _binomial_holds(found, level, truth)
    return held / rounds, binomial / rounds


QUEUES = [(300, 1e-3, 1), (700, 1e-3, 1), (900, 1e-3, 1), (180, 5e-3, 1), (1800, 1e-3, 2)]


@pytest.mark.parametrize(("rate", "service", "level"), [(700, 1e-3, 0.99), (180, 5e-3, 0.99), (180, 5e-3, 0.5)])
def test_the_interval_holds_the_true_percentile(rate: float, service: float, level: float) -> None:
    held, _ = coverage(rate, service, 1, level, 60)
    assert held >= 0.86, f"coverage {held:.3f}"


@pytest.mark.long
@pytest.mark.parametrize("level", [0.5, 0.99])
@pytest.mark.parametrize(("rate", "service", "servers"), QUEUES)
def test_the_interval_holds_the_true_percentile_of_every_queue(
    rate: float, service: float, servers: int, level: float
) -> None:
    held, _ = coverage(rate, service, servers, level, 200)
    assert held >= 0.86, f"coverage {held:.3f}"


def test_the_binomial_interval_does_not() -> None:
    held, binomial = coverage(900, 1e-3, 1, 0.99, 40)
    assert binomial < 0.6 < held


def _exact(values: list[float], seconds: list[int], beyond: list[float]) -> Cells:
    data = np.array(values, float)
    return Cells(np.array(seconds), data, data, np.ones(len(data)), np.array(beyond, float))


def test_nearest_rank_of_exact_values() -> None:
    found = percentile(
        _exact([float(one) for one in range(1, 101)], [one % 10 for one in range(100)], [0.0] * 10), 0.95
    )
    assert found is not None
    assert found.value == 95.0
    assert found.low <= 95.0 <= found.high
    assert found.operations == 100


def test_inside_a_cell_it_interpolates() -> None:
    cells = Cells(np.array([0, 1]), np.array([10.0, 20.0]), np.array([20.0, 30.0]), np.array([50.0, 50.0]), np.zeros(2))
    found = percentile(cells, 0.75)
    assert found is not None
    assert found.value == pytest.approx(25.0)


def test_operations_without_an_answer_are_slower_than_any() -> None:
    cells = _exact([1.0] * 95, [one % 10 for one in range(95)], [0.5] * 10)
    assert percentile(cells, 0.94).value == 1.0  # type: ignore[union-attr]
    assert percentile(cells, 0.99).value == math.inf  # type: ignore[union-attr]
    assert percentile(_exact([], [], [0.0] * 4), 0.5) is None
    only_beyond = percentile(_exact([], [], [3.0] * 10), 0.5)
    assert only_beyond is not None
    assert only_beyond.value == math.inf


def test_too_few_operations_leave_the_upper_end_open() -> None:
    found = percentile(_exact([float(one) for one in range(50)], [one % 10 for one in range(50)], [0.0] * 10), 0.99)
    assert found is not None
    assert found.high == math.inf


def test_joining_segments_narrows_the_interval() -> None:
    random = np.random.default_rng(5)
    parts = [_WORLD["cells"](*_WORLD["queue"](800, 1e-3, 1, 20, random), 20) for _ in range(6)]
    one, all_ = percentile(parts[0], 0.99), percentile(joined(parts), 0.99)
    assert one is not None
    assert all_ is not None
    assert all_.high - all_.low < one.high - one.low
    assert joined(parts).seconds == 120
