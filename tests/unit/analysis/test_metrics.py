"""Metrics: what the registry must hold of each, what a run is judged by, and one that only the registry knows of."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from plimsoll.analysis import analyse, metrics
from plimsoll.analysis.metric import EVIDENCE, Display, Measures, Metric
from plimsoll.experiment.settings import Judged
from plimsoll.record import Run, Trial, open_run
from plimsoll.words.terminal import terminal_lines
from plimsoll.words.verdict import evidence_lines, headlines

GOLDEN = Path(__file__).parents[2] / "golden"
JUDGED = get_args(Judged)


def test_every_metric_has_one_room() -> None:
    keys = [metric.key for room in metrics.MEASURES for metric in room.metrics]
    assert len(set(keys)) == len(keys)
    assert [metric.key for metric in metrics.METRICS.values() if metric.is_usual] == [metrics.JUDGED]


@pytest.mark.parametrize("key", JUDGED)
def test_what_levels_may_be_judged_by_has_a_direction_a_figure_and_a_unit_of_work(key: str) -> None:
    metric = metrics.METRICS[key]
    assert metric.better is not None
    assert metric.scale == "log"
    assert metric.figure and metric.work
    of_cost = "dearer" if metric.unit == "ns/MB" else "longer"
    assert metric.worse == (of_cost if metric.better == "lower" else "slower")


@pytest.mark.parametrize(
    ("plan", "experiment", "judged"),
    [
        ({"judged": "latency_ns_p50"}, {"design": {"judged": "latency_ns_p90"}}, "latency_ns_p50"),
        ({}, {"design": {"judged": "latency_ns_p90"}}, "latency_ns_p90"),
        ({}, {"schedule": {"kind": "poisson"}}, "latency_ns_p99"),
        ({}, {}, "throughput_per_second"),
    ],
)
def test_a_record_says_by_what_it_is_judged(plan: dict[str, Any], experiment: dict[str, Any], judged: str) -> None:
    assert metrics.judged_of(plan, experiment) == judged


def test_a_metric_of_one_workload_is_of_no_other() -> None:
    plain, tests = ({"workload": {"name": name}} for name in ("bank", "decision_support"))
    alone = set(metrics.shown_for(tests)) - set(metrics.shown_for(plain))
    assert alone == {"load_test_seconds", *(f"{one}_queries_per_hour" for one in ("power", "throughput", "composite"))}


def _files(_trial: Trial) -> dict[str, float | None]:
    return {"file_bytes_per_second": 3e8 + 1e6 * _trial.number}


def _told_apart(run: Run) -> dict[str, Any]:
    """The verdict as if it told a level apart: what explains nothing is not said."""
    verdict: dict[str, Any] = analyse(run)
    verdict["comparisons"][0]["levels"][-1]["verdict"] = "worse"
    return verdict


def test_a_rooms_metric_is_judged_by_and_said_by_its_own_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mb_per_second = Metric(
        "file_bytes_per_second",
        "bytes written a second",
        "bytes/s",
        "log",
        "higher",
        "of a toy",
        short="write rate",
        display=Display("MB/s", 1e-6, ",.0f"),
        work="MB",
        workloads=("wpi_orders",),
    )
    run = open_run(shutil.copytree(GOLDEN / "synthetic", tmp_path / "run"))
    monkeypatch.setattr(metrics, "MEASURES", [*metrics.MEASURES, Measures([mb_per_second], _files)])
    monkeypatch.setitem(metrics.METRICS, mb_per_second.key, mb_per_second)
    run.plan["judged"] = mb_per_second.key
    verdict = analyse(run)
    assert verdict["metric"] == mb_per_second.key
    assert verdict["trials"][0]["metrics"][mb_per_second.key] == 301e6
    assert "by write rate" in headlines(verdict)[0]
    lines = terminal_lines(verdict, "report")
    assert any(line.startswith("  write rate, MB/s: ") and " 30" in line for line in lines)
    assert not any("transactions/s" in line for line in lines), "of another unit of work"
    # As evidence of another metric, and for another workload not at all.
    monkeypatch.setitem(metrics.METRICS, mb_per_second.key, replace(mb_per_second, shown_in=(EVIDENCE,)))
    run.plan["judged"] = metrics.JUDGED
    assert not any("write rate" in line for line in evidence_lines(_told_apart(run), 99)), "of another unit of work"
    monkeypatch.setitem(metrics.METRICS, mb_per_second.key, replace(mb_per_second, work=None, shown_in=(EVIDENCE,)))
    assert any("write rate, MB/s: " in line for line in evidence_lines(_told_apart(run), 99))
    run.plan["judged"] = metrics.JUDGED
    run.experiment["workload"]["name"] = "bank"
    assert mb_per_second.key not in analyse(run)["metrics"]


@pytest.mark.parametrize("unit", ["request", "operation"])
def test_a_metric_in_the_words_of_another_workload_is_english(unit: str) -> None:
    for metric in (one.of(unit) for one in metrics.METRICS.values()):
        said = " ".join((metric.label, metric.unit, metric.definition, metric.shown.unit, *metric.beside))
        assert "transaction" not in said and " a operation" not in said, metric.key
