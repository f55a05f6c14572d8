"""What the progress line says, by a clock of the test's own."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from plimsoll.cli import progress as of_progress
from plimsoll.cli.progress import Progress
from plimsoll.experiment import PlannedTrial


class Clock:
    """Stands until it is set."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(of_progress, "time", clock)
    monkeypatch.setattr(of_progress, "console", lambda: Console(file=io.StringIO(), width=200))
    return clock


def trial(number: int, block: int) -> PlannedTrial:
    treatment: Any = SimpleNamespace(label=f"size {number}")
    return cast(PlannedTrial, SimpleNamespace(number=number, block=block, treatment=treatment, duplicate=False))


def test_a_block_of_windows_is_followed_by_its_rounds(clock: Clock) -> None:
    progress = Progress(6, 600, lambda number: f"figures of {number}")
    progress.event("trial", trial=trial(1, 1))
    progress.event("phase", phase="warmup")
    assert progress._line() == (
        "trial 1 of 6: size 1: warming until the caches are stationary  [0 s, about 10 min 00 s left]"
    )
    clock.now += 60
    for number in (2, 3):
        progress.event("trial", trial=trial(number, 1))
    progress.event("window", trial=trial(2, 1), line={"done": 7}, round=12, rounds=40)
    assert progress._line() == "block 1: round 12 of 40  [60 s, about 9 min 00 s left]"
    clock.now += 60
    progress.event("turn", trial=trial(3, 1))
    progress.event("phase", phase="check")
    assert progress._line().startswith("trial 3 of 6: size 3: checking the answers and the data  [2 min 00 s")
    for number in (1, 2, 3):
        progress.event("trial_end", trial=trial(number, 1), status="finished", reason=None)
    progress.event("block_end", block=1)
    # Three trials took two minutes together, and three are left.
    assert progress._left() == "about 2 min 00 s"
    progress.event("trial", trial=trial(4, 2))
    clock.now += 30
    assert progress._left() == "about 1 min 30 s"
    said = cast(io.StringIO, progress._out.file).getvalue()
    assert "block 1 done, about 2 min 00 s left" in said and "figures of 3" in said
    for number in (4, 5, 6):
        progress.event("trial_end", trial=trial(number, 2), status="skipped", reason="decided after block 1: all told")
    progress.event("block_end", block=2)
    said = cast(io.StringIO, progress._out.file).getvalue()
    assert said.count("the remaining trials are not run: decided after block 1: all told") == 1
    assert "block 2 done" not in said


def test_trials_one_by_one_each_take_their_own_time(clock: Clock) -> None:
    progress = Progress(3, 90, lambda _: "")
    for number, seconds in ((1, 10), (2, 30)):
        progress.event("trial", trial=trial(number, number))
        clock.now += seconds
        progress.event("trial_end", trial=trial(number, number), status="finished", reason=None)
    assert progress._left() == "about 20 s"
    progress.event("trial", trial=trial(3, 3))
    clock.now += 5
    assert progress._left() == "about 15 s"
