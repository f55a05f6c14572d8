"""Stops and kills at random points and at journal steps: nothing stays behind, the record reads, --resume completes."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from laboratory import Laboratory

from plimsoll.record import open_run

ROUNDS = 5  # each victim once
ROUNDS_LONG = 24
SEED = 20020101
NEEDS = ("root", "cgroup memory", "swap", "sysctl", "postgresql", "server user")
VICTIMS = ("front SIGINT", "front SIGTERM", "front SIGKILL", "agent SIGKILL", "target SIGKILL")


@pytest.fixture(scope="module", autouse=True)
def _warm(laboratory: Laboratory) -> None:
    laboratory.call("run", str(laboratory.experiment), "--out", "warm", "--blocks", "1", "--no-page")  # the data set
    assert laboratory.left_behind() == []


def _victim(laboratory: Laboratory, front: int, what: str) -> list[int]:
    who = what.split()[0]
    if who == "front":
        return [front]
    name = "plimsoll-agent" if who == "agent" else "postgres"
    # Of the server the postmaster is killed, the oldest of its processes: its children end by themselves.
    return sorted(laboratory.processes(name))[:1]


def _all_finished(out: Path) -> bool:
    return (out / "run.json").exists() and all(trial.status == "finished" for trial in open_run(out).trials)


def _round(laboratory: Laboratory, number: int, draw: random.Random) -> None:
    what = VICTIMS[number % len(VICTIMS)]
    out = laboratory.state / f"round-{number}"
    argv = ("run", str(laboratory.experiment), "--blocks", "1", "--no-page", "--out", str(out), "--seed", str(number))
    process = laboratory.start(*argv)
    until = time.monotonic() + draw.uniform(0.8, 7.0)
    killed: list[int] = []
    while process.poll() is None and not killed:
        time.sleep(0.02)
        if time.monotonic() > until:
            killed = _victim(laboratory, process.pid, what)
            for pid in killed:
                with contextlib.suppress(ProcessLookupError):  # ended by itself since it was looked for
                    os.kill(pid, getattr(signal, what.split()[1]))
    output, error = process.communicate(timeout=120)
    where = f"round {number} ({what}, seed {SEED})\n{output}\n{error}"
    if what == "front SIGKILL":
        laboratory.call("undo")
    assert laboratory.left_behind() == [], where
    if what in ("front SIGINT", "front SIGTERM") and killed:
        # 0: the signal came when the last trial had ended, so there was nothing left to stop.
        assert process.returncode in ((0, 4) if _all_finished(out) else (4,)), where
    if (out / "run.json").exists():
        finished = {trial.number for trial in open_run(out).trials if trial.status == "finished"}
        laboratory.call("run", "--resume", str(out), "--no-page", code=None)
        run = open_run(out)
        assert all(trial.status in ("finished", "failed") for trial in run.trials), where
        assert len(run.trials) == 2, where
        assert finished <= {trial.number for trial in run.trials if trial.status == "finished"}, where
        if what.startswith("front"):
            assert all(trial.status == "finished" for trial in run.trials), where
    assert laboratory.left_behind() == [], where


def test_random_points(laboratory: Laboratory) -> None:
    draw = random.Random(SEED)
    for number in range(ROUNDS):
        _round(laboratory, number, draw)


@pytest.mark.long
def test_random_points_long(laboratory: Laboratory) -> None:
    draw = random.Random(SEED + 1)
    for number in range(ROUNDS, ROUNDS + ROUNDS_LONG):
        _round(laboratory, number, draw)


def _steps(laboratory: Laboratory) -> int:
    """The number of journal steps of one trial (the run has two; both take the same)."""
    # Both tests of steps count in the same laboratory.
    shutil.rmtree(laboratory.state / "counted", ignore_errors=True)
    (laboratory.state / "steps").unlink(missing_ok=True)
    counting = laboratory.start(
        "0",
        "run",
        str(laboratory.experiment),
        "--blocks",
        "1",
        "--no-page",
        "--out",
        "counted",
        program=(str(KILL_AT),),
    )
    output, error = counting.communicate(timeout=120)
    assert counting.returncode == 0, output + error
    steps = (laboratory.state / "steps").read_text().splitlines()
    assert len(steps) > 30
    return len(steps) // 2 + 1


def _kill_at(laboratory: Laboratory, step: int) -> None:
    out = laboratory.state / f"step-{step}"
    shutil.rmtree(out, ignore_errors=True)
    argv = (str(step), "run", str(laboratory.experiment), "--blocks", "1", "--no-page", "--out", str(out))
    process = laboratory.start(*argv, program=(str(KILL_AT),))
    output, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"step {step}\n{output}\n{error}"
    laboratory.call("undo")
    assert laboratory.left_behind() == [], f"step {step}"
    assert laboratory.call("undo").startswith("Nothing"), f"step {step}: a second undo found something"


KILL_AT = Path(__file__).with_name("kill_at.py")


def test_some_journal_steps(laboratory: Laboratory) -> None:
    for step in range(1, _steps(laboratory) + 1, 17):
        _kill_at(laboratory, step)


@pytest.mark.long
def test_every_journal_step(laboratory: Laboratory) -> None:
    for step in range(1, _steps(laboratory) + 1):
        _kill_at(laboratory, step)
