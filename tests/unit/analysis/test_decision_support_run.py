"""Decision support over a run: intervals, changes with one confidence for all queries, drift, plans, the verdict."""

import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse, words
from plimsoll.analysis import decision_support_run as of_run
from plimsoll.analysis.decision_support_metrics import COMPOSITE, LOAD, POWER
from plimsoll.record import open_run

_WORLD = runpy.run_path(str(Path(__file__).with_name("decision_support_world.py")))
World, make = _WORLD["World"], _WORLD["make"]
Json = dict[str, Any]


def noisy(treatment: str, block: int, test: str, stream: int, name: str) -> float:
    """Q18 takes twice as long in the second treatment; blocks differ by a tenth, trials by a few in a thousand."""
    del test, stream
    number = sum(map(ord, treatment + name)) * (block + 3)
    slow = 2.0 if treatment == "t2" and name == "Q18" else 1.0
    return 10.0 * slow * 1.1**block * math.exp(0.003 * math.sin(number))


def verdict(folder: Path, **about: Any) -> Json:
    return analyse(open_run(make(folder / "run", World(**about))))


def test_treatments_are_compared_by_the_composite(tmp_path: Path) -> None:
    found = verdict(tmp_path, seconds=noisy, blocks=4)
    assert found["metric"] == COMPOSITE
    assert found["exclusions"] == []
    assert [trial["admitted"] for trial in found["trials"]] == [True] * 8
    (comparison,) = found["comparisons"]
    assert comparison["reference"] == "16 MiB"
    assert "by composite" in words.headlines(found)[0]
    estimate = found["treatments"]["t1"]["metrics"][POWER]
    # 24 times of 10 s times 1.1 to the block's number: the geometric mean of four blocks has 1.1 ** 2.5.
    assert estimate["value"] == pytest.approx(360 / 1.1**2.5, rel=0.005)
    assert estimate["low"] < estimate["value"] < estimate["high"]
    assert found["treatments"]["t1"]["metrics"][LOAD]["blocks"] == 4


@pytest.mark.parametrize(
    ("name", "field", "reason"),
    [
        ("throughput-1/summary.json", {"verification": {"checked": 4, "wrong": 1}}, "1 of 4 checked refresh functions"),
        (
            "trial.json",
            {"load_checks": [{"name": "lineitem: rows", "ok": False}]},
            "the load test failed: lineitem",
        ),
        ("trial.json", {"checks": [{"name": "orders: rows", "ok": False}]}, "the trial failed: orders"),
    ],
)
def test_a_trial_whose_tables_are_wrong_enters_no_verdict(tmp_path: Path, name: str, field: Json, reason: str) -> None:
    run = make(tmp_path / "run", World())
    path = run / "trials" / "0002" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | field))
    found = analyse(open_run(run))
    assert [trial["admitted"] for trial in found["trials"]] == [True, False, True, True, True, True]
    (excluded,) = found["exclusions"]
    assert reason in " ".join(excluded["reasons"])


def test_the_query_that_changed_is_found_and_no_other(tmp_path: Path) -> None:
    changes = verdict(tmp_path, seconds=noisy, blocks=4)["decision_support"]["changes"]
    assert len(changes) == 2 * 24
    slower = [one for one in changes if one["verdict"] == "slower"]
    assert {(one["query"], one["test"]) for one in slower} == {("Q18", "power"), ("Q18", "throughput")}
    for one in slower:
        assert one["ratio"] == pytest.approx(2.0, rel=0.02)
        assert one["low"] < 2.0 < one["high"]
    assert not [one for one in changes if one["verdict"] == "faster"]


def test_intervals_of_changes_are_wider_than_those_of_one_query(tmp_path: Path) -> None:
    found = verdict(tmp_path, seconds=noisy, blocks=4)["decision_support"]
    ratios = {one["block"]: one["value"] for one in found["treatments"]["t2"]["queries"]["power"]["Q1"]["points"]}
    first = {one["block"]: one["value"] for one in found["treatments"]["t1"]["queries"]["power"]["Q1"]["points"]}
    alone = of_run._over([ratios[block] / first[block] for block in first])
    change = next(one for one in found["changes"] if one["query"] == "Q1" and one["test"] == "power")
    assert alone is not None
    assert change["low"] < alone["low"] < alone["high"] < change["high"]


def test_two_blocks_decide_nothing(tmp_path: Path) -> None:
    changes = verdict(tmp_path, seconds=noisy, blocks=2)["decision_support"]["changes"]
    assert {one["verdict"] for one in changes} == {"cannot tell"}
    assert {one["low"] for one in changes} == {None}


def test_a_trial_without_a_figure_is_named_and_stays_in_the_rest(tmp_path: Path) -> None:
    found = verdict(tmp_path, seconds=noisy, failing=(((1, "power", 0, "Q9"), "timed out"),))
    t1 = found["decision_support"]["treatments"]["t1"]
    assert t1["metrics"][POWER]["estimate"]["blocks"] == 2
    assert t1["metrics"][POWER]["absent"] == [{"trial": 1, "why": "no metric: failed, timed out or not run: Q9"}]
    assert t1["queries"]["power"]["Q9"]["failed"] == [1]
    assert t1["queries"]["power"]["Q9"]["blocks"] == 2
    assert any("trial 1: power: no metric" in line for line in words.terminal_lines(found, "x"))
    assert found["identity"]["failed"] == 1 and found["identity"]["holds"]


def test_a_query_that_is_never_done_has_no_value(tmp_path: Path) -> None:
    failing = tuple(((trial, "power", 0, "Q9"), "failed") for trial in (1, 3, 5))
    found = verdict(tmp_path, seconds=noisy, failing=failing)["decision_support"]
    q9 = found["treatments"]["t1"]["queries"]["power"]["Q9"]
    assert (q9["value"], q9["failed"]) == (None, [1, 3, 5])
    assert found["treatments"]["t1"]["metrics"][POWER]["estimate"] is None
    assert not [one for one in found["changes"] if one["query"] == "Q9" and one["test"] == "power"]


def test_the_load_test_by_phase_and_table(tmp_path: Path) -> None:
    load = verdict(tmp_path)["decision_support"]["treatments"]["t1"]["load"]
    assert [one["phase"] for one in load["phases"]] == ["tables", "rows", "vacuum", "indexes"]
    (table,) = load["tables"]
    assert table["rows_per_second"]["value"] == pytest.approx(6_001_215 / 40)
    assert table["bytes_per_second"]["value"] == pytest.approx(22_500_000)


def test_plans_that_differ_are_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, seconds=noisy, explain=True)["decision_support"]
    (changed,) = found["plans"]
    assert changed["query"] == "Q1"
    assert {tuple(changed["first_plan"]), tuple(changed["second_plan"])} == {
        ("Aggregate, Hashed", "  Seq Scan, lineitem"),
        ("Aggregate, Sorted", "  Seq Scan, lineitem"),
    }
    # The pass for the plans has no place among the times.
    assert found["trials"][0]["times_s"]["power"]["Q1"] == [pytest.approx(noisy("t1", 1, "", 0, "Q1"))]


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
    assert of_run.drift_word(ratio) == said


def test_waiting_for_workers_is_taken_out_of_the_other_waits() -> None:
    parts = {"cpu": {"value": 700.0}, "other_wait": {"value": 300.0}, "temp_io": {"value": 0.0}, "lag": {"value": 9.0}}
    waits = [
        {"name": "IPC:ExecuteGather", "bucket": "other_wait", "ns_per_transaction": 200.0},
        {"name": "IPC:HashBuildHashInner", "bucket": "other_wait", "ns_per_transaction": 60.0},
        {"name": "Timeout:VacuumDelay", "bucket": "other_wait", "ns_per_transaction": 40.0},
    ]
    split = {"treatments": {"t1": {"types": {"Q1": {"bands": {"all": {"parts": parts}}, "waits": waits}}}}}
    assert of_run._parts("t1", split) == {"Q1": {"cpu": 700.0, "other_wait": 40.0, "workers": 260.0}}
    assert of_run._parts("t2", split) == {}
    assert of_run._parts("t1", None) == {}


def test_another_workload_has_no_such_part(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "synthetic"
    found = analyse(open_run(golden))
    assert "decision_support" not in found
    assert COMPOSITE not in found["metrics"]
    assert COMPOSITE in verdict(tmp_path)["metrics"]
