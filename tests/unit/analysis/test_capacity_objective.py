"""The objective's grammar, and that everything wrong is named."""

import pytest

from plimsoll.analysis.capacity.objective import from_json, parse, time_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p99 <= 20ms", "p99 <= 20 ms"),
        ("p99<=20ms", "p99 <= 20 ms"),
        ("p99.9 ≤ 1.5 s", "p99.9 <= 1.5 s"),
        ("p99 <= 20ms and p50 <= 800us", "p50 <= 800 us and p99 <= 20 ms"),
        ("p99.99 <= 250µs, errors <= 0.1%", "p99.99 <= 250 us and errors <= 0.1%"),
        ("errors <= 0% and p95 <= 1s", "p95 <= 1 s and errors <= 0%"),
    ],
)
def test_good_objectives(text: str, shown: str) -> None:
    found = parse(text)
    assert str(found) == shown
    assert from_json(found.as_json()) == found
    assert parse(shown) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("fast", "not a term"),
        ("p99 <= 20", "unit is missing"),
        ("p99 <= 20m", "not a unit"),
        ("p99 <= ms", "not a time"),
        ("p99 >= 20ms", "upper limit"),
        ("p99 < 20ms", "upper limit"),
        ("p99 <= 0ms", "above 0"),
        ("p99 <= -1ms", "not a time"),
        ("p99 <= 3601s", "at most an hour"),
        ("p49 <= 20ms", "outside p50 to p99.99"),
        ("p100 <= 20ms", "outside p50 to p99.99"),
        ("p99.999 <= 20ms", "two decimals"),
        ("p <= 20ms", "not a percentile"),
        ("p99 <= 20ms and", "empty term"),
        ("p99 <= 20ms, p99 <= 30ms", "twice"),
        ("mean <= 20ms", "hides the slow"),
        ("median <= 20ms", "not known"),
        ("errors <= 1%", "names no percentile"),
        ("p99 <= 20ms and errors <= 1", "not a percentage"),
        ("p99 <= 20ms and errors <= 100%", "below 100%"),
        ("p99 <= 20ms and errors <= 1% and errors <= 2%", "twice"),
        ("p99 <= 20ms or p50 <= 1ms", "not a time"),
    ],
)
def test_bad_objectives_say_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse(text)


def test_the_loosest_limit() -> None:
    assert parse("p50 <= 1ms and p99 <= 20ms").limit_ns_max == 20e6
    assert time_words(20e6) == "20 ms"
    assert time_words(500) == "0.5 us"
