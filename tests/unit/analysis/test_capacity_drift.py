"""Trials at one rate that differ: found, named with what moved, and not found where nothing did."""

import math
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.capacity.conditions import CONDITIONS
from plimsoll.analysis.capacity.drift import P_MAX, drift, drift_words
from plimsoll.analysis.capacity.line import Knee, Line, knee_place

Json = dict[str, Any]
DESCRIBED = {key: {"label": label, "unit": unit} for key, (label, unit) in CONDITIONS.items()}
ERROR = 0.1


def entry(number: int, rate: float, value: float, building: bool = False, **conditions: float) -> Json:
    """A trial whose p99 is known within ten per cent."""
    ends = [value * math.exp(sign * 1.96 * ERROR) for sign in (-1, 1)]
    term = {"term": "p99 <= 20 ms", "limit_ns": 2e7, "value": value, "low": ends[0], "high": ends[1]}
    return {
        "number": number,
        "rate": rate,
        "terms": [term],
        "backlog": {"building": building},
        "conditions": conditions,
    }


def search(drift_of_log: float, random: np.random.Generator) -> list[Json]:
    """Twelve trials at three rates; the machine's log latency and its CPU cost wander together."""
    found = []
    for number in range(1, 13):
        moved = drift_of_log * random.normal()
        value = 1e7 * math.exp(moved + ERROR * random.normal())
        cost = 8e4 * math.exp(0.2 * moved + 1e-3 * random.normal())
        more = {"server_cpu_ns_per_transaction": cost, "cpu_steal_share": float(random.uniform(0, 0.02))}
        found.append(entry(number, [700.0, 800.0, 900.0][number % 3], value, **more))
    return found


def test_a_steady_machine_is_rarely_called_drifting() -> None:
    random = np.random.default_rng(3)
    fired = [drift(search(0.0, random), DESCRIBED, None)["drifted"] for _ in range(400)]  # type: ignore[index]
    assert np.mean(fired) <= 3 * P_MAX


def test_a_drifting_machine_is_found_and_what_moved_is_named() -> None:
    random = np.random.default_rng(4)
    found = [drift(search(0.5, random), DESCRIBED, None) for _ in range(40)]
    assert all(one is not None and one["drifted"] for one in found)
    named = [one["moved"][0]["condition"] for one in found if one is not None and one["moved"]]
    assert named.count("server_cpu_ns_per_transaction") >= 36
    said = drift_words(found[0])  # type: ignore[arg-type]
    assert said.startswith("the machine drifted, so the interval covers the true line less often")
    assert "CPU per transaction, server and all else but the generator" in said
    row = found[0]["moved"][0]  # type: ignore[index]
    assert row["slow"] > row["fast"]


def test_drift_without_a_recorded_cause_says_so() -> None:
    trials = [entry(number, 700.0, 1e7 * (1 + number % 2)) for number in range(1, 9)]
    found = drift(trials, DESCRIBED, None)
    assert found is not None
    assert found["drifted"]
    assert drift_words(found).endswith("what changed with it: nothing that is recorded")
    assert "such as p99 10 ms at 700/s (trial 2) and 20 ms at 700/s (trial 1);" in drift_words(found)


def test_what_is_left_out() -> None:
    assert drift([entry(1, 700.0, 1e7), entry(2, 700.0, 5e7)], DESCRIBED, None) is None, "one repeat tells nothing"
    assert drift([entry(number, 100.0 * number, 1e7 * number) for number in range(1, 9)], DESCRIBED, None) is None
    overloaded = [entry(number, 900.0, 1e7 * number, building=True) for number in range(1, 9)]
    assert drift(overloaded, DESCRIBED, None) is None, "under a backlog the latency is a matter of the trial's length"
    unbounded = [entry(number, 900.0, 1e7 * number) for number in range(1, 9)]
    for one in unbounded:
        one["terms"][0]["high"] = None
    assert drift(unbounded, DESCRIBED, None) is None


def test_trials_near_the_line_are_moved_to_it_by_their_slope() -> None:
    rates = [770.0, 780.0, 790.0, 800.0, 810.0, 820.0]
    rising = [entry(number, rate, 1e7 * (rate / 790) ** 8) for number, rate in enumerate(rates, start=1)]
    found = drift(rising, DESCRIBED, 790.0)
    assert found is not None
    assert not found["drifted"], "what grows with the rate is no drift"
    scattered = [entry(number, rate, 1e7 * (1 + number % 2)) for number, rate in enumerate(rates, start=1)]
    assert drift(scattered, DESCRIBED, 790.0)["drifted"]  # type: ignore[index]
    assert drift(scattered, DESCRIBED, 300.0) is None, "far from the line only equal rates are compared"


@pytest.mark.parametrize(
    ("low", "high", "place"), [(300.0, 400.0, "below"), (480.0, 520.0, "beside"), (510.0, 600.0, "above")]
)
def test_the_knee_against_the_line(low: float, high: float, place: str) -> None:
    found = Knee(math.sqrt(low * high), low, high, "latency", 1e6)
    assert knee_place(found, Line("found", 500.0, 490.0, 505.0, 6, False)) == place


def test_the_knee_against_a_line_without_a_bound() -> None:
    at_least = Line("at least", 500.0, 500.0, None, 0, True)
    assert knee_place(Knee(700.0, 600.0, 800.0, "latency", 1e6), at_least) is None
    assert knee_place(Knee(350.0, 300.0, 400.0, "latency", 1e6), at_least) == "below"
    assert knee_place(Knee(350.0, 300.0, 400.0, "latency", 1e6), Line("below", None, None, 90.0, 0, False)) is None
    assert knee_place(Knee(90.0, None, 90.0, "backlog", 1e6), Line("found", 95.0, 92.0, 99.0, 4, False)) == "below"
