"""Trials that failed are done again where that is asked for, whatever is killed, and say so."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.admission import AGAIN, admit
from plimsoll.cli import execute
from plimsoll.record import open_run
from plimsoll.run.refusals import StoodStill, TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.trial import again
from plimsoll.run.trial.log import TrialLog

made = runpy.run_path(str(Path(__file__).with_name("test_repeat.py")))["made"]
_WINDOWS = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
made_windows, world, statuses = (_WINDOWS[name] for name in ("made", "world", "statuses"))


class Killed(BaseException):
    """SIGKILL, as far as a process can tell of it."""


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A run of six trials, of which the second and the fifth failed; from then on they do not."""
    is_well: list[bool] = []

    def work(log: TrialLog) -> None:
        if log.trial.number in (2, 5) and not is_well:
            raise TrialFailed(f"the disk was full in {log.trial.number}")

    runner = made(tmp_path, monkeypatch, work)
    assert runner.run() == "finished" and statuses(runner)[1] == statuses(runner)[4] == "failed"
    is_well.append(True)
    return runner


def test_a_failure_is_a_result_unless_it_is_asked_to_be_done_again(failing: Runner) -> None:
    assert failing.left == [] and failing.run() == "finished" and statuses(failing)[1] == "failed"
    assert failing.do_again() == 2 and [trial.number for trial in failing.left] == [2, 5]
    assert statuses(failing)[1] == "failed", "nothing was done yet"
    assert failing.run() == "finished"
    assert statuses(failing) == ["finished"] * 6 and failing.left == []
    run = open_run(failing.out)
    assert run.trials[1].data["again"] == {"left": ["0002.before-1"], "why": ["the disk was full in 2"]}
    assert "again" not in run.trials[0].data
    assert (failing.out / "trials/0002.before-1/trial.json").exists()
    assert [event["trials"] for event in run.events() if event["event"] == "again"] == [[2, 5]]
    assert failing.do_again() == 0


@pytest.mark.parametrize("kills", [0, 1])
def test_a_kill_while_they_are_set_aside_loses_none(
    failing: Runner, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    renamed: list[Path] = []
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if again.BEFORE in target.name:
            if len(renamed) == kills:
                raise Killed
            renamed.append(target)
        return rename(self, target)

    failing.do_again()
    with monkeypatch.context() as until, pytest.raises(Killed):
        until.setattr(Path, "rename", killed)
        failing.run()
    assert statuses(failing).count("failed") == 2 - kills
    assert failing.do_again() == 2 - kills and len(failing.left) == 2
    assert failing.run() == "finished" and statuses(failing) == ["finished"] * 6


def test_the_verdict_says_of_one_that_it_was_done_later(failing: Runner) -> None:
    failing.do_again()
    failing.run()
    trial = open_run(failing.out).trials[1]
    (trial.path / "measure").mkdir()
    (trial.path / "measure/summary.json").write_text('{"format": 1, "identity": {"planned": 9, "done": 9}}')
    assert AGAIN in admit(trial, {}).caveats


def test_the_end_of_a_run_says_which_failed_and_what_to_do() -> None:
    said = execute._failed_words([2, 5], Path("/runs/one"))
    assert said.startswith("trials 2, 5 have failed") and said.endswith("./plimsoll run --resume --again /runs/one")


@pytest.mark.parametrize("failed", [2, 10])
def test_in_windows_the_block_is_done_again_whole_whatever_time_is_left(
    made_windows: Any, world: Any, failed: int
) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == ("window 3", failed):
            raise TrialFailed("no space left")

    world.hook = hook
    runner = made_windows("design.stop=never", "design.minutes=1000")
    assert runner.run() == "finished"
    world.hook = lambda _what, _number: None
    world.done.clear()
    runner = made_windows("design.stop=never", "design.minutes=0.000001")
    first = 4 * ((failed - 1) // 4) + 1
    assert runner.do_again() == 1 and [trial.number for trial in runner.left] == list(range(first, first + 4))
    assert runner.run() == "finished" and statuses(runner) == ["finished"] * 12
    assert [number for _, number in world.of("open")] == list(range(first, first + 4))
    told = [open_run(runner.out).trials[number - 1].data["again"]["why"] for number in (failed, first + 2)]
    assert told == [["no space left"], [None]]


def test_a_server_that_stood_still_gets_no_other_chance(made_windows: Any, world: Any) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == ("window 3", 2):
            raise StoodStill("not ended", 31)

    world.hook = hook
    runner = made_windows()
    assert runner.run() == "finished" and statuses(runner)[1] == "failed"
    assert runner.do_again() == 0 and runner.left == []
