"""A run with trials that fail: which failure ends it, and which leaves the others to go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Fault, StateDir
from plimsoll.experiment import load
from plimsoll.record import open_run
from plimsoll.run import one_trial
from plimsoll.run import runner as of_runner
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import Refused, TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.log import TrialLog

Work = Callable[[TrialLog], None]
EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "script"
files = [{path = "one.sql"}]
[measure]
seconds = 1
[design]
blocks = 2
[[factors]]
"""
MEMORY = 'path = "target.settings.shared_buffers"\nlevels = ["64 MiB", "128 MiB"]\n'
MODES = 'path = "workload.mode"\nlevels = ["prepared", "simple"]\n'
SERVER = '[target]\ndsn = "postgresql://me:s3cret@localhost/mine?sslpassword=an0ther"\n'
FILES = 'path = "workload.files"\nlevels = [[{path = "one.sql"}], [{path = "two.sql"}]]\n'


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str, work: Work) -> Runner:
    """A runner whose trials do `work` on no server at all."""
    (tmp_path / "one.sql").write_text("select 1;\n")
    (tmp_path / "two.sql").write_text("select 2;\n")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT + factor)
    monkeypatch.setattr(Runner, "_servers", lambda _: contextlib.nullcontext(lambda _log: None))
    monkeypatch.setattr(one_trial, "run_trial", lambda _runner, log, _server: work(log))
    found = Runner(
        load(str(tmp_path / "experiment.toml")), tmp_path / "run", StateDir(tmp_path / "state"), Silent(), [], 1
    )
    monkeypatch.setattr(Runner, "_has_tables", lambda *_: False)
    for one in ("obstacles", "remarks"):
        monkeypatch.setattr(of_runner.obstacles, one, lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "refusals", lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "missing_bytes", lambda *_: [])
    return found


def statuses(runner: Runner) -> list[str | None]:
    return [trial.status for trial in open_run(runner.out).trials]


def refuse(_log: TrialLog) -> None:
    raise Refused("one.sql:1: the server says no", remedy="fix the script")


def test_what_every_trial_shares_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = made(tmp_path, monkeypatch, MEMORY, refuse)
    with pytest.raises(Fault) as caught:
        runner.run()
    left = len(runner.plan.trials) - 1
    said = f"one.sql:1: the server says no; the {left} trials that are left would fail the same way"
    assert said in caught.value.what
    assert caught.value.remedy == "fix the script"
    assert statuses(runner) == ["failed"] + ["not run"] * left
    assert open_run(runner.out).data["status"] == "failed"


def test_what_may_pass_leaves_the_others_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_log: TrialLog) -> None:
        raise TrialFailed("the server ended")

    runner = made(tmp_path, monkeypatch, MEMORY, crash)
    assert runner.run() == "finished"
    assert set(statuses(runner)) == {"failed"}


@pytest.mark.parametrize("factor", [MODES, FILES])
def test_treatments_with_other_statements_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str
) -> None:
    refused: list[Any] = []

    def one_refuses(log: TrialLog) -> None:
        if log.trial.treatment is runner.plan.treatments[0]:
            refused.append(log.trial)
            refuse(log)

    runner = made(tmp_path, monkeypatch, factor, one_refuses)
    assert runner.run() == "finished"
    found = statuses(runner)
    assert found.count("failed") == len(refused) >= 2 and "finished" in found


def test_the_run_ends_once_each_of_them_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = made(tmp_path, monkeypatch, MODES, refuse)
    with pytest.raises(Fault):
        runner.run()
    tried = [trial for trial in runner.plan.trials if runner.is_done(trial)]
    assert {trial.treatment.id for trial in tried[:-1]} != {one.id for one in runner.plan.treatments}
    assert {trial.treatment.id for trial in tried} == {one.id for one in runner.plan.treatments}
    assert len(tried) < len(runner.plan.trials)


def test_a_last_trial_that_is_refused_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def last(log: TrialLog) -> None:
        if log.trial is runner.plan.trials[-1]:
            refuse(log)

    runner = made(tmp_path, monkeypatch, MEMORY, last)
    assert runner.run() == "finished"


def test_a_trial_that_was_stopped_is_run_again_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def stop_once(log: TrialLog) -> None:
        tried.append(log.trial.number)
        if len(tried) == 2:
            raise Stopped

    runner = made(tmp_path, monkeypatch, MEMORY, stop_once)
    monkeypatch.setattr(of_runner, "fingerprint", lambda *_, **__: {})
    assert runner.run() == "stopped"
    assert statuses(runner)[:3] == ["finished", "stopped", "not run"]
    assert runner.run() == "finished"
    assert tried == [1, 2, *(trial.number for trial in runner.plan.trials[1:])]
    assert set(statuses(runner)) == {"finished"}


def test_no_password_of_the_server_is_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = made(tmp_path, monkeypatch, MODES + SERVER, lambda _: None)
    assert runner.run() == "finished"
    kept = [path.read_text() for path in runner.out.rglob("*") if path.is_file()]
    assert sum("localhost" in text for text in kept) >= 1
    assert not [text for text in kept if "s3cret" in text or "an0ther" in text]
