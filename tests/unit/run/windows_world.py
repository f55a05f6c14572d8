"""Runs in windows on servers, loads and groups that only note what is done, as fixtures. Loaded by runpy, since tests
are imported one by one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.environment import StateDir
from plimsoll.experiment import load
from plimsoll.experiment.groups import Groups
from plimsoll.experiment.replicates import in_groups
from plimsoll.record import open_run
from plimsoll.run import runner as of_runner
from plimsoll.run.agent import AgentFailed
from plimsoll.run.designs import ARRANGEMENTS, Arrangement
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.windows import block as of_block
from plimsoll.run.windows import blocks as of_blocks
from plimsoll.run.windows import served as of_served

EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[warmup]
until = "none"
[measure]
seconds = 1
[design]
kind = "windows"
blocks = 3
rounds = 4
duplicate = true
[[factors]]
path = "target.settings.shared_buffers"
levels = ["16 MiB", "32 MiB", "64 MiB"]
"""
Hook = Callable[[str, int], None]


@dataclass
class World:
    """What is done to whom, in order; `hook` may raise in it."""

    done: list[tuple[str, int]] = field(default_factory=list)
    frozen: set[int] = field(default_factory=set)
    up: set[int] = field(default_factory=set)
    hook: Hook = lambda _what, _number: None

    def does(self, what: str, number: int) -> None:
        self.done.append((what, number))
        self.hook(what, number)

    def of(self, *what: str) -> list[tuple[str, int]]:
        return [entry for entry in self.done if entry[0] in what]


@dataclass
class FakeGroup:
    """Of a server that is in the world."""

    world: World
    number: int

    def freeze(self) -> int:
        assert self.number not in self.world.frozen
        self.world.does("freeze", self.number)
        self.world.frozen.add(self.number)
        return 1000

    def thaw(self) -> int:
        self.world.does("thaw", self.number)
        self.world.frozen.discard(self.number)
        return 10

    def kill(self) -> None:
        self.world.does("kill", self.number)
        self.world.frozen.discard(self.number)
        self.world.up.discard(self.number)


class FakeLoad:
    """The load against a server that has to be the only one awake."""

    def __init__(self, at: Any) -> None:
        self.world, self.number = at.world, at.number
        self.world.does("load", self.number)

    def window(self, seconds: float, round_: int, position: int) -> dict[str, Any]:
        assert seconds == 1.0 and position >= 1
        awake = self.world.up - self.world.frozen
        assert awake == {self.number}, f"{awake} awake in the window of {self.number}"
        self.world.does(f"window {round_}", self.number)
        return {"drained_ns": 1}

    def end(self) -> None:
        assert self.number not in self.world.frozen
        self.world.does("end", self.number)

    def kill(self) -> None:
        self.world.does("kill load", self.number)


@dataclass
class FakeServer:
    """What a runner opens, and what is at work then."""

    world: World
    number: int
    observer: Any = field(default_factory=Silent)

    @contextlib.contextmanager
    def opened(self, _log: TrialLog) -> Iterator[FakeServer]:
        awake = self.world.up - self.world.frozen
        assert awake == set(), f"{awake} awake while another is opened"
        self.world.does("open", self.number)
        self.world.up.add(self.number)
        try:
            yield self
        finally:
            assert self.number not in self.world.frozen, "nobody can end what stands still"
            self.world.up.discard(self.number)
            self.world.does("put back", self.number)

    @contextlib.contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        try:
            yield
        except AgentFailed as error:
            raise TrialFailed(f"explained: {error.message}") from error
        finally:
            log.log_tail = "its last words"

    @contextlib.contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        log.facts["watched"] = "before"
        yield
        log.facts["watched"] = "after"

    def check(self, _log: TrialLog) -> None:
        self.world.does("check", self.number)

    def end(self, _log: TrialLog) -> None:
        self.world.up.discard(self.number)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> Callable[..., Runner]:
    def make(*sets: str, groups: Groups | None = None) -> Runner:
        arranged = (lambda plan, _: (in_groups(plan, groups), [])) if groups else (lambda plan, _: (plan, []))
        monkeypatch.setitem(ARRANGEMENTS, "windows", Arrangement(of_blocks.carry_out, arranged))
        (tmp_path / "experiment.toml").write_text(EXPERIMENT)
        source = load(str(tmp_path / "experiment.toml"), sets=list(sets))
        return Runner(source, tmp_path / "run", StateDir(tmp_path / "state"), Silent(), [], 7)

    def server_of(log: TrialLog) -> FakeServer:
        server = FakeServer(world, log.trial.number)
        server.place = SimpleNamespace()  # type: ignore[attr-defined]
        server.server = None  # type: ignore[attr-defined]
        return server

    monkeypatch.setattr(Runner, "_servers", lambda _: contextlib.nullcontext(server_of))
    monkeypatch.setattr(Runner, "_has_tables", lambda *_: False)
    monkeypatch.setattr(of_block, "_group_of", lambda at: FakeGroup(at.world, at.number))
    monkeypatch.setattr(of_served, "load_of", lambda at: at)
    monkeypatch.setattr(
        of_served, "warm_up", lambda session, _log, _patience: session.world.does("warm", session.number)
    )
    monkeypatch.setattr(of_served, "WindowedLoad", FakeLoad)
    monkeypatch.setattr(of_served, "read_counters", lambda *args: args[4].update({args[3]: 1}))
    monkeypatch.setattr(of_runner, "fingerprint", lambda *_, **__: {})
    for one in ("obstacles", "remarks"):
        monkeypatch.setattr(of_runner.obstacles, one, lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "refusals", lambda *_: [])
    monkeypatch.setattr(of_runner.datasets, "missing_bytes", lambda *_: [])
    return make


def statuses(runner: Runner) -> list[str | None]:
    return [trial.status for trial in open_run(runner.out).trials]


IN_TWO = Groups("t1", (("t1", "t2"), ("t1", "t3")), "too little memory")
