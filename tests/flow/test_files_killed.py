"""Stops and kills of a load on files: nothing stays, finished trials are as they were, --resume completes."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from laboratory import Laboratory
from on_files import experiment, place_of, trials, watched

NEEDS = ("root", "server user")
KILL_AT = Path(__file__).with_name("kill_at.py")


@pytest.mark.parametrize("what", ["SIGKILL", "SIGTERM"])
def test_a_front_that_ends_in_the_middle_of_a_load(laboratory: Laboratory, what: str) -> None:
    with watched(laboratory, place_of(laboratory, what), 2) as run:
        run.in_load(2)
        first = run.first()
        run.front.send_signal(getattr(signal, what))
        code, said = run.ended()
        if what == "SIGKILL":
            assert code == -signal.SIGKILL
            assert f"{run.place}/plimsoll-" in laboratory.call("undo")
        else:
            assert code == 4, said
        assert run.left() == [], said
        assert laboratory.call("undo").startswith("Nothing")
        laboratory.call("run", "--resume", str(run.out), "--no-page")
        assert [one["status"] for one in trials(run.out)] == ["finished"] * 2
        assert run.first() == first and run.left() == []


def test_a_load_that_is_killed_fails_its_trial_alone(laboratory: Laboratory) -> None:
    with watched(laboratory, place_of(laboratory, "load"), 3) as run:
        run.in_load(2)
        first = run.first()
        (agent,) = laboratory.processes("plimsoll-agent")
        os.kill(agent, signal.SIGKILL)
        code, said = run.ended()
        assert code == 0, said
        assert [one["status"] for one in trials(run.out)] == ["finished", "failed", "finished"]
        assert "the agent's load ended with exit code -9" in trials(run.out)[1]["reason"]
        assert run.first() == first and run.left() == []


def _steps(laboratory: Laboratory, place: Path) -> int:
    """How many steps the journal of one trial has."""
    counting = laboratory.start("0", *_one_trial(laboratory, place, "counted"), program=(str(KILL_AT),))
    output, error = counting.communicate(timeout=60)
    assert counting.returncode == 0, output + error
    return len((laboratory.state / "steps").read_text().splitlines())


def _one_trial(laboratory: Laboratory, place: Path, out: str) -> tuple[str, ...]:
    shutil.rmtree(laboratory.state / out, ignore_errors=True)
    return ("run", experiment(laboratory, place, 1), "--no-page", "--out", str(laboratory.state / out))


def _killed_at_every(laboratory: Laboratory, stride: int, name: str) -> None:
    place = place_of(laboratory, name)
    steps = _steps(laboratory, place)
    assert steps > 10
    for step in range(1, steps + 1, stride):
        process = laboratory.start(str(step), *_one_trial(laboratory, place, "killed"), program=(str(KILL_AT),))
        output, error = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, f"step {step}\n{output}\n{error}"
        laboratory.call("undo")
        assert laboratory.left_behind() == [] and list(place.iterdir()) == [], f"step {step}"
        assert laboratory.call("undo").startswith("Nothing"), f"step {step}: a second undo found something"


def test_some_journal_steps(laboratory: Laboratory) -> None:
    _killed_at_every(laboratory, 17, "some")


@pytest.mark.long
def test_every_journal_step(laboratory: Laboratory) -> None:
    _killed_at_every(laboratory, 1, "every")
