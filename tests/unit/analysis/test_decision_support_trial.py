"""A decision-support trial from its record: figures by hand, and what is absent because something was not done."""

import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.decision_support.metrics import COMPOSITE, LOAD, POWER, THROUGHPUT
from plimsoll.analysis.decision_support.trial import caveats, metric_values, reading
from plimsoll.record import open_run

_WORLD = runpy.run_path(str(Path(__file__).with_name("decision_support_world.py")))
World, make = _WORLD["World"], _WORLD["make"]
Json = dict[str, Any]


def first(folder: Path, **about: Any) -> Json:
    """The reading of the first trial of a run of one."""
    run = open_run(make(folder / "run", World(levels=("16 MiB",), blocks=1, **about)))
    found = reading(run.trials[0])
    assert found is not None
    return found


def test_the_figures_by_hand(tmp_path: Path) -> None:
    found = first(tmp_path, scale_factor=2.0)
    values = metric_values(found)
    # 24 times of 10 s; two streams of 220 s, the refresh stream done after 40 s.
    assert values[POWER] == pytest.approx(720)
    assert values[THROUGHPUT] == pytest.approx(2 * 22 * 3600 * 2 / 220)
    assert values[COMPOSITE] == pytest.approx(math.sqrt(720 * 1440))
    assert values[LOAD] == 81.0
    assert found["streams"] == 2
    assert caveats(found) == []


def test_the_last_work_ends_the_throughput_test(tmp_path: Path) -> None:
    def slow_refresh(treatment: str, block: int, test: str, stream: int, name: str) -> float:
        return (
            100.0
            if name.startswith("RF") and test == "throughput"
            else _WORLD["ten_seconds"](treatment, block, test, stream, name)
        )

    found = first(tmp_path, seconds=slow_refresh)
    assert found["runs"][0]["elapsed_s"] == pytest.approx(400)
    assert metric_values(found)[THROUGHPUT] == pytest.approx(2 * 22 * 3600 / 400)


@pytest.mark.parametrize("status", ["failed", "timed out", "skipped"])
def test_what_was_not_done_in_the_power_test_leaves_no_power(tmp_path: Path, status: str) -> None:
    found = first(tmp_path, failing=(((1, "power", 0, "Q17"), status),))
    values = metric_values(found)
    assert values[POWER] is None and values[COMPOSITE] is None
    assert values[THROUGHPUT] is not None
    assert "Q17" in found["figures"][POWER]["why_absent"]
    assert found["figures"][COMPOSITE]["why_absent"].startswith("power: ")
    assert "Q17" not in found["times_s"]["power"]
    assert [line for line in caveats(found) if line.startswith("power")]


def test_what_was_not_done_in_a_stream_leaves_no_throughput(tmp_path: Path) -> None:
    failing = (((1, "throughput-1", 2, "Q21"), "timed out"), ((1, "throughput-1", 3, "RF2"), "lost"))
    found = first(tmp_path, failing=failing)
    why = found["figures"][THROUGHPUT]["why_absent"]
    assert "stream 2 Q21 (timed out)" in why and "refresh stream RF2 (lost)" in why
    assert metric_values(found)[POWER] == pytest.approx(360)
    # Of the other stream there is a time.
    assert found["times_s"]["throughput"]["Q21"] == [10.0]


def test_a_later_test_without_a_figure_is_named(tmp_path: Path) -> None:
    found = first(tmp_path, repeats=2, failing=(((1, "throughput-2", 1, "Q3"), "failed"),))
    assert metric_values(found)[THROUGHPUT] is not None
    assert caveats(found) == ["throughput test 2: no metric: failed or timed out: stream 1 Q3 (failed)"]


def test_a_record_that_lacks_work_leaves_no_figure(tmp_path: Path) -> None:
    run = make(tmp_path / "run", World(levels=("16 MiB",), blocks=1))
    path = run / "trials/0001/throughput-1/queries.json"
    document = json.loads(path.read_text())
    document["queries"] = [one for one in document["queries"] if one["name"] != "Q5"]
    path.write_text(json.dumps(document))
    (run / "trials/0001/power/queries.json").write_text("{ cut short")
    found = reading(open_run(run).trials[0])
    assert found is not None
    assert "2 of 48 are not in the record" in found["figures"][THROUGHPUT]["why_absent"]
    assert found["figures"][POWER]["why_absent"] == "no metric: the power test left no record of its queries"


def test_only_the_tests_asked_for_have_figures(tmp_path: Path) -> None:
    found = first(tmp_path, tests=("power",), refresh=False)
    assert list(found["figures"]) == [POWER]
    assert found["figures"][POWER]["value"] == pytest.approx(360)
    assert found["figures"][POWER]["notes"]  # the mean is over 22
    assert found["load_test"] is None and found["streams"] is None


def test_the_timeline_begins_with_the_test(tmp_path: Path) -> None:
    found = first(tmp_path)
    power, throughput = found["segments"]
    assert [one["name"] for one in power["work"]] == ["RF1", *_WORLD["QUERIES"], "RF2"]
    assert (power["work"][0]["from_s"], power["work"][-1]["to_s"]) == (0.0, 240.0)
    assert {one["stream"] for one in power["work"]} == {0}
    assert {one["stream"] for one in throughput["work"]} == {1, 2, "refresh"}
    assert throughput["elapsed_s"] == 220.0


def test_another_workload_has_none(tmp_path: Path) -> None:
    run = make(tmp_path / "run", World(levels=("16 MiB",), blocks=1))
    plan = json.loads((run / "plan.json").read_text())
    plan["trials"][0]["resolved"] = {"workload": {"name": "bank"}}
    (run / "plan.json").write_text(json.dumps(plan))
    assert reading(open_run(run).trials[0]) is None
    assert set(metric_values(None).values()) == {None}
