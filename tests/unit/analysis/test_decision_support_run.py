"""Decision support over a run: intervals, changes with one confidence for all queries, drift, plans, the verdict."""

import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.decision_support import run as of_run
from plimsoll.analysis.decision_support.metrics import COMPOSITE, LOAD, POWER
from plimsoll.record import open_run
from plimsoll.words import verdict as words
from plimsoll.words.terminal import terminal_lines

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
        (
            "trial.json",
            {
                "answers": {
                    "against": "known",
                    "checks": [
                        {"name": "Q1", "ok": True, "found": ""},
                        {"name": "Q5", "ok": False, "found": "5 rows and not 4"},
                        {"name": "Q7", "ok": False, "found": "other"},
                    ],
                }
            },
            "wrong answers to Q5, Q7 (Q5: 5 rows and not 4)",
        ),
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


def test_answers_are_counted_and_wrong_ones_named(tmp_path: Path) -> None:
    right = [{"name": f"Q{number}", "ok": True, "found": ""} for number in range(1, 23)]
    wrong = [*right[:4], {"name": "Q5", "ok": False, "found": "5 rows and not 4"}, *right[5:]]
    run = make(tmp_path / "run", World())
    for number, checks in ((1, right), (2, wrong)):
        path = run / "trials" / f"{number:04}" / "trial.json"
        told = {"answers": {"against": "known", "checks": checks}}
        path.write_text(json.dumps(json.loads(path.read_text()) | told))
    said = [" ".join(line.strip() for line in terminal_lines(analyse(open_run(run)), "x"))]
    assert any("answers of 2 trials as loaded, compared with the known ones: 43 of 44 right" in line for line in said)
    assert any("trial 2: wrong answers to Q5 (Q5: 5 rows and not 4)" in line for line in said)


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
    assert any("trial 1: power: no metric" in line for line in terminal_lines(found, "x"))
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
    assert (changed["blocks"], changed["differ"], changed["is_told"]) == (3, 3, True)
    beside = {(one["test"], one["query"]): one for one in found["changes"]}
    assert changed["change"]["ratio"] == beside["power", "Q1"]["ratio"]
    assert changed["change"]["verdict"] == "no relevant difference"
    assert beside["power", "Q1"]["plan"] == beside["throughput", "Q1"]["plan"] == "other"
    assert {one["plan"] for key, one in beside.items() if key[1] != "Q1"} == {None}
    assert {tuple(changed["first_plan"]), tuple(changed["second_plan"])} == {
        ("Aggregate, Hashed", "  Seq Scan, lineitem"),
        ("Aggregate, Sorted", "  Seq Scan, lineitem"),
    }
    # The pass for the plans has no place among the times.
    assert found["trials"][0]["times_s"]["power"]["Q1"] == [pytest.approx(noisy("t1", 1, "", 0, "Q1"))]


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


def test_a_query_that_is_slower_with_another_plan_is_told_with_both(tmp_path: Path) -> None:
    def slow(treatment: str, block: int, test: str, stream: int, name: str) -> float:
        return noisy(treatment, block, test, stream, "Q18" if name == "Q1" else name)

    found = verdict(tmp_path, seconds=slow, explain=True, blocks=4)
    (changed,) = found["decision_support"]["plans"]
    assert changed["change"]["verdict"] == "slower"
    (line,) = (line for line in terminal_lines(found, "x") if "that differ from those at" in line)
    assert "Q1 (slower: 2.0" in line and "times as long)" in line


def test_plans_that_differ_within_a_treatment_are_not_the_treatments_doing(tmp_path: Path) -> None:
    run = make(tmp_path / "run", World(seconds=noisy, explain=True))
    path = run / "trials" / "0003" / "plans" / "plans" / "0-Q1.json"
    text = path.read_text()
    other = {"Hashed": "Sorted", "Sorted": "Hashed"}
    strategy = next(one for one in other if one in text)
    path.write_text(text.replace(strategy, other[strategy]))  # in the second block both have the same
    found = analyse(open_run(run))
    (changed,) = found["decision_support"]["plans"]
    assert (changed["blocks"], changed["differ"], changed["is_told"]) == (3, 2, False)
    assert {one["plan"] for one in found["decision_support"]["changes"] if one["query"] == "Q1"} == {"varies"}
    assert not any("that differ from those at" in line for line in terminal_lines(found, "x"))


def test_another_workload_has_no_such_part(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "synthetic"
    found = analyse(open_run(golden))
    assert "decision_support" not in found
    assert COMPOSITE not in found["metrics"]
    assert COMPOSITE in verdict(tmp_path)["metrics"]


def test_a_query_that_timed_out_in_a_stream_has_no_time_in_that_test() -> None:
    """The mean of the streams in which it was done would be too short: the slow ones are those that time out."""

    def trial(*statuses: str) -> Json:
        work = [{"name": "Q9", "status": status} for status in statuses]
        return {"times_s": {"throughput": {"Q9": [900.0, 400.0]}}, "segments": [{"test": "throughput", "work": work}]}

    assert of_run.seconds(trial("done", "done"), "throughput", "Q9") == pytest.approx(600)
    assert of_run.seconds(trial("done", "done", "timed out"), "throughput", "Q9") is None
