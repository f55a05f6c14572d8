"""Settings of the whole machine: one run at a time changes them, whatever its state folder is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.environment import Fault, StateDir, machine_settings
from plimsoll.environment.machine_settings import ours
from plimsoll.experiment import load, plan_trials
from plimsoll.run.surroundings import knobs

HOLD = """import sys, time
from pathlib import Path
from plimsoll.environment import Journal, StateDir, Sysctl, machine_settings
machine_settings.LOCK, state = Path(sys.argv[1]), StateDir(Path(sys.argv[2])).prepare()
with machine_settings.ours(state, print, lambda: False):
    journal = Journal.create(state, "x")
    journal.record("sysctl", name=Sysctl("vm.swappiness").name)
    print("held", flush=True)
    sys.stdin.read()
    journal.path.unlink()
"""
EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[measure]
seconds = 1
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_settings, "LOCK", tmp_path / "run/settings.lock")
    return machine_settings.LOCK


@pytest.fixture
def other(tmp_path: Path, lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of another state folder that has them."""
    argv = [sys.executable, "-c", HOLD, str(lock), str(tmp_path / "other")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_they_are_waited_for_until_the_other_has_ended(
    tmp_path: Path, state: StateDir, other: subprocess.Popen[str]
) -> None:
    said: list[str] = []

    def told(text: str) -> None:
        said.append(text)
        assert other.stdin is not None
        other.stdin.close()

    with ours(state, told, lambda: False):
        assert other.wait(10) == 0
    assert said == [
        f"waiting for the run of process {other.pid} (state folder {tmp_path / 'other'}): it changes settings of this "
        "machine, as this one does"
    ]


def test_a_stop_ends_the_wait_and_takes_nothing(state: StateDir, lock: Path, other: subprocess.Popen[str]) -> None:
    said: list[str] = []
    with ours(state, said.append, lambda: bool(said)):
        assert json.loads(lock.read_text())["pid"] == other.pid
    assert json.loads(lock.read_text())["pid"] == other.pid


def test_what_a_killed_run_of_another_folder_left_is_put_back_first(
    tmp_path: Path, state: StateDir, other: subprocess.Popen[str]
) -> None:
    other.kill()
    other.wait()
    with pytest.raises(
        Fault, match=rf"process {other.pid} was killed .*PLIMSOLL_STATE={tmp_path}/other ./plimsoll undo"
    ):
        ours(state, print, lambda: False).__enter__()
    journal = tmp_path / "other/journal/x.jsonl"
    told = journal.read_text()
    for goes_on in (told.replace(f'"pid":{other.pid},', '"pid":1,'), told + '{"n":1,"undone":true}\n'):
        journal.write_text(goes_on)  # of another run of that folder, or put back
        with ours(state, print, lambda: False):
            pass
        machine_settings.LOCK.write_text(json.dumps({"pid": other.pid, "state": str(tmp_path / "other")}))


def test_of_our_own_folder_undo_has_seen_to_it(state: StateDir, lock: Path) -> None:
    left = state.journal / "x.jsonl"
    for _ in range(2):
        with ours(state, print, lambda: False):
            left.write_text("{}\n")
        assert json.loads(lock.read_text())["state"] == str(state.root)
    left.unlink()
    with pytest.raises(ZeroDivisionError), ours(state, print, lambda: False):
        raise ZeroDivisionError
    assert lock.read_text() == ""


@pytest.mark.parametrize(
    ("sets", "are_changed"),
    [
        ([], False),
        (['environment.memory="1 GiB"', 'environment.swap="1 GiB"'], False),
        (['environment.read_ahead="1 MiB"'], True),
        (['environment.sysctl={"vm.swappiness"=10}'], True),
    ],
)
def test_which_plans_change_them(tmp_path: Path, state: StateDir, sets: list[str], are_changed: bool) -> None:
    """Of a group or a swap file each run has its own."""
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    source = load(str(tmp_path / "experiment.toml"), sets=sets)
    plan = plan_trials(source.experiment, source.treatments, 1)
    assert knobs.change_the_machine(plan, state) == are_changed
