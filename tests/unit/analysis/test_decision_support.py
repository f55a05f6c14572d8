"""Power, throughput, composite and drift: the study's figures, the formulas by hand, and what makes a metric absent."""

import math

import pytest

from plimsoll.analysis.decision_support import formulas as metrics
from plimsoll.analysis.decision_support.formulas import Figure
from plimsoll.experiment.workloads.decision_support import streams_min


def times(seconds: float = 10.0, **others: float | None) -> dict[int | str, float | None]:
    """The same time for all, but for those named, "q6" or "RF1"."""
    all_: dict[int | str, float | None] = {**dict.fromkeys(metrics.QUERIES, seconds), "RF1": seconds, "RF2": seconds}
    return all_ | {int(name[1:]) if name.startswith("q") else name: value for name, value in others.items()}


def test_the_study_of_2003() -> None:
    # Study S3: eight streams, scale factor 10; its first run took 2 days 16 hours.
    assert metrics.throughput(230_400, 8, 10) == Figure(27.5)
    changes = metrics.drift([27.50, 27.34, 26.31, 25.24, 25.10])
    assert [round(100 * change, 2) for change in changes if change is not None] == [0.0, -0.58, -4.33, -8.22, -8.73]


def test_power_is_the_geometric_mean_of_24_times() -> None:
    assert metrics.power(times(10.0), 1).value == pytest.approx(360)
    assert metrics.power(times(10.0), 3).value == pytest.approx(1080)
    # One of 24 times is 2^24 of the others': the mean doubles. It is a refresh function, which has no bound.
    assert metrics.power(times(1.0, RF1=2.0**24), 1).value == pytest.approx(1800)
    # Below what a product of doubles can hold: 24 times of 10^-20 s.
    assert metrics.power(times(1e-20), 1).value == pytest.approx(3600e20)


def test_without_refresh_the_mean_is_of_22_times() -> None:
    only = {number: 4.0 for number in metrics.QUERIES}
    figure = metrics.power(only, 1, refresh=False)
    assert figure.value == pytest.approx(900)
    assert "without refresh functions" in figure.notes[0]
    assert "RF1, RF2" in str(metrics.power(only, 1).why_absent)


def test_a_query_a_thousand_times_faster_counts_as_a_thousandth() -> None:
    fast = times(1.0, q6=0.001, q2=50.0)
    with_rule, without = metrics.power(fast, 1), metrics.power(fast, 1, ratio_rule=False)
    # Raised from 1 ms to 50 ms: a fiftieth of 24 roots.
    assert with_rule.value is not None and without.value is not None
    assert without.value / with_rule.value == pytest.approx(50 ** (1 / 24))
    assert with_rule.notes == ("clause 5.4.1.4: counted as 0.05 s, a thousandth of the slowest query: Q6",)
    assert without.notes == ()


def test_at_a_ratio_of_a_thousand_nothing_is_raised() -> None:
    assert metrics.power(times(1.0, q6=0.05, q2=50.0), 1).notes == ()


@pytest.mark.parametrize("lost", [None, math.nan, 0.0, -1.0])
def test_what_failed_makes_power_absent(lost: float | None) -> None:
    figure = metrics.power(times(q17=lost, RF2=lost), 1)
    assert figure == Figure(None, "no metric: failed, timed out or not run: Q17, RF2")
    left_out = times()
    del left_out[22]
    assert "Q22" in str(metrics.power(left_out, 1).why_absent)


def test_what_failed_makes_throughput_absent() -> None:
    figure = metrics.throughput(100, 2, 1, failed=["stream 2 Q21"])
    assert figure == Figure(None, "no metric: failed or timed out: stream 2 Q21")
    for elapsed_s, streams, scale_factor in [(0, 2, 1), (math.inf, 2, 1), (100, 0, 1), (100, 2, 0)]:
        figure = metrics.throughput(elapsed_s, streams, scale_factor)
        assert figure.value is None and figure.why_absent


def test_too_few_streams_are_named() -> None:
    assert metrics.throughput(100, 2, 1).notes == ()
    assert "the 3 that the specification asks for" in metrics.throughput(100, 2, 10).notes[0]


def test_the_composite_is_absent_with_either() -> None:
    assert metrics.composite(Figure(90.0), Figure(40.0)) == Figure(60.0)
    assert metrics.composite(Figure(None, "Q1"), Figure(40.0)) == Figure(None, "power: Q1")
    assert metrics.composite(Figure(None, "Q1"), Figure(None, "Q2")) == Figure(None, "power: Q1; throughput: Q2")
    assert metrics.composite(Figure(90.0, None, ("a", "b")), Figure(40.0, None, ("b",))).notes == ("a", "b")


@pytest.mark.parametrize(
    ("scale_factor", "streams"),
    [(0.01, 2), (1, 2), (9.9, 2), (10, 3), (30, 4), (100, 5), (1000, 7), (3000, 8), (100_000, 11), (200_000, 11)],
)
def test_the_least_streams(scale_factor: float, streams: int) -> None:
    assert streams_min(scale_factor) == streams


def test_drift_where_a_run_has_no_metric() -> None:
    assert metrics.drift([20.0, None, 10.0]) == [0.0, None, -0.5]
    assert metrics.drift([None, 10.0]) == [None, None]
    assert metrics.drift([]) == []
