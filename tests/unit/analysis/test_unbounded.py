"""Percentiles without a bound are censored and not missing: what a level that stalls can win, lose and be said of."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse, compare_runs
from plimsoll.analysis.comparing.evidence import by_trials
from plimsoll.analysis.comparing.levels import Group, compare_levels
from plimsoll.analysis.comparing.unbounded import compare
from plimsoll.analysis.metrics import METRICS
from plimsoll.analysis.runs.runs import compare_treatments
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.report.every_run.levels import level_tables
from plimsoll.words.comparing.comparison import comparison_lines
from plimsoll.words.levels import headline
from plimsoll.words.terminal import terminal_lines

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_open.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
P99 = "latency_ns_p99"
MS = 1e6
REPEATS = 4000
Cells = dict[str, list[float | None]]


def judged(cells: Cells, least_ms: float = 100.0, floor: float = 0.0) -> dict[str, Any]:
    """A comparison of levels by p99, a value (ms) a block; None: unbounded, at least so long."""
    used = {
        (block, name): {
            "number": 10 * block + place,
            "metrics": {P99: None if value is None else value * MS},
            "unbounded": {P99: least_ms * MS} if value is None else None,
        }
        for place, (name, values) in enumerate(cells.items())
        for block, value in enumerate(values, 1)
    }
    names = tuple(cells)
    group = Group("x", "setting", None, treatments=names, levels=names, values=names)
    return compare_levels(group, used, {}, METRICS[P99], 0.05, by_trials(floor))


def level(comparison: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in comparison["levels"] if one["level"] == name)
    return found


def test_a_level_that_stalls_does_not_win_by_it() -> None:
    """The example of the review: 9 ms in three blocks, and two without a bound, against 10 ms in all five."""
    found = judged({"A": [10.0, 10.1, 9.9, 10.0, 10.05], "B": [9.0, 9.1, None, 8.9, None]})
    assert found["reference"] == "A"
    assert level(found, "A")["verdict"] == "best estimate"
    mine = level(found, "B")
    assert mine["verdict"] == "cannot tell"
    assert mine["unbounded"] == {"blocks": 2, "of": 5}
    assert mine["blocks"] == 5
    assert (mine["low"], mine["high"]) == (None, None)
    slower = mine["times_slower"]
    assert (slower["bound"], slower["high"], slower["blocks"]) == ("at least", None, 5)
    assert slower["ratio"] == pytest.approx((0.9**3 * 10**2) ** 0.2, rel=0.01)
    line = headline(found)
    assert "B: unbounded in 2 of 5 blocks, at least 2.36 x longer [" in line
    assert ": best" not in line
    assert [pair["bound"] for pair in found["pairs"]] == ["at least"]
    json.dumps(found, allow_nan=False)


def test_unbounded_in_every_block_is_worst() -> None:
    found = judged({"A": [10.0, 10.2, 9.9], "B": [None] * 3, "C": [12.0, 12.1, 12.2]})
    assert level(found, "B")["verdict"] == "worse"
    assert found["best_set"] == ["A"]
    assert headline(found).startswith("setting A: best; B is worst: unbounded in all 3 blocks, at least 9.9")


def test_a_late_limit_close_by_does_not_hide_that_every_block_is_unbounded() -> None:
    found = judged({"A": [10.0, 10.2, 9.9], "B": [None] * 3}, least_ms=10.1, floor=0.3)
    assert level(found, "B")["verdict"] == "worse"
    assert found["pairs"][0]["verdict"] == "worse"


def test_worse_in_the_bounded_blocks_is_not_made_doubtful_by_the_others() -> None:
    found = judged({"A": [10.0, 10.2, 9.9, 10.0, 10.1], "B": [16.0, 16.2, None, 16.1, None]}, least_ms=5000.0)
    slower = level(found, "B")["times_slower"]
    assert level(found, "B")["verdict"] == "worse"
    assert slower["low"] > 1
    assert "B is at least 1.60 x longer [1.5" in headline(found)
    assert "no bound] (unbounded in 2 of 5 blocks)" in headline(found)


def test_each_unbounded_somewhere_has_no_ratio() -> None:
    found = judged({"A": [10.0, None, 9.9, 10.0], "B": [12.0, 12.2, 12.1, None]})
    assert [one["verdict"] for one in found["levels"]] == ["best estimate", "cannot tell"]
    assert found["pairs"][0]["ratio"] is None
    assert found["pairs"][0]["bound"] == "unknown"


def test_no_level_with_a_bound_is_no_verdict() -> None:
    found = judged({"A": [None] * 3, "B": [None] * 3})
    assert headline(found).startswith("setting: no verdict, latency p99 is unbounded in every block")


@pytest.mark.parametrize("blocks", [3, 5, 10])
@pytest.mark.parametrize("stalls", [0.05, 0.2, 0.5])
def test_equals_that_stall_are_seldom_told_apart(blocks: int, stalls: float) -> None:
    random = np.random.default_rng([20251122, blocks, int(100 * stalls)])
    logs, beyond = random.normal(0, 0.05, (REPEATS, blocks, 2)), random.random((REPEATS, blocks, 2)) < stalls
    told = compare(np.where(beyond, -2.0, logs)[:, None], beyond).beaten.any((-1, -2))
    assert told.mean() <= 0.055


def test_the_level_that_never_stalls_is_protected() -> None:
    random = np.random.default_rng(20251122)
    logs = random.normal(0, 0.02, (REPEATS, 5, 2)) + np.array([0.0, 0.1])  # the second is faster, and stalls at times
    beyond = np.stack([np.zeros((REPEATS, 5), bool), random.random((REPEATS, 5)) < 0.4], -1)
    kept = ~compare(np.where(beyond, -1.0, logs)[:, None], beyond).beaten[:, 0].any(-1)
    assert kept.mean() >= 0.9  # where it stalled in none of five blocks (0.6 ** 5) nobody can know that it does


def _late(folder: Path, trials: tuple[int, ...], limit_ms: float) -> None:
    """Makes the 3 % of these trials' transactions that began latest such as were skipped as too late."""
    for number in trials:
        place = folder / f"trials/{number:04d}/measure"
        rows = np.load(place / "transactions.npy")
        lag = rows["start_ns"] - rows["planned_ns"]
        late = lag > np.quantile(lag, 0.97)
        rows["outcome"][late], rows["kind"][late] = 2, 255
        np.save(place / "transactions.npy", rows)
        summary = json.loads((place / "summary.json").read_text())
        skipped = int((rows["outcome"] == 2).sum())
        summary["identity"] |= {"done": len(rows) - skipped, "skipped": skipped}
        summary["schedule"]["late_limit_ms"] = limit_ms
        (place / "summary.json").write_text(json.dumps(summary))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rates in three blocks; the first was skipped too often in two of them."""
    found: Path = make(tmp_path_factory.mktemp("late") / "run", Shape(rates=(60.0, 120.0), seconds=20))
    first = [one for one in open_run(found).trials if one.planned["levels"]["schedule.rate"] == "60"]
    _late(found, tuple(one.number for one in first if one.block <= 2), 5000.0)
    return found


def test_a_record_with_unbounded_blocks(folder: Path) -> None:
    found = analyse(open_run(folder))
    mine = level(found["comparisons"][0], "60")
    assert mine["unbounded"] == {"blocks": 2, "of": 3}
    assert found["comparisons"][0]["reference"] == "120"
    trial = next(one for one in found["trials"] if one["unbounded"])
    assert trial["unbounded"][P99] == 5000 * MS  # the late limit, longer than any that was seen
    assert "latency_ns_p50" not in trial["unbounded"]
    entry = found["treatments"][mine["treatment"]]
    assert (entry["metrics"][P99]["unbounded"], entry["metrics"][P99]["low"]) == (2, None)
    assert entry["latency_ns"]["all"]["p99"] == entry["metrics"][P99]
    assert entry["latency_merged_ns"]["all"]["p99"]["bound"] == "at least"
    row = level_tables(found)[0]["rows"][0]
    assert row["judged"].startswith("at least ")
    assert row["slower"].startswith("at least ")
    assert row["why"] == "unbounded in 2 of 3 blocks"
    lines = " ".join(terminal_lines(found, "report/index.html"))
    assert "60: unbounded in 2 of 3 blocks" in lines
    assert "60 at least " in lines


def test_the_page_says_unbounded(folder: Path) -> None:
    text = write_report(folder).read_text()
    assert "unbounded in 2 of 3 blocks" in text
    assert "&gt; 5,000.00" in text or "> 5,000.00" in text
    assert "at least: unbounded in some block" in text


def test_an_open_loop_that_stood_still_throughout_is_not_left_out(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(rates=(60.0, 120.0), seconds=20))
    place = folder / "trials/0001/measure"
    rows = np.load(place / "transactions.npy")
    _late(folder, (1,), 5000.0)
    summary = json.loads((place / "summary.json").read_text())
    rows["outcome"], rows["kind"] = 2, 255
    np.save(place / "transactions.npy", rows)
    summary["identity"] |= {"done": 0, "skipped": len(rows)}
    (place / "summary.json").write_text(json.dumps(summary))
    for name in ("latency.npy", "latency_seconds.npy"):
        (place / name).unlink(missing_ok=True)
    trial = analyse(open_run(folder))["trials"][0]
    assert trial["unbounded"][P99] == 5000 * MS
    assert trial["reasons"] == []


def test_compare_keeps_unbounded_blocks(folder: Path, tmp_path: Path) -> None:
    run, other = open_run(folder), open_run(make(tmp_path / "run", Shape(rates=(60.0, 120.0), seconds=20)))
    between = {row["treatment"]: row for row in compare_runs(other, run)["treatments"]}
    row = next(row for row in between.values() if row.get("unbounded"))
    assert row["unbounded"] == [{"blocks": 0, "of": 3}, {"blocks": 2, "of": 3}]
    assert (row["bound"], row["high"], row["verdict"]) == ("at least", None, "cannot tell")
    assert row["ratio"] > 10
    back = next(row for row in compare_runs(run, other)["treatments"] if row.get("unbounded"))
    assert (back["bound"], back["low"]) == ("at most", None)
    assert back["verdict"] != "better"
    labels = [entry["label"] for entry in analyse(run)["treatments"].values()]
    within = compare_treatments(run, labels[1], labels[0])
    assert within["treatments"][0]["blocks"] == 3
    assert within["treatments"][0]["bound"] == "at least"
    assert "second unbounded in 2 of 3 blocks" in " ".join(" ".join(comparison_lines(within)).split())
