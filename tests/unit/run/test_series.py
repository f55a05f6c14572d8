"""A series carried through kills: what is written down at which step, what is done again, when it gives up."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.run.trial.at_work import AtWork, TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Progress, Segment
from plimsoll.run.trial.series import FAILURES_MAX, FILE, KILLED, STOPPED, Series, carry, goes_on

Json = dict[str, Any]


def new_log() -> TrialLog:
    return TrialLog(SimpleNamespace())


class Played(Segment):
    """A segment that does what `happens` has next: nothing, or it fails."""

    kind = "throughput"

    def __init__(self, name: str, happens: list[Exception | None] | None = None) -> None:
        self.name, self.happens = name, happens if happens is not None else [None]

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        del at
        log.facts.setdefault("tests", []).append({"segment": self.name, **about})
        if (error := self.happens.pop(0)) is not None:
            raise error


def do(series: Series, log: TrialLog, name: str) -> Json:
    with series.step(Played(name), log) as about:
        log.facts.setdefault("tests", []).append({"segment": name, **about})
    return about


def test_what_was_done_is_known_after_a_kill(tmp_path: Path) -> None:
    series, log = Series(tmp_path, Interrupts(Silent())), new_log()
    assert not series.begin_session(log)
    do(series, log, "load")
    do(series, log, "throughput-1")
    log.facts["tests"].append({"segment": "of nobody"})  # of a test that never came to its end

    again, other = Series(tmp_path, Interrupts(Silent())), new_log()
    assert again.begin_session(other)
    assert [one["segment"] for one in other.facts["tests"]] == ["load", "throughput-1"]
    assert [again.is_done(name) for name in ("load", "throughput-1", "throughput-2")] == [True, True, False]
    assert again.state["cut"] == []
    facts = do(again, other, "throughput-2")
    assert facts == {"attempt": 1, "sitting": 2, "begins_cold": True}
    assert do(again, other, "throughput-3") == {"attempt": 1, "sitting": 2, "begins_cold": False}


def test_a_test_that_was_interrupted_is_done_again_and_says_so(tmp_path: Path) -> None:
    series, log = Series(tmp_path, Interrupts(Silent())), new_log()
    series.begin_session(log)
    do(series, log, "throughput-1")
    (tmp_path / "throughput-2").mkdir()
    (tmp_path / "throughput-2" / "queries.json").write_text("{}")
    with contextlib.suppress(KeyError), series.step(Played("throughput-2"), log):
        raise KeyError  # as good as a kill: nothing is written

    again, other = Series(tmp_path, Interrupts(Silent())), new_log()
    assert again.begin_session(other)
    assert again.was_interrupted("throughput-2") and not again.was_interrupted("throughput-1")
    assert not (tmp_path / "throughput-2").exists()
    (cut,) = again.state["cut"]
    assert (cut["segment"], cut["attempt"], cut["why"]) == ("throughput-2", 1, KILLED)
    assert (tmp_path / cut["left"] / "queries.json").is_file()
    assert do(again, other, "throughput-2")["attempt"] == 2
    again.tell(other)
    assert other.facts["cut"] == [cut] and other.facts["sittings"] == 2


def test_nothing_is_settled_before_the_tables_are_there(tmp_path: Path) -> None:
    series, log = Series(tmp_path, Interrupts(Silent())), new_log()
    series.begin_session(log)
    with contextlib.suppress(KeyError), series.step(Played("load"), log):
        raise KeyError
    again = Series(tmp_path, Interrupts(Silent()))
    assert not again.begin_session(new_log())
    again.settle(new_log())
    assert Series(tmp_path, Interrupts(Silent())).begin_session(new_log())


def test_a_trial_in_one_go_knows_of_nothing() -> None:
    progress = Progress()
    with progress.step(Played("power"), new_log()) as about:
        assert about == {}
    assert not progress.is_done("power") and not progress.was_interrupted("power")


class PlayedServer(TrialServer):
    """A server without processes: its data are a folder that outlives kills."""

    data_outlive_kills = True

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def data(self) -> Path:
        return self._world.home / "data"

    def remove_data(self) -> None:
        shutil.rmtree(self._world.home, ignore_errors=True)

    @contextlib.contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[Any]:
        del log
        self._world.sessions += 1
        assert goes_on == self.data.is_dir()
        self.data.mkdir(parents=True, exist_ok=True)
        settings = self._world.trial.treatment.settings
        yield SimpleNamespace(settings=settings, observer=Silent(), check=lambda _log: None, end=lambda _log: None)


class World:
    """A runner of one trial, with the server and the tests played: `play` has what happens to each test begun."""

    def __init__(self, folder: Path, play: list[Exception | None]) -> None:
        self.folder, self.play, self.sessions = folder, play, 0
        workload = {"name": "decision_support", "scale_factor": 1.0, "repeats": 2, "tests": ["throughput"]}
        document = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
        settings = Experiment.model_validate(document)
        self.trial = SimpleNamespace(number=1, treatment=SimpleNamespace(settings=settings))
        self.home = folder / "datasets" / "plimsoll-abc"
        self.runner: Any = SimpleNamespace(
            out=folder / "run",
            observer=Silent(),
            interrupts=SimpleNamespace(must_finish=contextlib.nullcontext),
        )

    def run(self) -> TrialLog:
        self.log = TrialLog(self.trial)
        carry(
            self.runner,
            self.log,
            PlayedServer(self),
            [Played(name, self.play) for name in ("throughput-1", "throughput-2")],
        )
        return self.log

    @property
    def written(self) -> Json:
        found: Json = json.loads((self.folder / "run" / "trials" / "0001" / FILE).read_text())
        return found


Made = Callable[[list[Exception | None]], World]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return lambda play: World(tmp_path, play)


def test_a_server_that_is_killed_ends_a_session_and_not_the_series(made: Made) -> None:
    world = made([None, TrialFailed("the server ended"), None])
    found = world.run().facts
    assert [one["segment"] for one in found["tests"]] == ["throughput-1", "throughput-2"]
    assert world.sessions == found["sittings"] == 2
    assert [(one["segment"], one["why"]) for one in found["cut"]] == [("throughput-2", "the server ended")]
    assert not world.home.exists()
    assert world.written["result"] == "finished"


def test_a_stop_keeps_the_tables_and_the_next_call_goes_on(made: Made) -> None:
    world = made([None, Stopped(), None])
    with pytest.raises(Stopped):
        world.run()
    assert world.log.facts["cut"][0]["why"] == STOPPED
    assert (world.home / "data").is_dir()
    found = world.run().facts
    assert [one["segment"] for one in found["tests"]] == ["throughput-1", "throughput-2"]
    assert not world.home.exists()


def test_a_full_disk_keeps_the_tables(made: Made) -> None:
    world = made([None, Fault("the disk is full", remedy="free some")])
    with pytest.raises(Fault):
        world.run()
    assert (world.home / "data").is_dir()
    assert world.written["cut"][0]["why"] == "the disk is full"


def test_what_fails_again_and_again_has_failed_and_keeps_what_was_done(made: Made) -> None:
    world = made([None, *(TrialFailed(f"failure {number}") for number in range(1, 9))])
    with pytest.raises(TrialFailed, match=f"failure {FAILURES_MAX}"):
        world.run()
    assert len(world.play) == 8 - FAILURES_MAX
    assert [one["segment"] for one in world.log.facts["tests"]] == ["throughput-1", "throughput-2"]  # the last, cut
    assert not world.home.exists()
    with pytest.raises(TrialFailed, match=f"failure {FAILURES_MAX}"):  # killed before its trial.json: the same again
        world.run()
    assert world.sessions == FAILURES_MAX


def test_a_result_is_not_made_twice(made: Made) -> None:
    world = made([None, None])
    first = world.run().facts
    assert world.run().facts["tests"] == first["tests"]
    assert world.sessions == 1


def test_tables_that_are_not_there_end_the_run_and_leave_the_series(made: Made) -> None:
    """They may be elsewhere: the state folder may have been another one."""
    world = made([None, Stopped(), None])
    with pytest.raises(Stopped):
        world.run()
    (world.home / "data").rename(world.folder / "elsewhere")
    with pytest.raises(Fault, match="PLIMSOLL_STATE"):
        world.run()
    assert world.written["result"] is None
    (world.folder / "elsewhere").rename(world.home / "data")
    assert [one["segment"] for one in world.run().facts["tests"]] == ["throughput-1", "throughput-2"]


def test_a_series_that_goes_on_needs_no_room_for_its_tables(made: Made) -> None:
    world = made([None, Stopped(), None])
    folder = world.folder / "run" / "trials" / "0001"
    assert not goes_on(folder)
    with pytest.raises(Stopped):
        world.run()
    assert goes_on(folder)
    world.run()
    assert not goes_on(folder)
