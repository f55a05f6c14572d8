"""Variances that borrow from one another, Holm's steps, and a query that is twice as slow."""

import sys
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.statistics.intervals import MeanDifference, paired
from plimsoll.analysis.statistics.moderated import holm, moderated

sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from simulate.queries import told

RUNS = 300


def test_a_query_twice_as_slow_in_three_blocks_is_told_and_equal_ones_are_not() -> None:
    random = np.random.default_rng(19)
    shown = np.array([told(row) for row in 0.05 * np.sqrt(2) * random.standard_normal((RUNS, 24, 3)) + _SLOW])
    assert shown[:, 0].mean() >= 0.8
    assert shown[:, 1:].any(1).mean() <= 0.05 + 3 * np.sqrt(0.05 / RUNS)


_SLOW = np.log(2) * (np.arange(24) == 0)[:, None]


def test_an_error_that_is_far_off_is_moved_towards_the_others() -> None:
    random = np.random.default_rng(7)
    found = [one for row in random.standard_normal((20, 3)) if (one := paired(row.tolist())) is not None]
    small, large = (choose(found, key=lambda one: one.error) for choose in (min, max))
    after = dict(zip(found, moderated(found), strict=True))
    assert after[small].error > small.error
    assert after[large].error < large.error
    assert after[small].value == small.value
    assert after[small].freedom > small.freedom


def test_two_series_or_two_blocks_tell_nothing_of_each_other() -> None:
    two = [MeanDifference(0.1, 0.01, 2, 3), MeanDifference(0.2, 0.5, 2, 3)]
    assert moderated(two) == two
    short = MeanDifference(0.1, 0.01, 1, 2)
    assert moderated([*two, two[0], short])[3] == short


def test_holms_steps() -> None:
    assert holm([0.03, 0.001, 0.02], 0.05) == pytest.approx([0.025 * 2, 0.05 / 3, 0.025])
    assert holm([0.03, 0.001, 0.04], 0.05) == pytest.approx([0.025, 0.05 / 3, 0.025])
    assert holm([], 0.05) == []
