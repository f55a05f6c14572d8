"""Blocks of windows on real servers: whose turn it is, a server that is killed in its turn, a run that is killed."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import Laboratory

from plimsoll.environment import StateDir
from plimsoll.environment.groups import cgroups, freezer
from plimsoll.experiment import load
from plimsoll.record import open_run
from plimsoll.run.runner import Runner

NEEDS = ("root", "cgroup memory", "freezer", "swap", "postgresql", "server user")
KILL_AT = Path(__file__).with_name("kill_at.py")
ROUNDS = 6
WINDOWS = (
    'design.kind="windows"', f"design.rounds={ROUNDS}", "design.window_seconds=0.2", "design.lead_in_seconds=0.05",
    'design.stop="never"',
)  # fmt: skip
SETS = [word for one in WINDOWS for word in ("--set", one)]


class Watcher:
    """At the end of each window: whether the groups of the block stand still."""

    def __init__(self) -> None:
        self.frozen: list[bool] = []
        self.names: set[str] = set()

    def event(self, name: str, **_info: Any) -> None:
        hierarchy = cgroups.detect()
        assert hierarchy is not None
        if name == "window":
            self.frozen += [freezer.is_frozen(hierarchy.folders(group)) for group in self.names]


class Watched(Runner):
    """Notes what the groups of its trials are called."""

    def trial_name(self, trial: Any) -> str:
        name = super().trial_name(trial)
        assert isinstance(self.observer, Watcher)
        self.observer.names = {one for one in self.observer.names if one[-4:] > f"{trial.number - 2:04d}"} | {name}
        return name


def windows_of(trial: Any) -> Any:
    return np.load(trial.path / "measure/windows.npy")


def test_one_at_a_time_and_the_books_are_right(laboratory: Laboratory) -> None:
    watcher, out = Watcher(), laboratory.state / "turns"
    source = load(str(laboratory.experiment), sets=list(WINDOWS))
    runner = Watched(source, out, StateDir(laboratory.state), watcher, ["plimsoll"], 3)
    assert runner.fell_back == []
    assert runner.run() == "finished"
    assert laboratory.left_behind() == []
    assert watcher.frozen == [True] * (2 * 2 * ROUNDS * 2), "all stand still between two windows"
    run = open_run(out)
    assert [trial.status for trial in run.trials] == ["finished"] * 4
    turns = []
    for trial in run.trials:
        rows = windows_of(trial)
        assert list(rows["round"]) == [*range(1, ROUNDS + 1)] and set(rows["position"]) <= {1, 2}
        assert ((rows["closed_ns"] - rows["opened_ns"]) == 200_000_000).all()
        assert (rows["drained_ns"] >= rows["closed_ns"]).all()
        turns += [(int(row["opened_ns"]), int(row["drained_ns"])) for row in rows]
        assert (rows["done"] > 0).all(), "every window has its transactions"
        done, counters = int(rows["done"].sum()), trial.data["counters"]
        assert done == trial.measure.identity["done"] == len(trial.measure.transactions)
        # Each transaction of this workload is one of the server's.
        commits = counters["after"]["xact_commit"] - counters["before"]["xact_commit"]
        assert done <= commits <= done + 60, "with what the probes and readings ask"
        assert trial.data["checks"] and all(check["ok"] for check in trial.data["checks"])
        told = trial.data["windows"]
        print(trial.number, told)
        assert told["rounds"] == ROUNDS and 0 < told["freeze_ns"]["median"] <= told["freeze_ns"]["max"]
        assert told["frozen_seconds"] >= 0.2 * (ROUNDS - 1)
    turns.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(turns)), "no two at once"


def test_a_server_that_is_killed_in_its_turn_ends_its_trial_alone(laboratory: Laboratory) -> None:
    out = laboratory.state / "killed-server"
    process = laboratory.start(
        "run", str(laboratory.experiment), *SETS, "--blocks", "1", "--set", "design.rounds=20", "--no-page",
        "--out", str(out), "--seed", "1",
    )  # fmt: skip
    table = out / "trials/0001/measure/windows.npy"
    until = time.monotonic() + 120
    while not table.exists() or len(table.read_bytes()) < 1024:  # three rows
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
    (pid_file,) = laboratory.state.glob("work/*-0001/data/postmaster.pid")
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    output, error = process.communicate(timeout=120)
    assert process.returncode == 0, output + error
    assert laboratory.left_behind() == []
    failed, finished = open_run(out).trials
    assert (failed.status, finished.status) == ("failed", "finished"), failed.data
    assert 3 <= failed.data["windows"]["rounds"] < 20 and finished.data["windows"]["rounds"] == 20
    assert len(windows_of(finished)) == 20


def _killed_at(laboratory: Laboratory, step: int, out: Path) -> None:
    argv = (str(step), "run", str(laboratory.experiment), *SETS, "--blocks", "1", "--no-page", "--out", str(out))
    process = laboratory.start(*argv, program=(str(KILL_AT),))
    output, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"step {step}\n{output}\n{error}"
    laboratory.call("undo")
    assert laboratory.left_behind() == [], f"step {step}"
    assert laboratory.call("undo").startswith("Nothing"), f"step {step}: a second undo found something"
    assert not out.exists() or all(trial.status == "not run" for trial in open_run(out).trials)


def _steps(laboratory: Laboratory) -> list[str]:
    shutil.rmtree(laboratory.state / "counted", ignore_errors=True)
    argv = ("0", "run", str(laboratory.experiment), *SETS, "--blocks", "1", "--no-page", "--out", "counted")
    counting = laboratory.start(*argv, program=(str(KILL_AT),))
    output, error = counting.communicate(timeout=120)
    assert counting.returncode == 0, output + error
    steps = (laboratory.state / "steps").read_text().splitlines()
    assert steps.count("after freeze") == 2 * (ROUNDS + 1)
    return steps


def test_a_run_that_is_killed_leaves_nothing_frozen_and_its_block_is_done_anew(laboratory: Laboratory) -> None:
    steps = _steps(laboratory)
    asked = [place for place, name in enumerate(steps, start=1) if name == "after freeze asked for"]
    frozen = [place for place, name in enumerate(steps, start=1) if name == "after freeze"]
    put_back = next(place for place, name in enumerate(steps, start=1) if name.startswith("before put back"))
    out = laboratory.state / "killed"
    for step in (asked[0], frozen[-1], put_back):
        _killed_at(laboratory, step, out)
        if step != put_back:
            shutil.rmtree(out)
    laboratory.call("run", "--resume", str(out), "--no-page")
    assert [trial.status for trial in open_run(out).trials] == ["finished"] * 2
    assert json.loads((out / "run.json").read_text())["status"] == "finished"


@pytest.mark.long
def test_every_step(laboratory: Laboratory) -> None:
    for step in range(1, len(_steps(laboratory)) + 1):
        _killed_at(laboratory, step, laboratory.state / f"step-{step}")
