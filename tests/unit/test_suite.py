"""What ./test runs: lanes that hold each test once, a matrix in turn, what a change touches, and the sum of it."""

from __future__ import annotations

import sys
import threading
import time
from itertools import product
from pathlib import Path

import pytest

import suite
import touched
from matrix import Case, in_turn

ROOT = Path(__file__).parents[2]


def test_the_lanes_hold_every_file_of_tests() -> None:
    watching = [path for paths in suite.LANES.values() for path in paths]
    assert len(set(watching)) == len(watching)
    lanes = [ROOT / path for path in (*suite.COMPUTED, *watching)]
    assert all(lane.exists() for lane in lanes)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "inside" not in path.parts]
    assert len(files) > 100
    assert [path for path in files if not any(path.is_relative_to(lane) for lane in lanes)] == []


def test_what_ends_a_lane_ends_all_that_its_command_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    # As cargo does: it waits for what it started, and does not pass Ctrl-C on.
    parent = "import pathlib, subprocess, sys; child = subprocess.Popen(['sleep', '60']); "
    parent += f"pathlib.Path({str(pid)!r}).write_text(str(child.pid)); child.wait()"
    lane = suite.Lane("one", [[sys.executable, "-c", parent], ["false"]])
    running = threading.Thread(target=lane.run)
    running.start()
    until = time.monotonic() + 20
    while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    lane.end()
    running.join(20)
    assert not running.is_alive()
    while not (gone := not Path("/proc", pid.read_text()).exists()) and time.monotonic() < until:
        time.sleep(0.01)
    assert gone


def test_a_command_that_hangs_is_ended_and_fails_its_lane() -> None:
    lane = suite.Lane("one", [["sh", "-c", "echo begun; sleep 60"], ["echo", "the next one"]])
    began = time.monotonic()
    suite.together([lane], 0.5)
    assert lane.failed and time.monotonic() - began < 30
    begun, _, ended, after = lane.said.splitlines()
    assert (begun, after) == ("begun", "the next one") and ended.startswith("ended, for it had not after")


def _matrix(test: str, file_systems: int = 3, ways: int = 2, every: bool = False) -> list[Case]:
    points = product(range(file_systems), range(ways))
    return [Case(test, {"file_system": place, "paths": way}, every) for place, way in points]


def test_each_test_of_a_matrix_is_taken_once_and_all_points_have_a_share() -> None:
    cases = [case for number in range(300) for case in _matrix(f"test {number}")]
    taken = [case for case, wanted in zip(cases, in_turn(cases), strict=True) if wanted]
    assert [case.test for case in taken] == [f"test {number}" for number in range(300)]
    shares = [sum(case.place == point.place for case in taken) for point in _matrix("")]
    assert sum(shares) == 300 and min(shares) > 25


def test_one_that_depends_on_the_file_system_is_taken_on_each_with_both_ways_among_them() -> None:
    cases = _matrix("a test", every=True)
    taken = [case.place for case, wanted in zip(cases, in_turn(cases), strict=True) if wanted]
    assert sorted(place["file_system"] for place in taken) == [0, 1, 2]
    assert {place["paths"] for place in taken} == {0, 1}


def test_what_has_no_matrix_is_always_taken() -> None:
    assert in_turn([Case("a", {}), Case("b", {}), Case("b c", {})]) == [True] * 3


KNOWN = {
    "plimsoll-record": set(),
    "plimsoll-probe": {"plimsoll-record"},
    "plimsoll-keys": set(),
    "plimsoll-agent": {"plimsoll-probe", "plimsoll-keys"},
}


@pytest.mark.parametrize(
    ("changed", "paths", "packages", "full"),
    [
        (["docs/run.md"], {"tests/unit/test_documents.py"}, set(), False),
        (
            ["python/plimsoll/analysis/statistics/usl.py"],
            {"tests/unit", "tests/golden", "tests/flow/test_pipeline.py"},
            set(),
            False,
        ),
        (
            ["crates/probe/src/sync/mod.rs"],
            {"tests/known", "tests/guest", "tests/flow", "tests/unit/test_faults.py"},
            {"plimsoll-probe", "plimsoll-agent"},
            True,
        ),
        (
            ["crates/record/src/lib.rs"],
            {"tests/known", "tests/flow", "tests/unit/test_faults.py"},
            set(KNOWN) - {"plimsoll-keys"},
            False,
        ),
        (["tests/faults/faults.toml"], {"tests/faults", "tests/unit/test_faults.py"}, set(), False),
        (["tests/known/test_sync.py"], {"tests/known/test_sync.py"}, set(), False),
        (["tests/known/page_oracle.py"], {"tests/known"}, set(), False),
        (["python/plimsoll/environment/memory/swap.py"], {"tests"}, set(), True),
        (["setup/setup"], {"tests"}, set(KNOWN), True),
        (["a new folder/file.c", "docs/run.md"], {"tests"}, set(KNOWN), True),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_a_change_touches(changed: list[str], paths: set[str], packages: set[str], full: bool) -> None:
    plan = touched.of(changed, KNOWN)
    assert (set(plan.paths), set(plan.packages), plan.full_matrix) == (paths, packages, full)
    assert plan.told


def test_a_lane_gets_what_of_the_plan_lies_in_it() -> None:
    plan = touched.Plan(paths=("tests/flow", "tests/known/test_sync.py"))
    assert plan.below(suite.COMPUTED) == []
    assert plan.below(("tests/known",)) == ["tests/known/test_sync.py"]
    assert plan.below(("tests/flow",)) == ["tests/flow"]
    assert plan.below(("tests",)) == ["tests/flow", "tests/known/test_sync.py"]
    assert touched.everything().below(("tests/known", "tests/guest")) == ["tests/guest", "tests/known"]


def test_each_rule_names_paths_that_are_there() -> None:
    for start, tests in touched.RULES:
        assert (ROOT / start).exists(), start
        assert all((ROOT / test).exists() for test in tests), start
    assert set(touched.packages()) == {f"plimsoll-{folder.name}" for folder in (ROOT / "crates").iterdir()}


def test_ends_of_runners_are_added_up() -> None:
    said = (
        "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s\n"
        "FAILED tests/a.py::b - assert 7 failed in 9.0s\n"
        "3 failed, 40 passed, 1 skipped, 5 deselected in 12.10s (0:00:12)\n"
        "1 error in 0.10s\n"
    )
    assert suite.counts([suite.Lane("a", [], said=said)]) == "52 passed, 4 failed, 3 skipped"


def test_a_lane_runs_all_its_commands_and_remembers_that_one_failed(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = suite.Lane("good", [["echo", "one"]]), suite.Lane("bad", [["false"], ["echo", "after"]])
    suite.together([good, bad, suite.Lane("empty", [])])
    assert (good.failed, bad.failed) == (False, True)
    said = capsys.readouterr().out
    assert "== good" in said and "one" in said and "after" in said and "empty" not in said


def test_a_stop_ends_the_lanes_that_are_at_work_and_begins_no_other(tmp_path: Path) -> None:
    """As Ctrl-C does, which comes while the lanes are looked at."""
    lanes = [suite.Lane(str(one), [["sh", "-c", f": > {tmp_path}/{one}; exec sleep 60"]]) for one in range(8)]

    def stop(*_: object) -> None:
        until = time.monotonic() + 20
        while len(list(tmp_path.iterdir())) < suite.AT_ONCE and time.monotonic() < until:
            time.sleep(0.01)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(suite, "_shown", stop)
        suite.together(lanes)
    assert time.monotonic() - began < 30
    assert len(list(tmp_path.iterdir())) == suite.AT_ONCE
