"""The clocks of host and guest compared: each reading of the guest's lies between two of the host's.

The fact that constrains it: what goes between takes time, which way of it is not known; so a comparison is worth no
more than its round trip, and of several the one with the shortest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypedDict

READINGS = 5
READING_SECONDS = 5.0


class Comparison(TypedDict):
    """The guest's clock less the host's, to half the round trip either way."""

    host_epoch_ns: int
    skew_ns: int
    round_trip_ns: int


def compare(ask: Callable[[float], int | None], now: Callable[[], int] = time.time_ns) -> Comparison | None:
    """`ask`: the guest's time within so many seconds; None where it did not answer."""
    best: Comparison | None = None
    for _ in range(READINGS):
        before = now()
        told = ask(READING_SECONDS)
        after = now()
        if told is None:
            break
        reading: Comparison = {
            "host_epoch_ns": before,
            "skew_ns": told - (before + after) // 2,
            "round_trip_ns": after - before,
        }
        if best is None or reading["round_trip_ns"] < best["round_trip_ns"]:
            best = reading
    return best
