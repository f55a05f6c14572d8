"""Histograms against the values they were made from: percentiles, sums, and the interval over blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.trial.histograms import Histogram, _merged_percentiles, merged
from plimsoll.analysis.trial.latency import percentile


def cells_of(values: np.ndarray) -> Histogram:
    """A cell a value: nothing is lost."""
    low, count = np.unique(values.astype(float), return_counts=True)
    return Histogram(low, low + 1, count)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.99, 0.9999]))
def test_nearest_rank_as_from_rows(values: list[int], share: float) -> None:
    assert cells_of(np.array(values)).percentile(share) == percentile(np.sort(np.array(values, float)), share)


@given(st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=40), min_size=1, max_size=5))
def test_merging_is_the_histogram_of_all(parts: list[list[int]]) -> None:
    whole = merged([cells_of(np.array(part)) for part in parts])
    expected = cells_of(np.array([value for part in parts for value in part]))
    assert whole.low.tolist() == expected.low.tolist()
    assert whole.count.tolist() == expected.count.tolist()
    assert whole.total == sum(len(part) for part in parts)


def test_p9999_needs_a_hundred_thousand() -> None:
    assert cells_of(np.arange(99_999)).percentile(0.9999) is None
    assert cells_of(np.arange(100_000)).percentile(0.9999) == 99_989


def test_several_trials_together_reach_where_one_does_not() -> None:
    parts = [cells_of(np.arange(40_000)) for _ in range(4)]
    assert parts[0].percentile(0.9999) is None
    found = _merged_percentiles(parts)
    assert found["count"] == 160_000
    assert found["p9999"]["value"] == pytest.approx(39_996, abs=2)
    assert found["p9999"]["low"] is not None


def test_the_interval_over_blocks_holds_the_percentile() -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        # Blocks of their own level, as trials on a shared machine have.
        parts = [cells_of(random.exponential(1e6, 3000) * np.exp(random.normal(0, 0.1))) for _ in range(5)]
        found = _merged_percentiles(parts)["p90"]
        held += found["low"] <= 1e6 * np.log(10) <= found["high"]
    assert held >= 180


def test_two_blocks_have_no_interval() -> None:
    found = _merged_percentiles([cells_of(np.arange(1000))] * 2)["p50"]
    assert (found["low"], found["high"], found["blocks"]) == (None, None, 2)


def test_nothing_is_nothing() -> None:
    assert merged([]).total == 0
    assert merged([]).percentile(0.5) is None
    assert merged([]).largest is None
