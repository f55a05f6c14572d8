"""The unit of a soak that is refused: as it was found."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.environment import Journal, StateDir, undo, units
from plimsoll.experiment import load
from plimsoll.run import runner as of_runner
from plimsoll.run.observer import Silent
from plimsoll.run.runner import Impossible, Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.soak import runner as of_soak
from plimsoll.run.soak.runner import SoakRunner, resumed

EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "script"
files = [{path = "one.sql"}]
[measure]
seconds = 1
[soak]
length = "1h"
"""
FULL = "the disk is full"


class Systemd:
    """Which units are enabled."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if words[0] == "enable":
            self.enabled.add(words[1])
        if words[0] == "disable":
            self.enabled.discard(words[1])
        return subprocess.CompletedProcess(words, 0, "running", "")


class World:
    """A machine with a systemd that is played, and a soak on it that was stopped at once; `in_the_way`: what a soak is
    refused for."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.systemd, self.in_the_way = Systemd(), list[str]()
        for name in ("system", "runtime"):
            (tmp_path / name).mkdir()
        monkeypatch.setattr(units, "FOLDER", tmp_path / "system")
        monkeypatch.setattr(units, "RUNTIME", tmp_path / "runtime")
        monkeypatch.setattr(units, "systemctl", self.systemd)
        monkeypatch.setattr(units.Unit, "why_not", lambda _: None)
        monkeypatch.setattr(Runner, "_servers", lambda _: contextlib.nullcontext(lambda _log: None))
        monkeypatch.setattr(Runner, "_has_tables", lambda *_: False)
        monkeypatch.setattr(of_soak, "carry", self._stopped)
        monkeypatch.setattr(of_runner.obstacles, "obstacles", lambda *_: list(self.in_the_way))
        monkeypatch.setattr(of_runner.obstacles, "remarks", lambda *_: [])
        monkeypatch.setattr(of_runner.datasets, "refusals", lambda *_: [])
        monkeypatch.setattr(of_runner.datasets, "missing_bytes", lambda *_: [])
        (tmp_path / "one.sql").write_text("select 1;\n")
        (tmp_path / "mine.toml").write_text(EXPERIMENT)
        self.state, self.out, self.file = StateDir(tmp_path / "state"), tmp_path / "run", tmp_path / "mine.toml"
        self.seen_at_work: list[set[str]] = []

    def _stopped(self, *_given: object) -> None:
        self.seen_at_work.append(set(self.systemd.enabled))
        raise Stopped

    def begun(self) -> SoakRunner:
        return SoakRunner(load(str(self.file)), self.out, self.state, Silent(), [], 1, has_unit=True)

    def goes_on(self) -> SoakRunner:
        return resumed(self.out, self.state, Silent(), [])

    def is_bare(self) -> bool:
        """No unit, and nothing that remembers one."""
        return not [*units.FOLDER.iterdir(), *self.state.journal.iterdir()] and self.systemd.enabled == set()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_a_new_soak_that_is_refused_leaves_none(world: World) -> None:
    world.in_the_way = [FULL]
    with pytest.raises(Impossible):
        world.begun().run()
    assert world.is_bare() and not world.out.exists()


def test_one_that_goes_on_by_hand_and_is_refused_leaves_none(world: World) -> None:
    assert world.begun().run() == "stopped"
    assert [len(enabled) for enabled in world.seen_at_work] == [1] and world.is_bare()
    world.in_the_way = [FULL]
    with pytest.raises(Impossible):
        world.goes_on().run()
    assert world.is_bare()


def test_so_does_one_that_goes_on_upon_another_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.begun().run()
    monkeypatch.setattr(of_runner, "comparable", lambda *_: [{"key": "kernel", "a": "6.1", "b": "6.18"}])
    with pytest.raises(Impossible, match=r"kernel was 6\.1"):
        world.goes_on().run()
    assert world.is_bare()


def test_one_that_its_unit_goes_on_with_and_is_refused_keeps_it_for_the_next_boot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begun().run()
    runner = world.goes_on()
    runner.unit().install(Journal.create(world.state, "before"), world.state)
    world.in_the_way = [FULL]
    alive = Journal.owner_is_alive  # the machine went down under the one before
    monkeypatch.setattr(Journal, "owner_is_alive", lambda self: self.run_id != "before" and alive(self))
    with pytest.raises(Impossible):
        runner.run()
    assert world.systemd.enabled == {runner.unit().name} and runner.unit().path.exists()
    assert all(undone.ok for undone in undo(world.state, force=True)) and world.is_bare()
