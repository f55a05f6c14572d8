"""What judges the known worlds of the breakdown can refuse: parts that miss the whole, a time off, a wrong bucket."""

from __future__ import annotations

from dataclasses import replace

import pytest
from breakdown_watch import MS, US, Request, Wait, lands

TRUTH = 100 * MS
LOCK = Wait("Lock:advisory", "lock", 0, 1, TRUTH, 7)
GOOD = Request(1, 0, 0, TRUTH + 3 * US, 2 * US, US, 0, 1, (LOCK,))


def _lands(request: Request, truth_ns: int = TRUTH) -> None:
    lands(request, request.blocked_ns("lock"), truth_ns, "lock", elsewhere_ns=MS)


def test_what_is_right_lands() -> None:
    assert GOOD.missed_ns == 0
    _lands(GOOD)
    _lands(GOOD, TRUTH + 19 * TRUTH // 1000)


@pytest.mark.parametrize("truth_ns", [TRUTH * 97 // 100, TRUTH * 103 // 100])
def test_three_per_cent_off_does_not(truth_ns: int) -> None:
    with pytest.raises(AssertionError):
        _lands(GOOD, truth_ns)


def test_a_short_wait_may_be_off_by_50_us_and_no_more() -> None:
    short = replace(GOOD, waits=(replace(LOCK, ns=100 * US),))
    _lands(short, 149 * US)
    with pytest.raises(AssertionError):
        _lands(short, 151 * US)


def test_another_bucket_does_not() -> None:
    with pytest.raises(AssertionError):
        _lands(replace(GOOD, waits=(replace(LOCK, bucket="other_wait"),)))
    both = replace(GOOD, waits=(LOCK, replace(LOCK, bucket="other_wait", ns=2 * MS)))
    with pytest.raises(AssertionError):
        _lands(both)


def test_time_counted_twice_misses_the_whole() -> None:
    assert replace(GOOD, waits=(LOCK, LOCK)).missed_ns == -TRUTH
