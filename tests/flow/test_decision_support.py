"""Decision support through the whole pipeline: the three tests on two treatments, its figures and its page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.analysis.trial import vmstat
from plimsoll.experiment.workload import DecisionSupport
from plimsoll.record import open_run
from plimsoll.run import agent

TEXT = """
format = 1
name = "tiny-decision-support"
title = "Do parallel workers matter?"

[target.settings]
autovacuum = false
jit = false
fsync = false

[workload]
name = "decision_support"
scale_factor = 0.01
tests = ["load", "power", "throughput"]
query_timeout_seconds = 60
explain = true
answers = true
repeats = 2

[probes]
page_cache = false

[warmup]
until = "none"

[design]
blocks = 1

[[factors]]
path = "target.settings.max_parallel_workers_per_gather"
label = "workers"
levels = [0, 2]
"""
FROM_KEPT = """
format = 1
name = "tiny-power"
title = "How much power?"

[target.settings]
autovacuum = false
jit = false

[workload]
name = "decision_support"
scale_factor = 0.01
tests = ["power"]
refresh = false

[warmup]
until = "none"
prewarm = true

[design]
blocks = 1
"""


def test_a_plan_knows_the_size_of_the_data() -> None:
    for scale_factor, share in ((0.01, 0.05), (1.0, 0.001), (100.0, 0.001)):
        workload = {"name": "decision_support", "scale_factor": scale_factor}
        described = agent.call("describe", {"workload": workload})
        estimate = DecisionSupport(name="decision_support", scale_factor=scale_factor).estimated_bytes()
        assert estimate == pytest.approx(described["estimated_bytes"], rel=share)


def test_the_three_tests_of_two_treatments(laboratory: Laboratory) -> None:
    path = laboratory.state / "tests.toml"
    path.write_text(TEXT)
    answer = json.loads(laboratory.call("run", str(path), "--json", "--out", "tests", seconds=600))
    assert answer["status"] == "finished"
    run = open_run(Path(answer["run"]))
    for trial in run.trials:
        assert trial.status == "finished", trial.data.get("reason")
        for checks in (trial.data["load_checks"], trial.data["checks"]):
            assert checks and all(check["ok"] for check in checks)
        assert [segment.name for _, segment in trial.tests] == ["power", "throughput-1", "throughput-2", "plans"]
        # The set of each refresh function is the next of the trial's own database: 1, then 2 of the first test...
        taken = [
            one["set"]
            for _, segment in trial.tests
            for one in sorted((segment.queries or {})["queries"], key=lambda one: one["began_ns"])
            if one["name"] == "RF1"
        ]
        assert taken == [1, 2, 3, 4, 5]
        # After each of the functions, RF1 and RF2 of 1 + 2 + 2 sets, what it left was looked at.
        looked = [(segment.summary or {})["verification"] for _, segment in trial.tests]
        assert [(one["checked"], one["wrong"]) for one in looked] == [(2, 0), (4, 0), (4, 0), (0, 0)]

        assert trial.data["answers"]["against"] == "duckdb"
        assert [(check["name"], check["ok"]) for check in trial.data["answers"]["checks"]] == [
            (f"Q{number}", True) for number in range(1, 23)
        ]

    verdict = analyse(run)
    assert [trial["admitted"] for trial in verdict["trials"]] == [True, True], verdict["exclusions"]
    found = verdict["decision_support"]
    assert "not comparable to published results" in found["like"]
    for one in found["trials"]:
        assert {name: figure["why_absent"] for name, figure in one["figures"].items()} == {
            "load_test_seconds": None,
            "power_queries_per_hour": None,
            "throughput_queries_per_hour": None,
            "composite_queries_per_hour": None,
        }
        assert len(one["times_s"]["power"]) == 24
        assert [len(times) for times in one["times_s"]["throughput"].values()] == [4] * 24
    assert all(len(one["drift"]) == 2 for one in found["treatments"].values())
    page = Path(answer["report"]).read_text()
    assert 'id="section-decision-support"' in page
    assert "Answers of 2 trials as loaded, compared with DuckDB&#39;s: 44 of 44 right" in page
    # On a fast machine a test at this size has no two seconds.
    lasting = any(vmstat.curve(segment) for trial in run.trials for _, segment in trial.tests)
    for figure in ("queries", "streams", *(["vmstat"] if lasting else [])):
        assert f'data-figure="{figure}"' in page
    assert laboratory.left_behind() == []


def test_the_power_test_alone_on_a_kept_data_set(laboratory: Laboratory) -> None:
    path = laboratory.state / "power.toml"
    path.write_text(FROM_KEPT)
    answer = json.loads(laboratory.call("run", str(path), "--json", "--no-page", "--out", "power"))
    (trial,) = open_run(Path(answer["run"])).trials
    assert trial.status == "finished", trial.data.get("reason")
    (one,) = answer["verdict"]["decision_support"]["trials"]
    assert one["figures"]["power_queries_per_hour"]["value"] > 0
    assert list(one["times_s"]["power"]) == [f"Q{number}" for number in range(1, 23)]
    kept = json.loads(laboratory.call("cache", "show", "--json"))
    assert [entry["key"].rsplit("-", 2)[0] for entry in kept] == ["decision_support-sf0.01"]


@pytest.mark.parametrize("test", ["power", "throughput"])
def test_each_query_has_its_breakdown(laboratory: Laboratory, needs: Callable[..., None], test: str) -> None:
    needs("bpf")
    path = laboratory.state / f"breakdown-{test}.toml"
    text = FROM_KEPT.replace('["power"]', f'["{test}"]').replace("refresh = false", "refresh = true")
    path.write_text(text + "\n[probes]\nbreakdown_budget_percent = 0\n")
    answer = json.loads(laboratory.call("run", str(path), "--json", "--out", f"breakdown-{test}"))
    found = answer["verdict"]["decision_support"]
    (one,), (treatment,) = found["trials"], found["treatments"].values()
    times, parts = one["times_s"][test], treatment["parts"]
    assert list(parts) == list(times) == [*(f"Q{number}" for number in range(1, 23)), "RF1", "RF2"]
    # What the server did from the arrival of the text on, and the way to it and back; on a busy machine time slices
    # may lie between the two clocks, of any of the queries, but not of most.
    wall = {name: 1e9 * sum(seconds) / len(seconds) for name, seconds in times.items()}
    for name in times:
        assert sum(parts[name].values()) == pytest.approx(wall[name], rel=0.1, abs=20e6), name
    apart = [abs(sum(parts[name].values()) - wall[name]) / wall[name] for name in times if wall[name] > 5e6]
    assert statistics.median(apart) < 0.1, sorted(apart)
    assert all(any(part.startswith("cpu") for part in each) for each in parts.values()), parts
    assert 'data-figure="query-parts"' in Path(answer["report"]).read_text()
