"""System calls and functions that changed: found where planted, none named between equals, and said when unknown."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plimsoll.analysis import compare_runs, compare_treatments
from plimsoll.analysis.breakdown.changes import whole_of
from plimsoll.analysis.runs.changes_many import confidence_of, ranked
from plimsoll.analysis.statistics.intervals import paired, unpaired
from plimsoll.record import open_run
from plimsoll.words.comparing.comparison import comparison_lines

_WORLD = runpy.run_path(str(Path(__file__).with_name("changes_world.py")))
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
add_to_run = _WORLD["add_to_run"]
Json = dict[str, Any]
SORT = ("backend", "main", "run", "sort")
SCAN = ("backend", "main", "run", "scan", "fetch")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two treatments in three blocks, without either probe."""
    shape = _MAKER["Shape"](caches=(64, 1024), measure_seconds=8, warmup_seconds=8)
    place: Path = _MAKER["make"](tmp_path_factory.mktemp("runs") / "bare", shape)
    return place


@pytest.fixture(scope="module")
def runs(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same load twice: in t2 of the second there is a sort, less of a scan, and twice the syncs."""
    first, second = (shutil.copytree(bare, tmp_path_factory.mktemp("runs") / name) for name in ("first", "second"))
    add_to_run(first, seed=1)
    add_to_run(second, {"t2": {("wal", "fdatasync"): 0.6}}, {"t2": {SORT: 6.0, SCAN: -2.0}}, seed=2)
    return first, second


def explained(first: Path, second: Path, treatment: str) -> Json:
    found = json.loads(json.dumps(compare_runs(open_run(first), open_run(second)), allow_nan=False))
    label = open_run(first).plan["treatments"][treatment]["label"]
    one: Json = next(one for one in found["explained"] if one["treatment"] == label)
    return one


def told(found: Json) -> dict[str, str]:
    names = {f"{row['name']} {row['part'] or ''}".strip(): row["word"] for row in found["rows"]}
    return {name: word for name, word in names.items() if word != "cannot tell"}


def test_planted_calls_are_found_and_no_others(runs: tuple[Path, Path]) -> None:
    calls = explained(*runs, "t2")["calls"]
    for what in ("time", "count"):
        assert told(calls[what]) == {"fdatasync wal": "more"}
        assert calls[what]["rows"][0]["name"] == "fdatasync"
    row = calls["count"]["rows"][0]
    assert row["difference"]["low"] < 0.6 < row["difference"]["high"]
    row = calls["time"]["rows"][0]
    assert row["difference"]["low"] < 0.6 * 300_000 < row["difference"]["high"]
    assert row["share"] == pytest.approx(1, abs=0.1)


def test_waiting_for_something_to_do_is_counted_and_in_no_time(runs: tuple[Path, Path]) -> None:
    calls = explained(*runs, "t2")["calls"]
    assert "epoll_wait" in {row["name"] for row in calls["count"]["rows"]}
    assert "epoll_wait" not in {row["name"] for row in calls["time"]["rows"]}
    assert calls["time"]["first"] < 1_000_000, "without its two milliseconds a call"


def test_planted_functions_are_found_and_no_others(runs: tuple[Path, Path]) -> None:
    found = explained(*runs, "t2")["functions"]
    unit = 1e9 / _WORLD["HZ"]
    assert told(found["own"]) == {"sort": "more", "fetch": "less"}
    sort = found["own"]["rows"][0]
    assert sort["difference"]["low"] < 6 * unit < sort["difference"]["high"]
    assert sort["stack"] == list(SORT)
    assert sum(row["difference"]["value"] for row in [*found["own"]["rows"], found["own"]["others"]]) == pytest.approx(
        found["total"]["value"]
    ), "by their own time functions add up"
    assert told(found["with_callees"]).items() >= {"sort": "more", "scan": "less", "fetch": "less"}.items()
    assert "main" not in told(found["with_callees"]), "everything is called by it"


def test_boxes_of_the_difference_lie_on_each_other_and_say_what_moved(runs: tuple[Path, Path]) -> None:
    boxes = explained(*runs, "t2")["functions"]["boxes"]
    words = {box["name"]: box["word"] for box in boxes}
    assert (words["sort"], words["fetch"], words["hash"]) == ("more", "less", "cannot tell")
    for box in boxes[1:]:
        below = [one for one in boxes if one["depth"] == box["depth"] - 1]
        assert any(one["from"] - 1e-6 <= box["from"] and box["to"] <= one["to"] + 1e-6 for one in below)
    roles = [box for box in boxes if box["depth"] == 1]
    assert sum(box["difference"] for box in roles) == pytest.approx(boxes[0]["difference"])


def test_between_equals_nothing_is_named(runs: tuple[Path, Path]) -> None:
    one = explained(*runs, "t1")
    lists = (one["calls"]["time"], one["calls"]["count"], one["functions"]["own"], one["functions"]["with_callees"])
    assert [told(found) for found in lists] == [{}] * 4
    assert {box["word"] for box in one["functions"]["boxes"]} == {"cannot tell"}


def test_two_treatments_of_a_run_are_set_against_each_other_within_blocks(runs: tuple[Path, Path]) -> None:
    found = compare_treatments(open_run(runs[1]), "t1", "t2")["explained"][0]
    assert told(found["functions"]["own"])["sort"] == "more"
    assert found["functions"]["own"]["rows"][0]["difference"]["blocks"] == 3
    assert told(found["calls"]["count"])["fdatasync wal"] == "more"


def test_the_terminal_has_them_in_eighty_columns(runs: tuple[Path, Path]) -> None:
    lines = comparison_lines(compare_runs(open_run(runs[0]), open_run(runs[1])))
    assert max(map(len, lines)) <= 80
    assert any(line.endswith("  fdatasync (wal)") for line in lines)
    place = next(place for place, line in enumerate(lines) if line.endswith("  sort"))
    assert lines[place + 1].strip() == "by run < main < backend"
    assert any(
        line.startswith("What changed of parts and wait events: not known: neither side has it") for line in lines
    )


def test_between_equals_a_list_names_something_in_at_most_one_of_twenty_worlds() -> None:
    """Twenty-five functions, three blocks, Poisson counts: 400 worlds in which nothing changed."""
    random, named, worlds = np.random.default_rng(20260101), 0, 400
    rates = 400 / (1 + np.arange(25))
    units = ({block: 1.0 for block in range(3)}, {block: 1.0 for block in range(3)})
    for _ in range(worlds):
        first, second = (
            {block: {(f"f{place}", ""): float(count) for place, count in enumerate(random.poisson(rates))}
             for block in range(3)}
            for _ in range(2)
        )  # fmt: skip
        sums = [{block: sum(one.values()) for block, one in side.items()} for side in (first, second)]
        found = ranked(first, second, whole_of(sums, True, None), True, units, 5.0)
        named += bool(told(found))
    assert named <= stats.binom.ppf(0.999, worlds, 0.05)


def test_the_confidence_of_a_list_leaves_out_what_the_procedure_does_not_reject() -> None:
    """Benjamini and Hochberg's own example of 15 p-values: four are rejected."""
    chances = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
    assert confidence_of([*chances, 0.7590, 1.0]) == pytest.approx(1 - 0.05 * 4 / 15)
    assert confidence_of([0.9, 0.8]) == pytest.approx(1 - 0.05 / 2)
    assert confidence_of([]) == pytest.approx(0.95)


def test_a_chance_is_that_of_the_t_test() -> None:
    one, two = [1.0, 2.0, 4.0, 3.0], [5.0, 9.0, 6.0, 7.5]
    within, between = paired([b - a for a, b in zip(one, two, strict=True)]), unpaired(one, two)
    assert within is not None and between is not None
    assert within.chance() == pytest.approx(stats.ttest_rel(two, one).pvalue)
    assert between.chance() == pytest.approx(stats.ttest_ind(two, one, equal_var=False).pvalue)
    few = paired([1.0, 1.0])
    assert few is not None and few.chance() == 1.0 and few.interval()["low"] is None
    same = paired([2.0, 2.0, 2.0])
    assert same is not None and same.chance() == 0.0


def test_no_difference_is_surer_than_the_count_of_its_samples() -> None:
    """Nine samples more in each block by chance alike: without the counting error it would be certain."""
    first = {block: {("f", ""): 100.0} for block in range(3)}
    second = {block: {("f", ""): 109.0} for block in range(3)}
    whole = whole_of([{block: 100.0 for block in range(3)}, {block: 109.0 for block in range(3)}], True, None)
    units = ({block: 1.0 for block in range(3)},) * 2
    assert told(ranked(first, second, whole, True)) == {"f": "more"}
    assert told(ranked(first, second, whole, True, units)) == {}


def test_two_blocks_have_no_interval(bare: Path, tmp_path: Path) -> None:
    two = shutil.copytree(bare, tmp_path / "two")
    add_to_run(two, {"t2": {("wal", "fdatasync"): 5.0}})
    for trial in open_run(two).trials:
        if trial.block == 3:
            summary = json.loads((trial.measure.path / "summary.json").read_text())
            summary["probes"]["syscalls"]["status"] = "refused"
            (trial.measure.path / "summary.json").write_text(json.dumps(summary))
    found = compare_treatments(open_run(two), "t1", "t2")["explained"][0]["calls"]
    assert told(found["count"]) == {}
    assert found["count"]["total"]["low"] is None


def test_what_is_not_in_the_record_is_said_with_what_to_do(bare: Path, tmp_path: Path) -> None:
    probed, refused = (shutil.copytree(bare, tmp_path / name) for name in ("probed", "refused"))
    add_to_run(probed)
    add_to_run(refused)
    for trial in open_run(refused).trials:
        summary = json.loads((trial.measure.path / "summary.json").read_text())
        summary["probes"]["syscalls"] = {"status": "refused", "reason": "no BTF", "remedy": "another kernel"}
        (trial.measure.path / "summary.json").write_text(json.dumps(summary))
    absent = explained(bare, probed, "t1")["absent"]
    assert absent["syscalls"] == "the first does not have it; set probes.syscalls = true and run again"
    assert absent["profile"] == "the first does not have it; set probes.profile = true and run again"
    assert explained(probed, bare, "t1")["absent"]["profile"].startswith("the second does not have it")
    assert explained(bare, bare, "t1")["absent"]["syscalls"].startswith("neither side has it")
    assert explained(probed, refused, "t1")["absent"]["syscalls"] == "the probe was refused: no BTF (another kernel)"
    assert explained(probed, refused, "t1")["functions"] is not None


def test_lost_events_make_lower_bounds(bare: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bare, tmp_path / "run")
    add_to_run(run)
    place = open_run(run).trials[0].measure.path / "summary.json"
    summary = json.loads(place.read_text())
    for name in ("syscalls", "profile"):
        summary["probes"][name]["lost"] = {"events": 7}
    place.write_text(json.dumps(summary))
    lines = comparison_lines(compare_treatments(open_run(run), "t1", "t2"))
    assert "    the probe lost events: these are lower bounds" in lines
    assert "    the probe lost samples: these are lower bounds" in lines


def test_names_of_functions_do_not_steer_the_terminal(bare: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bare, tmp_path / "run")
    add_to_run(run)
    for trial in open_run(run).trials:
        if trial.treatment == "t2":
            with (trial.measure.path / "profile.folded").open("a") as file:
                file.write("backend;main;\x1b[31mred 90000\n")
    text = "\n".join(comparison_lines(compare_treatments(open_run(run), "t1", "t2")))
    assert "\x1b" not in text
    assert "?[31mred" in text
