"""From a synthetic run to its verdict: what enters, what is left out and why, and how it is said."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import NotComparable, analyse, compare_runs
from plimsoll.analysis.admission import admit, check_commits, settle_commits
from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.trial.latency import percentile
from plimsoll.analysis.trial.readings import cpu_list
from plimsoll.record import Run, open_run
from plimsoll.words import verdict as words
from plimsoll.words.comparing.comparison import comparison_lines
from plimsoll.words.levels import headline
from plimsoll.words.terminal import LINES_MAX, terminal_lines

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = make(tmp_path_factory.mktemp("runs") / "one", Shape(blocks=5))
    return found


@pytest.fixture(scope="module")
def verdict(folder: Path) -> dict[str, Any]:
    return analyse(open_run(folder))


def _edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_the_hit_ratio_equals_a_hand_count_on_the_counters(folder: Path, verdict: dict[str, Any]) -> None:
    for trial in verdict["trials"]:
        data = json.loads((folder / f"trials/{trial['number']:04d}/trial.json").read_text())["counters"]
        hit = data["after"]["blks_hit"] - data["before"]["blks_hit"]
        read = data["after"]["blks_read"] - data["before"]["blks_read"]
        assert trial["metrics"]["database_hit_ratio"] == hit / (hit + read)


def test_estimates_equal_a_hand_count_on_the_transactions(folder: Path, verdict: dict[str, Any]) -> None:
    trial = verdict["trials"][0]
    rows = np.load(folder / "trials/0001/measure/transactions.npy")
    summary = json.loads((folder / "trials/0001/measure/summary.json").read_text())
    seconds = (summary["ended_ns"] - summary["started_ns"]) / 1e9
    assert trial["metrics"]["throughput_per_second"] == pytest.approx(len(rows) / seconds)
    assert trial["metrics"]["run_time_seconds_per_100"] == pytest.approx(100 * seconds / len(rows))
    latency = np.sort(rows["end_ns"] - rows["planned_ns"])
    assert trial["metrics"]["latency_ns_p50"] == latency[int(np.ceil(len(rows) / 2)) - 1]
    assert trial["latency_ns"]["all"]["count"] == len(rows)


def test_the_verdict_reads_as_promised(verdict: dict[str, Any]) -> None:
    line = words.headlines(verdict)[0]
    assert line.startswith("shared_buffers 64 MiB")
    assert "best; 1024 MiB is 1.3" in line
    assert "x slower [" in line
    lines = terminal_lines(verdict, "runs/x/report/index.html", "plimsoll run buffer-cache --set target.dsn=…")
    assert " ".join(text.strip() for text in lines).startswith(line)
    assert len(lines) <= LINES_MAX
    assert "Report: runs/x/report/index.html" in lines
    assert lines[-1].endswith("target.dsn=…")
    for answer in ("How sure: from 5 blocks; ratios from 1.", "Why: ", "Next: Set shared_buffers to ", "Caveats: "):
        assert any(text.startswith(answer) for text in lines), answer


def test_the_terminal_says_what_is_held_twice_in_fifteen_lines(tmp_path: Path, verdict: dict[str, Any]) -> None:
    wide = analyse(open_run(make(tmp_path / "run", Shape(sizes=(0.5, 1.0, 2.0), faults=("failed", "lost")))))
    own = "plimsoll run buffer-cache --set target.dsn=…"
    lines, many = (terminal_lines(found, "runs/x/report/index.html", own) for found in (verdict, wide))
    assert max(len(lines), len(many)) <= LINES_MAX
    assert any("In both caches, most at shared_buffers " in line and " MB of the database" in line for line in lines)
    assert any(line.startswith("Why: peak swap, MiB") for line in lines), "what differs most stands first"


def test_the_verdict_is_plain_json_and_pure(folder: Path, verdict: dict[str, Any]) -> None:
    assert json.dumps(analyse(open_run(folder)), allow_nan=False) == json.dumps(verdict, allow_nan=False)


def test_the_hit_ratio_rises_and_swap_shows(verdict: dict[str, Any]) -> None:
    levels = verdict["comparisons"][0]["levels"]
    metrics = [verdict["treatments"][level["treatment"]]["metrics"] for level in levels]
    ratios = [row["database_hit_ratio"]["value"] for row in metrics]
    assert ratios == sorted(ratios)
    assert metrics[0]["swap_bytes_max"]["value"] == 0
    assert metrics[-1]["swap_bytes_max"]["value"] > 300 * 2**20


def test_what_must_not_enter_is_listed_with_its_reason(tmp_path: Path) -> None:
    found = analyse(open_run(make(tmp_path / "run", Shape(faults=("failed", "filling", "generator")))))
    reasons = {row["trial"]: " ".join(row["reasons"]) for row in found["exclusions"]}
    assert "failed: the server closed the connection" in reasons[2]
    assert "the load generator was saturated" in reasons[4]
    assert "still filling" in reasons[5]
    assert found["generator"]["blocked_trials"] == [4]
    used = {number for entry in found["treatments"].values() for number in entry["trials"]}
    assert not used & set(reasons)


@pytest.mark.parametrize("width", [60, 118])
def test_the_terminal_cuts_no_reason_before_its_end(tmp_path: Path, width: int) -> None:
    run = open_run(make(tmp_path / "run", Shape(caches=(64, 1024), blocks=1)))
    reason = "the server says operator is not unique: unknown + unknown; " + "in this mode " * 12 + "set workload.mode"
    _edit(run.trials[0].path / "trial.json", status="failed", reason=reason)
    text = " ".join(line.strip() for line in terminal_lines(analyse(open_run(run.path)), "x", width=width))
    assert reason in text


@pytest.mark.parametrize(
    ("where", "fields", "reason"),
    [
        ("trial.json", {"status": "failed", "reason": "crash", "group": {"oom_kills": 2}}, "out-of-memory killer: 2"),
        ("trial.json", {"checks": [{"name": "sum of balances", "ok": False}]}, "sum of balances"),
        ("measure/summary.json", {"verification": {"checked": 9, "wrong": 1}}, "1 of 9 checked answers were wrong"),
        ("measure/summary.json", {"identity": {"planned": 9, "done": 7, "failed": 1}}, "accounting does not add up"),
    ],
)
def test_wrong_trials_do_not_enter(tmp_path: Path, where: str, fields: dict[str, Any], reason: str) -> None:
    run = open_run(make(tmp_path / "run", Shape(caches=(64, 1024), blocks=1)))
    _edit(run.trials[0].path / where, **fields)
    trial = open_run(run.path).trials[0]
    assert reason in " ".join(admit(trial, estimates(trial)).reasons)


@pytest.mark.parametrize(
    ("extra", "beside", "ok"),
    [(0, None, True), (8, None, None), (999, None, False), (3, 3, True), (4, 3, False), (-1, None, False)],
)
def test_commits_equal_the_done_transactions(tmp_path: Path, extra: int, beside: int | None, ok: bool) -> None:
    run = open_run(make(tmp_path / "run", Shape(caches=(64, 1024), blocks=1)))
    place = run.trials[0].path
    done = json.loads((place / "measure/summary.json").read_text())["identity"]["done"]
    _edit(place / "trial.json", counters={"before": {"xact_commit": 5}, "after": {"xact_commit": 5 + done + extra}})
    if beside is not None:
        _edit(place / "measure/summary.json", server_commits_beside=beside)
    assert check_commits(open_run(run.path).trials[0])["ok"] is ok


def test_commits_beside_the_load_are_the_same_in_every_trial() -> None:
    found = [{"ok": None, "excess": excess, "connections": 8, "lost": 0} for excess in (18, 18, 19)]
    settle_commits(found)
    assert [commits["ok"] for commits in found] == [True, True, False]
    alone = [{"ok": None, "excess": 18, "connections": 8, "lost": 0}]
    settle_commits(alone)
    assert alone[0]["ok"] is None


def test_too_few_blocks_give_no_verdict(tmp_path: Path) -> None:
    found = analyse(open_run(make(tmp_path / "run", Shape(blocks=2))))
    assert found["comparisons"][0]["grade"] == "none"
    assert words.headlines(found)[0].startswith("shared_buffers: no verdict from fewer than three common blocks")
    assert all(level["low"] is None for level in found["comparisons"][0]["levels"])


def test_each_database_size_is_a_comparison_of_its_own(tmp_path: Path) -> None:
    found = analyse(open_run(make(tmp_path / "run", Shape(sizes=(0.5, 2.0), caches=(64, 256, 1024)))))
    assert [row["at"] for row in found["comparisons"]] == [
        {"workload.size": "0.5 x memory"},
        {"workload.size": "2 x memory"},
    ]
    assert all("(at database size" in line for line in words.headlines(found))


def test_a_run_without_records_still_has_a_verdict(tmp_path: Path) -> None:
    run = open_run(make(tmp_path / "run", Shape(blocks=1, caches=(64, 1024))))
    for trial in run.trials:
        for file in trial.path.rglob("*.*"):
            file.unlink()
    found = analyse(open_run(run.path))
    assert len(found["exclusions"]) == 3
    assert words.headlines(found)[0] == "shared_buffers: no verdict, because no trial could be used"


def test_a_run_of_equals_says_its_spread(tmp_path: Path) -> None:
    found = analyse(open_run(make(tmp_path / "run", Shape(caches=(256,), blocks=5))))
    assert found["comparisons"] == []
    assert words.headlines(found)[0].startswith("A/A: equal trials of this run differ by a ratio")
    assert found["a_a"]["within_run"]["blocks"] == 5


def test_levels_that_are_not_neighbours_are_listed(verdict: dict[str, Any]) -> None:
    comparison = json.loads(json.dumps(verdict["comparisons"][0]))
    comparison["best_set"] = ["64 MiB", "512 MiB"]
    assert headline(comparison).startswith("shared_buffers 64 MiB, 512 MiB: indistinguishable best")


def test_runs_that_differ_in_what_is_checked_are_refused(folder: Path) -> None:
    run: Run = open_run(folder)
    difference = {"key": "kernel.release", "a": "6.1", "b": None}
    with pytest.raises(NotComparable, match=r"kernel\.release: 6\.1 against nothing"):
        compare_runs(run, run, [difference])
    found = compare_runs(run, run, [difference], accept=True)
    assert all(row["ratio"] == pytest.approx(1) for row in found["treatments"])
    text = " ".join(" ".join(comparison_lines(found)).split())
    assert "not interleaved" in text
    assert "kernel.release" in text


def test_small_parts() -> None:
    assert cpu_list("0-2,5") == [0, 1, 2, 5]
    assert cpu_list("all") is None
    assert percentile(np.arange(100.0), 0.5) == 49
    assert percentile(np.arange(100.0), 0.95) is None


# --- whose reads ------------------------------------------------------------------------------------------------------


def _plant_neighbour(trial: Path) -> None:
    """Another user of the device reads ever more from the warm-up's begin on; the group tells what it read itself."""
    seconds = 0
    for segment in (trial / "warmup", trial / "measure"):
        device = np.load(segment / "device.npy")
        _tell_own(segment, 10**9 + 512 * device["read_sectors"])
        at = seconds + np.arange(len(device))
        others = 3e6 * (at - 30 * (1 - np.exp(-at / 30)))
        device["read_sectors"] += np.round(others).astype(device["read_sectors"].dtype)
        np.save(segment / "device.npy", device)
        seconds = int(at[-1]) + 1


def _tell_own(segment: Path, own: np.ndarray) -> None:
    group = np.load(segment / "group.npy")
    told = np.empty(len(group), [*group.dtype.descr, ("io_read_bytes", "<i8")])
    for name in group.dtype.names:
        told[name] = group[name]
    told["io_read_bytes"] = own
    np.save(segment / "group.npy", told)


def test_a_trial_whose_neighbour_reads_stays_in_and_the_page_says_whose_reads_were_looked_at(tmp_path: Path) -> None:
    run = make(tmp_path / "run", Shape(blocks=3))
    trial = run / "trials/0001"
    groups = {place: np.load(place) for place in trial.glob("*/group.npy")}
    _plant_neighbour(trial)
    found = analyse(open_run(run))
    first = found["trials"][0]
    assert first["admitted"], first["reasons"]
    assert stationary.GROUP_READS in first["stationary"]["detail"]["series"]
    others = len(found["trials"]) - 1
    whose = f"reads of the server's own group in 1 trial, reads of all users of the devices in {others} trials"
    assert found["stationarity_test"].endswith(f"; here {whose}")
    for place, group in groups.items():  # as it was recorded before
        np.save(place, group)
    first = analyse(open_run(run))["trials"][0]
    assert not first["admitted"]
    assert "reads of all users of the devices were still changing" in first["reasons"][0]
