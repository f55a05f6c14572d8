"""Drift over a series: the study's table, its trend by our rule, blocks, gaps, and what a kill leaves in the words."""

import json
import math
import random
import runpy
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from plimsoll.analysis import analyse
from plimsoll.analysis.decision_support.drift import drift_word, trend
from plimsoll.record import open_run
from plimsoll.words.terminal import terminal_lines

_WORLD = runpy.run_path(str(Path(__file__).with_name("decision_support_world.py")))
World, make = _WORLD["World"], _WORLD["make"]
STUDY = [27.50, 27.34, 26.31, 25.24, 25.10]
Json = dict[str, Any]


def readings(*series: list[float | None]) -> dict[int, Json]:
    return {block: {"runs": [{"value": value} for value in one]} for block, one in enumerate(series, start=1)}


def test_the_studys_drift(tmp_path: Path) -> None:
    # Its five figures as elapsed times of 8 streams at scale factor 10, half an hour and not days each.
    by_run = iter([27.50, 27.34, 26.31, 25.24, 25.10])
    lasted = {number: 27.50 / value for number, value in enumerate(by_run, start=1)}
    run = make(tmp_path / "run", World(levels=("16 MiB",), repeats=5, tests=("throughput",), refresh=False))
    for path in run.glob("trials/*/throughput-*/queries.json"):
        document = json.loads(path.read_text())
        number = int(path.parent.name.rsplit("-", 1)[1])
        document["ended_ns"] = document["began_ns"] + round(220e9 * lasted[number])
        path.write_text(json.dumps(document))
    found = analyse(open_run(run))["decision_support"]["treatments"]["t1"]["drift"]
    assert [one["run"] for one in found] == [1, 2, 3, 4, 5]
    assert found[0]["change"] is None
    assert [round(100 * one["change"]["value"], 2) for one in found[1:]] == [-0.58, -4.33, -8.22, -8.73]
    assert [one["verdict"] for one in found[1:]] == ["lower"] * 4


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (None, "cannot tell"),
        ({"value": 1.0, "low": None, "high": None, "blocks": 2}, "cannot tell"),
        ({"value": 0.9, "low": 0.85, "high": 0.99, "blocks": 3}, "lower"),
        ({"value": 1.1, "low": 1.01, "high": 1.2, "blocks": 3}, "higher"),
        ({"value": 1.0, "low": 0.985, "high": 1.01, "blocks": 5}, "no drift larger than 2 %"),
    ],
)
def test_what_is_said_of_a_drift(ratio: Json | None, said: str) -> None:
    assert drift_word(ratio) == said


def test_the_studys_trend() -> None:
    found = trend(readings(STUDY))
    assert found is not None
    known = stats.linregress(range(5), [math.log(value) for value in STUDY])
    half = known.stderr * stats.t.ppf(0.975, 3)
    expected = [math.expm1(4 * slope) for slope in (known.slope, known.slope - half, known.slope + half)]
    assert [found["over_all"][key] for key in ("value", "low", "high")] == pytest.approx(expected)
    assert [round(100 * found["a_test"][key], 2) for key in ("value", "low", "high")] == [-2.59, -3.81, -1.35]
    assert [round(100 * found["over_all"][key], 1) for key in ("value", "low", "high")] == [-10.0, -14.4, -5.3]
    assert (found["tests"], found["blocks"], found["verdict"]) == (5, 1, "lower")
    line = [known.intercept + known.slope * number - math.log(STUDY[0]) for number in range(5)]
    assert [at["run"] for at in found["line"]] == [1, 2, 3, 4, 5]
    assert [at["change"] for at in found["line"]] == pytest.approx([math.expm1(one) for one in line])


def test_a_trend_holds_as_often_as_it_says() -> None:
    draw = random.Random(2003)
    rounds, held = 400, 0
    for _ in range(rounds):
        series = [100.0 * 0.98**number * math.exp(draw.gauss(0, 0.02)) for number in range(5)]
        found = trend(readings(series))
        assert found is not None
        held += found["a_test"]["low"] <= -0.02 <= found["a_test"]["high"]
    # 380 expected; four standard deviations of a binomial are 17.
    assert 363 <= held <= 397


@pytest.mark.parametrize(
    ("series", "verdict", "is_told"),
    [
        ([[100.0, 101.0, 99.5, 100.2, 100.1]], "no drift larger than 3 %", True),
        ([[100.0, 103.0, 106.0, 109.5, 112.0]], "higher", True),
        ([[100.0, 99.0]], "cannot tell", False),
        ([[100.0, None, None, 99.0, None]], "cannot tell", False),
        ([[100.0, 10.0, 400.0]], "cannot tell", True),  # a bound that allows anything
        ([[100.0, 98.0, 96.1, 94.0], [50.0, 49.0, 48.1, 47.0]], "lower", True),  # each on a level of its own
        ([[100.0, 98.0, 96.1], [50.0, 49.0, 48.1], [80.0, 78.5, 77.0]], "lower", True),
    ],
)
def test_what_a_trend_says(series: list[list[float | None]], verdict: str, is_told: bool) -> None:
    found = trend(readings(*series))
    assert found is not None
    assert found["verdict"] == verdict
    assert (found["over_all"] is not None) == is_told


def test_one_test_has_no_trend() -> None:
    assert trend(readings([100.0])) is None


def test_a_gap_keeps_the_numbers_of_the_others() -> None:
    whole, gap = [100.0 * 0.9**number for number in range(5)], [100.0, 90.0, None, 72.9, 65.61]
    for series in (whole, gap):
        found = trend(readings(series))
        assert found is not None
        assert found["a_test"]["value"] == pytest.approx(-0.1)
        assert found["over_all"]["value"] == pytest.approx(0.9**4 - 1)


def test_what_was_cut_stands_in_the_table_and_in_the_caveats(tmp_path: Path) -> None:
    run = make(tmp_path / "run", World(levels=("16 MiB",), blocks=1, repeats=3, tests=("throughput",)))
    path = run / "trials" / "0001" / "trial.json"
    trial = json.loads(path.read_text())
    trial["tests"][1] |= {"attempt": 2, "sitting": 2, "begins_cold": True}
    trial["cut"] = [
        {"segment": "throughput-2", "attempt": 1, "why": "the run was killed"},
        {"segment": None, "attempt": None, "why": "the server ended\nand its log has more"},
    ]
    path.write_text(json.dumps(trial))
    found = analyse(open_run(run))
    rows = found["decision_support"]["treatments"]["t1"]["drift"]
    assert [row["remarks"] for row in rows] == [
        [],
        ["repeated after 1 interrupted attempt", "begun with cold caches"],
        [],
    ]
    (one,) = found["trials"]
    said = " ".join(one["caveats"])
    assert "throughput-2: attempt 1 was interrupted, and the test was repeated (the run was killed)" in said
    assert "between two tests: the server had to be restarted (the server ended)" in said
    assert any("throughput over 3 tests" in line for line in terminal_lines(found, "x"))


def test_a_series_of_one_figure_is_no_block_of_the_trend() -> None:
    found = trend(readings(STUDY, STUDY, [STUDY[0], None]))
    assert found is not None
    assert found["blocks"] == 2
