"""Servers that take turns in a setting of the whole machine: each has its own, and the machine is put back."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from laboratory import Laboratory

from plimsoll.record import open_run

NEEDS = ("root", "cgroup memory", "freezer", "swap", "sysctl", "postgresql", "server user")
SWAPPINESS = Path("/proc/sys/vm/swappiness")
FACTOR = """[[factors]]
name = "kernel"
levels = [
  {label = "little", set = {"environment.sysctl.vm.swappiness" = 7}},
  {label = "as it is", set = {"workload.clients" = 4}},
]
"""
DESIGN = """[probes]
page_cache = false
breakdown = false

[design]
kind = "windows"
blocks = 1
rounds = 4
window_seconds = 0.2
lead_in_seconds = 0.05
stop = "never"
duplicate = false
"""
KEY = "environment.sysctl.vm.swappiness"


@pytest.fixture(scope="module")
def found(laboratory: Laboratory) -> str:
    """The setting as it is found; the experiment varies it."""
    text = laboratory.experiment.read_text()
    laboratory.experiment.write_text(text[: text.index("[design]")].replace("48 MiB", "16 MiB") + DESIGN + FACTOR)
    found = SWAPPINESS.read_text()
    assert found != "7\n"
    return found


def test_each_has_its_own_in_its_turns_and_the_machine_is_as_found(laboratory: Laboratory, found: str) -> None:
    out = laboratory.state / "turning"
    process = laboratory.start("run", str(laboratory.experiment), "--out", str(out), "--seed", "1", "--no-page")
    seen = set()
    while process.poll() is None:
        seen.add(SWAPPINESS.read_text())
        time.sleep(0.005)
    output, error = process.communicate(timeout=120)
    assert process.returncode == 0, output + error
    assert SWAPPINESS.read_text() == found and laboratory.left_behind() == []
    assert seen == {found, "7\n"}
    run = open_run(out)
    assert run.data["status"] == "finished" and "fell_back" not in run.data
    labels = run.plan["treatments"]
    told = {labels[trial.treatment]["label"]: trial.data["windows"]["at_turns"] for trial in run.trials}
    assert told == {"kernel little": {KEY: 7}, "kernel as it is": {KEY: None}}
    for trial in run.trials:
        assert trial.status == "finished" and trial.data["windows"]["rounds"] == 4
        assert any(caveat.startswith(f"{KEY} was switched") for caveat in trial.data["caveats"])


def test_after_a_kill_in_the_turn_of_one_undo_puts_back(laboratory: Laboratory, found: str) -> None:
    out = laboratory.state / "killed"
    sets = ("--set", "design.rounds=200")
    process = laboratory.start("run", str(laboratory.experiment), *sets, "--out", str(out), "--no-page")
    tables = [out / f"trials/000{number}/measure/windows.npy" for number in (1, 2)]
    until = time.monotonic() + 60
    while not all(table.exists() for table in tables):
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGSTOP)  # so that the turn does not end between the look and the kill
    while SWAPPINESS.read_text() == found:
        os.kill(process.pid, signal.SIGCONT)
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
        os.kill(process.pid, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert SWAPPINESS.read_text() == "7\n"
    laboratory.call("undo")
    assert SWAPPINESS.read_text() == found and laboratory.left_behind() == []
    assert laboratory.call("undo").startswith("Nothing")
