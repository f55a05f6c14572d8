"""Rounds of a soak: known drifts, known steps, and soaks without either, whose noise goes on from round to round."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.soak.autoregressive import fit
from plimsoll.analysis.soak.inside import changes
from plimsoll.analysis.soak.rounds import judge_rounds
from plimsoll.analysis.soak.steps import steps

sys.path.append(str(Path(__file__).resolve().parents[3] / "benches"))

from simulate import soaks

OSDL = [27.50, 27.34, 26.31, 25.24, 25.10]  # Linux 2.6 under DBT-3, 2003: five throughput tests in fourteen days


def test_the_study_of_fourteen_days_gives_its_own_changes():
    found = judge_rounds(OSDL)
    changes = [row["change"]["value"] for row in found["rounds"][1:]]
    assert [round(100 * change, 2) for change in changes] == [-0.58, -4.33, -8.22, -8.73]
    assert found["over_all"]["value"] == pytest.approx(-0.09, abs=0.01)
    assert found["over_all"]["high"] < 0


def test_five_rounds_do_not_tell_a_drift_from_a_slow_wave():
    """By least squares with independent noise these fall for certain; of a wandering machine five say little."""
    assert judge_rounds(OSDL)["verdict"] == "cannot tell"


@pytest.mark.parametrize(("a_round", "word"), [(-0.02, "lower"), (0.02, "higher")])
def test_a_steady_drift_is_told_with_its_size(a_round, word):
    logs = soaks.rounds("AR 0.5", 12, 1, 7)[0] + math.log1p(a_round) * np.arange(12)
    found = judge_rounds(list(np.exp(logs)))
    assert (found["verdict"], found["shape"]) == (word, "steady")
    assert found["a_round"]["low"] <= a_round <= found["a_round"]["high"]


def test_a_step_is_told_with_its_round_and_its_size():
    logs = soaks.rounds("AR 0.5", 24, 1, 3)[0]
    logs[14:] += math.log1p(-0.03)
    found = judge_rounds(list(np.exp(logs)))
    assert [step["round"] for step in found["steps"]] == [15]
    assert found["steps"][0]["size"]["value"] == pytest.approx(-0.03, abs=0.006)
    assert found["steps"][0]["size"]["high"] < 0
    assert found["shape"] == "in steps"
    assert found["rounds"][20]["verdict"] == "lower"


def test_a_round_is_as_the_first_only_where_rounds_agree_so_well_that_it_is_known():
    calm = judge_rounds(list(np.exp(soaks.rounds("AR 0", 20, 1, 4)[0])))
    assert {row["verdict"] for row in calm["rounds"][1:]} == {"as the first"}
    wild = judge_rounds(list(np.exp(soaks.rounds("AR 0", 20, 1, 4, scatter=0.3)[0])))
    assert {row["verdict"] for row in wild["rounds"][1:]} == {"cannot tell"}


def test_a_time_of_other_load_is_two_steps():
    logs = soaks.rounds("AR 0.3", 40, 1, 5)[0]
    logs[12:24] += math.log1p(-0.04)
    assert [step.place for step in steps(logs, 0.95)] == [12, 24]


def test_rounds_without_a_drift_give_a_bound():
    found = judge_rounds(list(np.exp(soaks.rounds("AR 0.3", 20, 1, 11)[0])))
    assert found["verdict"].startswith("no drift larger than ")
    bound = float(found["verdict"].removeprefix("no drift larger than ").removesuffix(" %")) / 100
    assert -bound <= found["over_all"]["low"] <= 0 <= found["over_all"]["high"] <= bound


def test_a_bound_of_no_use_is_no_verdict():
    assert judge_rounds(list(np.exp(soaks.rounds("AR 0.3", 6, 1, 2, scatter=0.3)[0])))["verdict"] == "cannot tell"


def test_few_rounds_and_rounds_without_a_figure():
    few = judge_rounds([10.0, None, 9.0], [["first"], ["the server was killed"]])
    assert few["verdict"] == "cannot tell" and few["over_all"] is None
    assert [row["remarks"] for row in few["rounds"]] == [["first"], ["the server was killed"], []]
    some = judge_rounds([10.0, 10.1, None, 9.9, 10.0, 10.1])
    assert [row["change"] is None for row in some["rounds"]] == [True, False, True, False, False, False]


def test_rounds_that_are_all_alike_do_not_drift_at_all():
    found = judge_rounds([10.0] * 12)
    assert (found["verdict"], found["steps"]) == ("no drift larger than 0 %", [])


def test_a_step_without_any_scatter_is_found():
    assert [step["round"] for step in judge_rounds([10.0] * 8 + [9.0] * 8)["steps"]] == [9]


def test_the_mixture_is_students_t_where_neighbours_tell_nothing():
    """Known: at the correlation of 0 the model is least squares."""
    values, places = np.array([1.0, 2.5, 2.9, 4.2, 5.1, 5.8]), np.arange(6.0)
    found = fit(values, places).coefficients[1]
    slope, _ = np.polyfit(places, values, 1)
    assert found.values[0] == pytest.approx(slope)
    left = values - np.polyval(np.polyfit(places, values, 1), places)
    error = math.sqrt((left**2).sum() / 4 / ((places - places.mean()) ** 2).sum())
    assert found.errors[0] == pytest.approx(error)
    low, high = found.interval(0.95)
    assert low < slope < high and found.chance() < 0.01


@pytest.mark.parametrize("kind", ["AR 0", "AR 0.5", "AR 0.8", "heavy"])
def test_soaks_without_a_drift_raise_no_alarm(kind):
    """100 soaks of 20 rounds; the bound on a thousand (at most 1 %) is that of benches/verdicts.py."""
    found = soaks.judged(soaks.rounds(kind, 20, 100, 20261126))
    assert sum(soaks.alarms(one) for one in found) <= 3


@pytest.mark.parametrize("kind", ["AR 0", "AR 0.8"])
def test_steps_of_2_percent_over_ten_rounds_are_found(kind):
    logs = soaks.rounds(kind, 40, 50, 20261126)
    logs[:, 30:] += math.log1p(-soaks.STEP)
    assert sum(soaks.names_step(one, 31) for one in soaks.judged(logs)) >= 42


@pytest.mark.parametrize("kind", ["AR 0.8", "heavy"])
def test_chance_changes_the_inside_of_no_rounds(kind):
    """Of parts that scatter by a tenth, so that steps by chance are large enough to be told: at 0.2 % by the model two
    soaks in a hundred had one."""
    soaks_of_ten = soaks.as_parts(kind, 10, 12, 200, soaks.SCATTER_FALSE)
    assert np.mean([bool(changes(one)) for one in soaks_of_ten]) <= soaks.FALSE_INSIDE
