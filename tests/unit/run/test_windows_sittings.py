"""Windows in several sittings: a run that was stopped or killed goes on with the minutes and looks that it has left."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.record import open_run, writer
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.windows import blocks as of_blocks

# Its fixtures, too: the same servers that only note what is done to them.
_WINDOWS = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
made, world, statuses, IN_TWO = (_WINDOWS[name] for name in ("made", "world", "statuses", "IN_TWO"))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch, world: Any) -> list[float]:
    """A clock in seconds that runs while a server is opened: a minute each."""
    seconds = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return seconds[0]

        @staticmethod
        def monotonic_ns() -> int:
            return round(seconds[0] * 1e9)

        time_ns = monotonic_ns

    def hook(what: str, _number: int) -> None:
        seconds[0] += 60 * (what == "open")

    world.hook = hook
    monkeypatch.setattr(of_blocks, "time", Clock)
    monkeypatch.setattr(writer, "time", Clock)
    return seconds


@pytest.mark.usefixtures("now")
def test_no_block_is_begun_that_does_not_fit(made: Callable[..., Runner]) -> None:
    runner = made("design.minutes=9")
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished"] * 8 + ["skipped"] * 4
    assert open_run(runner.out).trials[-1].data["reason"] == "block 2 was the last that fits into 9 minutes"


@pytest.mark.parametrize(("stopped", "opened", "finished"), [(3, 8, 8), (7, 4, 8), (9, 4, 12), (11, 0, 8)])
def test_a_run_that_goes_on_has_the_minutes_that_are_left(
    made: Callable[..., Runner], world: Any, now: list[float], stopped: int, opened: int, finished: int
) -> None:
    """Of 16: four a block. What a stop has cut off counts, and the time between the two sittings does not."""
    runs = world.hook

    def stops(what: str, number: int) -> None:
        runs(what, number)
        if (what, number) == ("open", stopped):
            now[0] += 120
            raise Stopped

    world.hook = stops
    runner = made("design.minutes=16", "design.blocks=4", "design.stop=never")
    assert runner.run() == "stopped"
    world.hook = runs
    world.done.clear()
    now[0] += 36_000
    assert made("design.minutes=16", "design.blocks=4").run() == "finished"
    assert statuses(runner) == ["finished"] * finished + ["skipped"] * (16 - finished)
    assert len(world.of("open")) == opened


def test_what_a_killed_run_had_begun_to_skip_is_not_measured_after_all(
    made: Callable[..., Runner], world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_blocks, "_decided", lambda _: "all told")
    runner = made()
    assert runner.run() == "finished"
    (runner.out / "trials/0006/trial.json").unlink()
    monkeypatch.setattr(of_blocks, "_decided", lambda _: None)
    world.done.clear()
    assert made().run() == "finished" and world.done == []
    assert open_run(runner.out).trials[5].data["reason"] == "decided after block 1: all told"


@pytest.mark.usefixtures("now")
def test_groups_end_after_a_whole_replicate_and_within_the_time(
    made: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_blocks, "_decided", lambda _: None)
    runner = made("design.minutes=17", "design.blocks=4", groups=IN_TWO)
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished"] * 12 + ["skipped"] * 12
    reason = open_run(runner.out).trials[-1].data["reason"]
    assert reason == "block 4 (replicate 2) was the last that fits into 17 minutes"
