"""cgroup version 2 for real: every test of inside/ in one guest, each a result of its own here; and what it recorded.

The guest is booted once for all of them that were asked for, so one alone takes little more than itself.
"""

import ast
import tempfile
from pathlib import Path

import pytest
import user_mode_linux

from plimsoll.analysis import analyse
from plimsoll.environment import StateDir
from plimsoll.experiment import plan_trials
from plimsoll.experiment.reading.source import load
from plimsoll.record import compact, open_run
from plimsoll.run import datasets
from plimsoll.run.observer import Silent
from plimsoll.run.signals import Interrupts

ROOM = Path(__file__).with_name("inside")
NEEDS = ("user-mode-linux", "postgresql", "server user")
# Which test here judges what which test inside has recorded.
RECORDS = {
    "test_a_block_has_both_caches_and_names_its_refused_probes": "test_a_block_of_two_caches",
    "test_three_blocks_are_judged_and_what_enters_no_verdict_is_named": "test_three_blocks_of_two_caches",
}
SECONDS_MAX, SECONDS_MAX_LONG = 600, 1800  # of a hang; they take a quarter on two quiet cores


def _tests_inside() -> list[object]:
    """Every test of inside/, by file and name; those marked long are long here."""
    found: list[object] = []
    for file in sorted(ROOM.glob("test_*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                long = any("long" in ast.unparse(one) for one in node.decorator_list)
                marks = [pytest.mark.long] if long else []
                found.append(pytest.param(f"{file.name}::{node.name}", marks=marks, id=f"{file.stem}-{node.name}"))
    return found


def _settings() -> list[str]:
    """SETTINGS of the run inside, whose data set is built outside."""
    for node in ast.parse((ROOM / "test_buffer_cache.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SETTINGS":
            return ast.literal_eval(node.value)
    raise AssertionError("test_buffer_cache.py has no SETTINGS")


def _wanted(items) -> set[str]:
    """Of these items of pytest: what has to run inside for them."""
    here = [item for item in items if item.path == Path(__file__)]
    asked = {item.callspec.params["inside"] for item in here if "inside" in item.fixturenames}
    return asked | {f"test_buffer_cache.py::{RECORDS[name]}" for item in here if (name := item.originalname) in RECORDS}


@pytest.fixture(scope="module")
def guest_session(request, needs, tmp_path_factory):
    """(what came of the tests, the folder with what they left)"""
    needs(*NEEDS)
    wanted = _wanted(request.session.items)
    names = [str(ROOM.relative_to(user_mode_linux.ROOT) / one) for one in sorted(wanted)]
    folder = tmp_path_factory.mktemp("guest")
    # Not in pytest's own folder: the server's user, who builds the data set, cannot reach that.
    with tempfile.TemporaryDirectory(prefix="plimsoll-test-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        state = StateDir(Path(place)).prepare()
        if any("test_buffer_cache" in one for one in wanted):
            source = load("buffer-cache", quick=True, sets=_settings(), blocks=1)
            plan = plan_trials(source.experiment, source.treatments, 1)
            datasets.build_all(plan, state, Silent(), Interrupts(Silent()))
        is_long = any(item.get_closest_marker("long") for item in request.session.items if item.path == Path(__file__))
        seconds_max = SECONDS_MAX_LONG if is_long else SECONDS_MAX
        ended = user_mode_linux.run(names, seconds_max, folder / "kept", state.root)
    (folder / "transcript").write_text(ended.transcript)
    print(f"booted, tested and halted in {ended.seconds:.0f} s; transcript: {folder / 'transcript'}")
    return ended, folder


@pytest.mark.parametrize("inside", _tests_inside())
def test_inside(guest_session, inside):
    ended, folder = guest_session
    name = str(ROOM.relative_to(user_mode_linux.ROOT) / inside)
    told = f"{folder / 'transcript'}:\n{ended.transcript[-4000:]}"
    assert name in ended.results, f"did not end within {ended.seconds:.0f} s; {told}"
    result = ended.results[name]
    print(f"{result.seconds} s inside\n{result.text}")
    if result.outcome == "skipped":
        pytest.skip(result.text)
    assert result.outcome == "passed", f"{result.text}\n{told}"


def _judged(guest_session, blocks):
    """(the record, its verdict): the trials all finished in a group of version 2, and no probe in the kernel was."""
    ended, folder = guest_session
    record = folder / "kept" / f"blocks-{blocks}"
    assert record.is_dir(), ended.transcript[-4000:]
    run = open_run(record)
    assert [trial.status for trial in run.trials] == ["finished"] * 2 * blocks
    compact(record)
    verdict = analyse(run)
    for instrument in ("page_cache", "buffer_heads"):
        (refused,) = verdict["instruments"][instrument]["refused"]
        assert "no type information" in refused["reason"] and refused["trials"] == [*range(1, 2 * blocks + 1)]
    return run, verdict


def _excluded(verdict):
    """Trials left out: on one CPU and a busy host the load generator is the limit now and then, and nothing else is."""
    excluded = {one["trial"]: one["reasons"] for one in verdict["exclusions"]}
    assert all(one.startswith("the load generator was saturated") for reasons in excluded.values() for one in reasons)
    return excluded


def test_a_block_has_both_caches_and_names_its_refused_probes(guest_session):
    run, verdict = _judged(guest_session, 1)
    for trial, told in zip(run.trials, verdict["trials"], strict=True):
        print(told["metrics"])
        group = trial.data["group"]
        assert (group["version"], group["limit_bytes"], group["swap_limit_bytes"]) == (2, 96 << 20, 32 << 20)
        metrics = told["metrics"]
        assert 0 < metrics["database_hit_ratio"] < 1
        assert 0 < metrics["usage_bytes_max"] <= 96 << 20
        assert metrics["double_cached_bytes"] > 0
        assert metrics["page_cache_hit_ratio"] is None  # it is the refused probe's: absent, never 0
    (comparison,) = verdict["comparisons"]
    excluded = _excluded(verdict)
    assert comparison["blocks"] == (1 if len(excluded) < 2 else 0)
    assert comparison["grade"] == "none"  # one block gives no interval


@pytest.mark.long
def test_three_blocks_are_judged_and_what_enters_no_verdict_is_named(guest_session):
    run, verdict = _judged(guest_session, 3)
    excluded = _excluded(verdict)
    (comparison,) = verdict["comparisons"]
    print(excluded, comparison)
    whole = {1, 2, 3} - {trial.block for trial in run.trials if trial.number in excluded}
    assert comparison["grade"] == ("indicative" if len(whole) == 3 else "none")
    assert len(excluded) == 6 or comparison["best_set"]
    for level in comparison["levels"]:
        entered = [one for one in run.trials if one.treatment == level["treatment"] and one.number not in excluded]
        assert level["blocks"] == len(level["points"]) == len(entered)
        assert (level["low"] is not None) is (len(entered) == 3)  # three blocks give an interval, fewer none
