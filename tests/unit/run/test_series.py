"""A series carried through kills: what is written down at which step, what is done again, when it gives up."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.run import series as of_series
from plimsoll.run.course import Course
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.series import FAILURES_MAX, FILE, KILLED, STOPPED, Series, has_tables, run_series
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.run.trial import Report

Json = dict[str, Any]


def new_report() -> Report:
    return Report(SimpleNamespace())


def do(series: Series, report: Report, segment: str) -> Json:
    with series.step("throughput", segment, report) as facts:
        report.found.setdefault("tests", []).append({"segment": segment, **facts})
    return facts


def test_what_was_done_is_known_after_a_kill(tmp_path: Path) -> None:
    series, report = Series(tmp_path, Interrupts(Silent())), new_report()
    assert not series.begin_sitting(report)
    do(series, report, "load")
    do(series, report, "throughput-1")
    report.found["tests"].append({"segment": "of nobody"})  # of a test that never came to its end

    again, other = Series(tmp_path, Interrupts(Silent())), new_report()
    assert again.begin_sitting(other)
    assert [one["segment"] for one in other.found["tests"]] == ["load", "throughput-1"]
    assert [again.is_done(name) for name in ("load", "throughput-1", "throughput-2")] == [True, True, False]
    assert again.state["cut"] == []
    facts = do(again, other, "throughput-2")
    assert facts == {"attempt": 1, "sitting": 2, "begins_cold": True}
    assert do(again, other, "throughput-3") == {"attempt": 1, "sitting": 2, "begins_cold": False}


def test_a_test_that_was_cut_is_done_again_and_says_so(tmp_path: Path) -> None:
    series, report = Series(tmp_path, Interrupts(Silent())), new_report()
    series.begin_sitting(report)
    do(series, report, "throughput-1")
    (tmp_path / "throughput-2").mkdir()
    (tmp_path / "throughput-2" / "queries.json").write_text("{}")
    with contextlib.suppress(KeyError), series.step("throughput", "throughput-2", report):
        raise KeyError  # as good as a kill: nothing is written

    again, other = Series(tmp_path, Interrupts(Silent())), new_report()
    assert again.begin_sitting(other)
    assert again.was_cut("throughput-2") and not again.was_cut("throughput-1")
    assert not (tmp_path / "throughput-2").exists()
    (cut,) = again.state["cut"]
    assert (cut["segment"], cut["attempt"], cut["why"]) == ("throughput-2", 1, KILLED)
    assert (tmp_path / cut["left"] / "queries.json").is_file()
    assert do(again, other, "throughput-2")["attempt"] == 2
    again.tell(other)
    assert other.found["cut"] == [cut] and other.found["sittings"] == 2


def test_nothing_is_settled_before_the_tables_are_there(tmp_path: Path) -> None:
    series, report = Series(tmp_path, Interrupts(Silent())), new_report()
    series.begin_sitting(report)
    with contextlib.suppress(KeyError), series.step("load", "load", report):
        raise KeyError
    again = Series(tmp_path, Interrupts(Silent()))
    assert not again.begin_sitting(new_report())
    again.settle(new_report())
    assert Series(tmp_path, Interrupts(Silent())).begin_sitting(new_report())


def test_a_trial_in_one_go_knows_of_nothing() -> None:
    course = Course()
    with course.step("power", "power", new_report()) as facts:
        assert facts == {}
    assert not course.is_done("power") and not course.was_cut("power")


class World:
    """A runner of one trial, with the server and the tests played: `play` has what happens in each sitting."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, play: list[Exception | None]) -> None:
        self.folder, self.play, self.sittings = folder, play, 0
        workload = {"name": "decision_support", "scale_factor": 1.0, "repeats": 2, "tests": ["throughput"]}
        document = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
        settings = Experiment.model_validate(document)
        self.trial = SimpleNamespace(number=1, treatment=SimpleNamespace(settings=settings))
        self.home = folder / "datasets" / "plimsoll-abc"
        state = SimpleNamespace(work=folder / "work", datasets=folder / "datasets")
        state.datasets.mkdir(exist_ok=True)

        @contextlib.contextmanager
        def must_finish() -> Iterator[None]:
            yield

        self.runner: Any = SimpleNamespace(
            out=folder / "run",
            state=state,
            observer=Silent(),
            interrupts=SimpleNamespace(must_finish=must_finish),
            trial_name=lambda _trial: "abc",
        )

        @contextlib.contextmanager
        def opened(_runner: Any, _report: Report, _built: Any, *, goes_on: bool) -> Iterator[Any]:
            self.sittings += 1
            assert goes_on == (self.home / "data").is_dir()
            (self.home / "data").mkdir(parents=True, exist_ok=True)
            nothing = SimpleNamespace(abandon=lambda: None, observer=Silent())
            yield SimpleNamespace(load=nothing, server=nothing)

        def run_tests(_opened: Any, _workload: Any, report: Report, course: Series) -> None:
            for name in ("throughput-1", "throughput-2"):
                if not course.is_done(name):
                    with course.step("throughput", name, report):
                        report.found.setdefault("tests", []).append({"segment": name})
                        happens = self.play.pop(0)
                        if happens is not None:
                            raise happens

        monkeypatch.setattr(of_series.private, "opened", opened)
        monkeypatch.setattr(of_series.private, "run_tests", run_tests)

    def run(self) -> Report:
        report = Report(self.trial)
        try:
            run_series(self.runner, report, {})
        finally:
            self.report = report
        return report

    @property
    def written(self) -> Json:
        found: Json = json.loads((self.folder / "run" / "trials" / "0001" / FILE).read_text())
        return found


Made = Callable[[list[Exception | None]], World]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return lambda play: World(tmp_path, monkeypatch, play)


def test_a_server_that_is_killed_ends_a_sitting_and_not_the_series(made: Made) -> None:
    world = made([None, TrialFailed("the server ended"), None])
    found = world.run().found
    assert [one["segment"] for one in found["tests"]] == ["throughput-1", "throughput-2"]
    assert world.sittings == found["sittings"] == 2
    assert [(one["segment"], one["why"]) for one in found["cut"]] == [("throughput-2", "the server ended")]
    assert not world.home.exists()
    assert world.written["result"] == "finished"


def test_a_stop_keeps_the_tables_and_the_next_call_goes_on(made: Made) -> None:
    world = made([None, Stopped(), None])
    with pytest.raises(Stopped):
        world.run()
    assert world.report.found["cut"][0]["why"] == STOPPED
    assert (world.home / "data").is_dir()
    found = world.run().found
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
    assert [one["segment"] for one in world.report.found["tests"]] == ["throughput-1", "throughput-2"]  # the last, cut
    assert not world.home.exists()
    with pytest.raises(TrialFailed, match=f"failure {FAILURES_MAX}"):  # killed before its trial.json: the same again
        world.run()
    assert world.sittings == FAILURES_MAX


def test_a_result_is_not_made_twice(made: Made) -> None:
    world = made([None, None])
    first = world.run().found
    assert world.run().found["tests"] == first["tests"]
    assert world.sittings == 1


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
    assert [one["segment"] for one in world.run().found["tests"]] == ["throughput-1", "throughput-2"]


def test_a_series_that_goes_on_needs_no_room_for_its_tables(made: Made) -> None:
    world = made([None, Stopped(), None])
    folder = world.folder / "run" / "trials" / "0001"
    assert not has_tables(folder)
    with pytest.raises(Stopped):
        world.run()
    assert has_tables(folder)
    world.run()
    assert not has_tables(folder)
