"""One form a kind of quantity."""

import pytest

from plimsoll import quantities


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (89.4, "89 s"),
        (90, "1 min 30 s"),
        (7199, "119 min 59 s"),
        (7200, "2 h 00 min"),
        (9000, "2 h 30 min"),
    ],
)
def test_how_long_something_takes(seconds: float, said: str) -> None:
    assert quantities.elapsed(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (8 * 2**20, "8 MiB"), (1.5 * 2**30, "1.5 GiB"),
     (2**41, "2048 GiB")],
)  # fmt: skip
def test_how_large_something_is(count: float, said: str) -> None:
    assert quantities.size(count) == said


@pytest.mark.parametrize(
    ("ns", "said"),
    [(None, "–"), (999, "999 ns"), (1500, "1.50 µs"), (25e6, "25.0 ms"), (2e9, "2.00 s"), (4e12, "4,000 s")],
)
def test_a_duration_has_at_most_three_digits_before_the_point(ns: float | None, said: str) -> None:
    assert quantities.duration(ns) == said


def test_a_unit_has_its_article() -> None:
    assert [quantities.one(unit) for unit in ("transaction", "request", "operation")] == [
        "a transaction",
        "a request",
        "an operation",
    ]
