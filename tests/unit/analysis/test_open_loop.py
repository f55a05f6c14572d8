"""Open loops from a simulated queue: what is judged, whose the lag is, what rows and histograms give alike."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.trial.histograms import merged, of_segment
from plimsoll.analysis.trial.starts import backlog, connections, own_lag
from plimsoll.record import compact, open_run
from plimsoll.report import write_report
from plimsoll.words import verdict as words
from plimsoll.words.first_screen import first_screen

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_open.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = make(tmp_path_factory.mktemp("open") / "run", Shape(rates=(60.0, 120.0), seconds=20))
    return found


@pytest.fixture(scope="module")
def verdict(folder: Path) -> dict[str, Any]:
    return analyse(open_run(folder))


def judged(tmp_path: Path, *faults: str, **shape: Any) -> dict[str, Any]:
    return analyse(open_run(make(tmp_path / "run", Shape(faults=faults, **shape))))


def test_latency_is_judged_and_longer_is_worse(verdict: dict[str, Any]) -> None:
    assert verdict["metric"] == "latency_ns_p99"
    assert all(trial["admitted"] for trial in verdict["trials"])
    levels = {level["level"]: level for level in verdict["comparisons"][0]["levels"]}
    assert levels["60"]["estimate"] < levels["120"]["estimate"]
    line = words.headlines(verdict)[0]
    assert "by latency p99" in line
    assert "slower" not in line


def test_percentiles_count_from_the_plan(folder: Path, verdict: dict[str, Any]) -> None:
    rows = np.load(folder / "trials/0001/measure/transactions.npy")
    latency = np.sort(rows["end_ns"] - rows["planned_ns"])
    assert verdict["trials"][0]["metrics"]["latency_ns_p99"] == latency[int(np.ceil(0.99 * len(rows))) - 1]


def test_what_was_too_late_is_slower_than_any(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(rates=(60.0, 120.0), seconds=20, faults=("late",)))
    trial = analyse(open_run(folder))["trials"][0]
    rows = np.load(folder / "trials/0001/measure/transactions.npy")
    done = rows[rows["outcome"] == 0]
    latency = np.sort(done["end_ns"] - done["planned_ns"])
    assert len(done) < len(rows)
    assert trial["latency_ns"]["all"]["p90"] == latency[int(np.ceil(0.9 * len(rows))) - 1]
    assert trial["latency_ns"]["all"]["p99"] is None, "it lies among those that were skipped"
    assert any("not answered in time" in caveat for caveat in trial["caveats"])
    histogram = of_segment(open_run(folder).trials[0].measure)["all"]
    assert histogram.percentile(0.9) == pytest.approx(trial["latency_ns"]["all"]["p90"], rel=0.002)
    assert histogram.percentile(0.99) is None
    assert merged([histogram, histogram]).percentile(0.9) == histogram.percentile(0.9)


def test_more_under_way_because_more_are_due_is_no_backlog(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(rates=(20.0, 60.0), seconds=20, faults=("overloaded",)))
    summary = folder / "trials/0002/measure/summary.json"
    found = json.loads(summary.read_text())
    judged_even = backlog(open_run(folder).trials[1].measure)
    assert judged_even is not None
    assert judged_even["building"]
    found["schedule"] = {"kind": "ramp", "from": 20.0, "to": 60.0, "seconds": 20.0}
    summary.write_text(json.dumps(found))
    assert backlog(open_run(folder).trials[1].measure) is None


def test_the_plan_is_set_against_what_was_done(verdict: dict[str, Any]) -> None:
    metrics = verdict["trials"][0]["metrics"]
    assert metrics["planned_rate_per_second"] == 60
    assert metrics["achieved_share"] == 1
    assert verdict["trials"][0]["generator"]["limit"] == []


def test_histograms_of_all_take_the_place_of_a_sample_of_rows(tmp_path: Path, verdict: dict[str, Any]) -> None:
    sampled = judged(tmp_path, "sampled", rates=(60.0, 120.0), seconds=20)
    for whole, part in zip(verdict["trials"], sampled["trials"], strict=True):
        assert (whole["latency_source"], part["latency_source"]) == ("rows", "histogram")
        for name in ("p50", "p90", "p99"):
            if whole["latency_ns"]["all"][name] is not None:
                assert part["latency_ns"]["all"][name] == pytest.approx(whole["latency_ns"]["all"][name], rel=0.002)
        assert part["throughput"]["mean"] == whole["throughput"]["mean"]
        assert part["metrics"]["throughput_per_second"] == whole["metrics"]["throughput_per_second"]
        assert part["generator"]["lag_share"] == pytest.approx(whole["generator"]["lag_share"], abs=0.25)
    assert any("only a sample of the transactions is recorded row by row" in caveat for caveat in sampled["caveats"])


def test_lag_while_connections_are_free_is_the_generators(tmp_path: Path) -> None:
    found = judged(tmp_path, "starved", rates=(8.0, 10.0), seconds=40)
    assert all(not trial["admitted"] for trial in found["trials"])
    assert "while a connection was free" in found["trials"][0]["reasons"][0]


def test_waiting_for_a_busy_connection_is_not_the_generators(tmp_path: Path) -> None:
    run = open_run(make(tmp_path / "run", Shape(rates=(110.0, 120.0))))
    found = own_lag(run.trials[0])
    assert found is not None
    rows = run.trials[0].measure.transactions
    assert rows is not None
    assert (rows["start_ns"] - rows["planned_ns"]).mean() > 10 * found.mean_ns


def test_a_connection_that_was_opened_again_is_not_another(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(rates=(20.0, 60.0)))
    summary = folder / "trials/0001/measure/summary.json"
    found = json.loads(summary.read_text())
    found |= {"reconnects": 2, "backend_pids": [*found["backend_pids"], 900, 901]}
    before = connections(open_run(folder).trials[0])
    summary.write_text(json.dumps(found))
    assert connections(open_run(folder).trials[0]) == before == Shape().clients


def test_more_than_the_server_carries_is_said_and_not_blamed_on_the_generator(tmp_path: Path) -> None:
    found = judged(tmp_path, "overloaded", rates=(20.0, 60.0), seconds=20)
    assert all(trial["generator"]["limit"] == [] for trial in found["trials"])
    assert sum(trial["generator"]["backlog"]["building"] for trial in found["trials"]) >= 4
    assert max(trial["generator"]["own_lag_share"] for trial in found["trials"]) < 1e-6
    assert any("the queue kept growing" in caveat for caveat in found["caveats"])


def test_failures_on_files_are_named_by_the_kernels_error_and_the_first_file(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(faults=("failing",)))
    for path in folder.glob("trials/*/measure/summary.json"):
        summary = json.loads(path.read_text())
        message = "append d000000/f000000003.0: No space left on device (os error 28)"
        summary["errors"] = [{"sqlstate": "ENOSPC", "message": message, "count": summary["identity"]["failed"]}]
        path.write_text(json.dumps(summary))
    found = analyse(open_run(folder))
    assert any("transactions failed (ENOSPC: " in caveat and message in caveat for caveat in found["caveats"])
    assert message in " ".join(said.text for said in first_screen(found).wrong), "before other caveats"


def test_failures_are_named_by_sqlstate_and_retries_counted(tmp_path: Path) -> None:
    found = judged(tmp_path, "failing")
    assert any("failed (SQLSTATE 40001: " in caveat for caveat in found["caveats"])
    assert any("transactions were retried" in caveat for caveat in found["caveats"])
    assert found["trials"][0]["metrics"]["failed_share"] == pytest.approx(0.05, abs=0.01)
    assert found["trials"][0]["metrics"]["retries_per_transaction"] == pytest.approx(0.21, abs=0.02)


def test_a_trial_on_other_cpus_does_not_enter(tmp_path: Path) -> None:
    found = judged(tmp_path, "misplaced")
    assert [row["trial"] for row in found["exclusions"]] == [2]
    assert "on other CPUs" in found["exclusions"][0]["reasons"][0]
    assert found["generator"]["placement"]["equal"] is False


def test_cpus_that_the_experiment_varies_may_differ(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(faults=("misplaced",)))
    plan = json.loads((folder / "plan.json").read_text())
    plan["factors"][0]["paths"] = ["environment.target_cpus"]
    (folder / "plan.json").write_text(json.dumps(plan))
    found = analyse(open_run(folder))
    assert found["exclusions"] == []
    assert found["generator"]["placement"]["varied"]


def test_the_page_shows_the_plan_and_the_latency_of_all_trials(folder: Path) -> None:
    text = write_report(folder).read_text()
    assert "open loop: transactions are due by the plan" in text
    assert 'data-figure="latency-judged"' in text
    assert "Latency of all trials of a treatment together" in text
    assert "times longer" in text


def test_the_histograms_are_compacted_too(folder: Path) -> None:
    names = {path.name for path in compact(folder)}
    assert {"latency_seconds.parquet", "lag_seconds.parquet", "transactions.parquet"} <= names
