"""Trials that time would mend are done again: once, within their block, within the budget; others stand."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.analysis.admission import STEAL_DISTURBS, admit
from plimsoll.analysis.admission_stationary import FILLING
from plimsoll.analysis.workloads import of_trial
from plimsoll.environment import StateDir
from plimsoll.experiment import load
from plimsoll.record import Trial, open_run
from plimsoll.run import one_trial
from plimsoll.run import runner as of_runner
from plimsoll.run.observer import Silent
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.trial import repeat
from plimsoll.run.trial.log import TrialLog

EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[warmup]
seconds_min = 5
seconds_max = 20
[measure]
seconds = 1
[design]
blocks = 3
{design}
[[factors]]
path = "workload.clients"
levels = [1, 2]
"""
SYNTHETIC = Path(__file__).parents[2] / "golden" / "synthetic" / "trials" / "0001"
Work = Callable[[TrialLog], None]


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, work: Work, design: str = "") -> Runner:
    """A runner whose trials do `work` on no server at all."""
    (folder / "experiment.toml").write_text(EXPERIMENT.format(design=design))
    monkeypatch.setattr(Runner, "_servers", lambda _: contextlib.nullcontext(lambda _log: None))
    monkeypatch.setattr(one_trial, "run_trial", lambda _runner, log, _server: work(log))
    monkeypatch.setattr(Runner, "_has_tables", lambda *_: False)
    monkeypatch.setattr(of_runner, "fingerprint", lambda *_, **__: {})
    for one in ("obstacles", "remarks"):
        monkeypatch.setattr(of_runner.obstacles, one, lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "refusals", lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "missing_bytes", lambda *_: [])
    state = StateDir(folder / "state")
    return Runner(load(str(folder / "experiment.toml")), folder / "run", state, Silent(), [], 1)


def filling_first(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """These trials are still filling at their first attempt, and at any other."""

    def found(trial: Trial) -> list[str]:
        return [f"{FILLING}by the test"] if trial.data["number"] in numbers else []

    monkeypatch.setattr(repeat, "curable", found)


def test_a_trial_that_was_filling_is_done_once_more_at_once_with_a_longer_warmup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, float, float]] = []

    def work(log: TrialLog) -> None:
        warmup = log.trial.treatment.settings.warmup
        seen.append((log.trial.number, warmup.seconds_min, warmup.seconds_max))
        log.facts["stationary"] = {"reached": True, "seconds": 8.0}

    filling_first(monkeypatch, 3)
    runner = made(tmp_path, monkeypatch, work)
    assert runner.run() == "finished"
    assert [number for number, *_ in seen] == [1, 2, 3, 3, 4, 5, 6], "within its block, and the second attempt stands"
    assert seen[2:4] == [(3, 5, 20), (3, 16, 40)]
    run = open_run(runner.out)
    assert len(run.trials) == 6
    told = run.trials[2].data["repeated"]
    assert told["attempt"] == 2
    assert told["left"] == ["0003.attempt-1"]
    assert told["why"] == [f"{FILLING}by the test"]
    assert "repeated" not in json.loads((runner.out / "trials" / "0003.attempt-1" / "trial.json").read_text())
    assert all("repeated" not in trial.data for trial in run.trials if trial.number != 3)


@pytest.mark.parametrize(("design", "most"), [("", 2), ("repeat_share_max = 0", 0), ("repeat_share_max = 0.01", 1)])
def test_no_more_than_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, design: str, most: int) -> None:
    seen: list[int] = []
    filling_first(monkeypatch, *range(1, 7))
    runner = made(tmp_path, monkeypatch, lambda log: seen.append(log.trial.number), design)
    assert runner.run() == "finished"
    assert len(seen) == 6 + most
    assert sum("repeated" in trial.data for trial in open_run(runner.out).trials) == most


def test_a_run_that_goes_on_knows_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def work(log: TrialLog) -> None:
        seen.append(log.trial.treatment.settings.warmup.seconds_max)
        if len(seen) == 2:
            raise Stopped

    filling_first(monkeypatch, 1)
    runner = made(tmp_path, monkeypatch, work)
    assert runner.run() == "stopped"
    assert runner.run() == "finished"
    assert seen[:4] == [20, 40, 40, 20]
    assert open_run(runner.out).trials[0].data["repeated"]["attempt"] == 2


class Killed(BaseException):
    """SIGKILL, as far as a process can tell of it."""


@pytest.mark.parametrize("place", ["result", "choice", "rename"])
def test_a_kill_between_a_result_and_the_choice_leaves_the_choice_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    seen: list[int] = []
    filling_first(monkeypatch, 2)
    runner = made(tmp_path, monkeypatch, lambda log: seen.append(log.trial.number))

    def killed_after(real: Callable[..., object], *, is_done: bool = True) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            found = real(*given, **named) if is_done or seen != [1, 2] else None
            if seen == [1, 2]:
                raise Killed
            return found

        return call

    if place == "result":
        monkeypatch.setattr(runner, "_write", killed_after(runner._write))
    elif place == "choice":
        monkeypatch.setattr(repeat, "set_aside", killed_after(repeat.set_aside, is_done=False))
    else:
        monkeypatch.setattr(Path, "rename", killed_after(Path.rename, is_done=False))
    with pytest.raises(Killed):
        runner.run()
    assert json.loads((runner.out / "trials/0002/trial.json").read_text())["status"] == "finished"
    monkeypatch.undo()
    filling_first(monkeypatch, 2)
    again = made(tmp_path, monkeypatch, lambda log: seen.append(log.trial.number))
    assert [trial.number for trial in again.left] == [2, 3, 4, 5, 6]
    assert again.run() == "finished"
    assert seen == [1, 2, 2, 3, 4, 5, 6], "it is done again once, as it would have been without the kill"
    assert open_run(again.out).trials[1].data["repeated"]["left"] == ["0002.attempt-1"]
    assert again.left == [] and not (again.out / "trials/0002/repeat.json").exists()


def test_a_trial_that_stands_after_a_kill_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    runner = made(tmp_path, monkeypatch, lambda log: seen.append(log.trial.number))
    assert runner.run() == "finished"
    repeat.leave_open(runner.out, 4)
    assert [trial.number for trial in runner.left] == [4]
    assert runner.run() == "finished"
    assert seen == [1, 2, 3, 4, 5, 6] and runner.left == []


def _record(folder: Path, **more: object) -> Trial:
    """A made-up trial that enters its verdict, with something else about it."""
    shutil.copytree(SYNTHETIC, folder)
    told = json.loads((folder / "trial.json").read_text()) | more
    (folder / "trial.json").write_text(json.dumps(told))
    return Trial(folder, {})


def test_what_time_cures_and_what_it_does_not(tmp_path: Path) -> None:
    assert repeat.curable(_record(tmp_path / "well")) == []
    cold = {"cache_blocks": 10**9, "data_blocks": 10**9, "read_before": 0, "block_bytes": 8192}
    found = repeat.curable(_record(tmp_path / "cold", cache=cold))
    assert len(found) == 1
    assert found[0].startswith(FILLING)
    wrong = [{"name": "rows", "expected": 1, "found": 2, "ok": False}]
    assert repeat.curable(_record(tmp_path / "wrong", cache=cold, checks=wrong)) == []
    silent = [{"server": "127.0.0.1", "seconds": 10.2}]
    assert repeat.curable(_record(tmp_path / "silent", cache=cold, silences=silent)) == [], "that is its result"


@pytest.mark.parametrize(("share", "is_disturbed"), [(STEAL_DISTURBS + 0.02, True), (STEAL_DISTURBS - 0.02, False)])
def test_steal_disturbs_a_trial_and_does_not_keep_it_out(tmp_path: Path, share: float, is_disturbed: bool) -> None:
    trial = _record(tmp_path / "stolen")
    found = admit(trial, {"cpu_steal_share": share})
    assert not found.reasons
    assert [text for text in found.curable if "hypervisor" in text] == found.curable
    assert bool(found.curable) == is_disturbed
    assert any("hypervisor" in text for text in found.caveats)


def test_what_an_attempt_that_was_set_aside_did_is_found_where_it_lies_now(tmp_path: Path) -> None:
    """On a server that stays between trials it is counted by the check after the next."""
    first, second = tmp_path / "0001", tmp_path / "0002"
    summaries = [first / "measure/summary.json", second / "warmup/summary.json", second / "measure/summary.json"]
    repeat.follow(summaries, second)
    assert summaries[1] == second / "warmup/summary.json"
    (tmp_path / "0002.attempt-1").mkdir()
    repeat.follow(summaries, second)
    aside = tmp_path / "0002.attempt-1"
    assert summaries == [first / "measure/summary.json", aside / "warmup/summary.json", aside / "measure/summary.json"]


def test_the_page_is_told_how_often(tmp_path: Path) -> None:
    why = {"attempt": 2, "left": ["0001.attempt-1"]}
    for name, text, said in (("a", f"{FILLING}x", "still filling"), ("b", "the hypervisor took 20 %", "hypervisor")):
        trial = _record(tmp_path / name, repeated=why | {"why": [text]})
        told = [caveat for caveat in admit(trial, {}).caveats if caveat.startswith("repeated")]
        assert len(told) == 1
        assert said in told[0]


def test_a_trial_is_judged_as_one_of_its_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(repeat, "curable", lambda trial: names.append(of_trial(trial).name) or [])
    assert made(tmp_path, monkeypatch, lambda _log: None).run() == "finished"
    assert names == ["bank"] * 6
