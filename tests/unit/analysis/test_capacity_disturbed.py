"""What the hypervisor took is told apart from what the generator was late; disturbed trials have no say."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.capacity.heeded import FAR_BELOW, STEAL_DISTURBS, heeded, highest_held
from plimsoll.analysis.capacity.judge import judge
from plimsoll.analysis.capacity.line import load_line
from plimsoll.analysis.capacity.objective import parse
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.analysis.capacity.search import Limits, Step, Tried, next_step
from plimsoll.analysis.capacity.verdict import assess
from plimsoll.analysis.statistics.percentile import Cells

sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from simulate.loadline import SERVERS, reading

OBJECTIVE = parse("p99 <= 20ms")
WITHIN = Limits(300, 0.01, 1, 8, 12)
CLOSED = Tried(1, "saturation", None, 8, "cannot tell", "cannot tell", 0, 4000)


def late(steal: float, seconds: int = 12) -> Reading:
    """A trial that breaks the objective, its operations late by 30 ms although connections were free."""
    found = reading(1, Step("bracket", 900, seconds), SERVERS["M/M/1 1 ms"], np.random.default_rng(3))
    left = found.cells.seconds
    second = np.repeat(np.arange(left), 100)
    lag = Cells(second, np.full(len(second), 3e7), np.full(len(second), 3.1e7), np.ones(len(second)), np.zeros(left))
    return replace(found, lag_cells=lag, busy=np.full(left, 2.0), steal_share=steal)


def test_lag_is_the_generators_where_the_hypervisor_took_nothing() -> None:
    found = judge([late(0.0)], OBJECTIVE)
    assert (found.word, found.disturbed) == ("generator", None)


def test_lag_is_not_held_against_the_generator_where_the_hypervisor_took_much() -> None:
    found = judge([late(STEAL_DISTURBS)], OBJECTIVE)
    assert found.word in ("breaks", "cannot tell")
    assert found.disturbed is not None
    assert found.disturbed in found.reasons
    busy = judge([replace(late(STEAL_DISTURBS), load_busy_share=0.95)], OBJECTIVE)
    assert busy.word == "generator", "its own threads' time is its own"


def test_what_holds_in_spite_of_the_hypervisor_holds() -> None:
    quick = reading(1, Step("bracket", 300, 20), SERVERS["M/M/1 1 ms"], np.random.default_rng(3))
    found = judge([replace(quick, steal_share=0.16)], OBJECTIVE)
    assert (found.word, found.disturbed) == ("holds", None)


def tried(number: int, rate: float, word: str, disturbed: bool = False, role: str = "bracket") -> Tried:
    excess = {"holds": -0.5, "cannot tell": 0.0}.get(word, 0.5)
    return Tried(number, role, rate, 8, word, word, excess, rate, disturbed=disturbed)  # type: ignore[arg-type]


def test_the_rate_of_a_disturbed_trial_is_asked_for_again() -> None:
    before = [CLOSED, tried(2, 2800, "holds")]
    wanted = next_step(before, WITHIN, 20)
    assert wanted is not None
    assert wanted.rate is not None
    spoilt = tried(3, wanted.rate, "breaks", disturbed=True)
    assert next_step([*before, spoilt], WITHIN, 30) == wanted
    assert next_step([*before, replace(spoilt, disturbed=False)], WITHIN, 30) != wanted


def test_disturbed_trials_have_no_say_unless_they_are_most_of_what_there_is() -> None:
    well = [tried(number, 100, "holds") for number in range(2, 8)]
    spoilt = [tried(number, 50, "breaks", disturbed=True) for number in range(8, 11)]
    assert heeded([CLOSED, *well, *spoilt]) == well
    assert load_line([CLOSED, *well, *spoilt]) == load_line([CLOSED, *well])
    always = [replace(one, disturbed=True) for one in (*well, *spoilt)]
    assert heeded(always) == always, "a machine that always loses much is what the line is of"


def test_rates_far_below_one_that_held_are_not_asked_for() -> None:
    tries = [CLOSED, tried(2, 3029, "holds")]
    for number in range(3, 30):
        step = next_step(tries, WITHIN, 100)
        assert step is not None
        assert step.rate is not None
        if highest_held(tries[1:]) is not None:
            assert step.role == "curve" or step.rate >= 3029 / FAR_BELOW
        word = "generator" if step.rate != 3029 else "holds"
        tries.append(tried(number, step.rate, word, role=step.role))


def test_a_rate_that_held_once_and_broke_twice_did_not_hold() -> None:
    assert highest_held([tried(1, 100, "holds"), tried(2, 100, "breaks")]) == 100
    outvoted = [tried(1, 100, "holds"), tried(2, 100, "breaks"), tried(3, 100, "generator"), tried(4, 60, "holds")]
    assert highest_held(outvoted) == 60
    assert highest_held([]) is None


@pytest.mark.parametrize("steal", [0.0, 0.1])
def test_a_disturbed_trial_is_not_pooled_with_others_at_its_rate(steal: float) -> None:
    random, server = np.random.default_rng(5), SERVERS["M/M/1 1 ms"]
    good = [reading(number, Step("confirm", 600, 30), server, random) for number in (1, 2)]
    bad = reading(3, Step("confirm", 990, 30), server, random)
    spoilt = replace(bad, rate=600.0, steal_share=steal)
    last = assess([good[0], spoilt, good[1]], OBJECTIVE)[-1]
    assert (last.pooled == "holds") == (steal > 0)
