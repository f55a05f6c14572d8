"""Blocks of windows whose servers differ in settings of the whole machine: set at each turn, and put back."""

from __future__ import annotations

import contextlib
import runpy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Fault
from plimsoll.experiment import PlannedTrial
from plimsoll.record import open_run
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.windows import block as of_block

_WORLD = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
made, world, statuses = (_WORLD[name] for name in ("made", "world", "statuses"))


class FakeTurning:
    """What each turn sets, where the servers of a block differ in something of the whole machine."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.turns = Counter[int]()

    def turn(self, trial: PlannedTrial) -> None:
        assert self.world.up == self.world.frozen, "set while all stand still"
        self.turns[trial.number] += 1
        self.world.does(f"turn {self.turns[trial.number]}", trial.number)

    def of(self, trial: PlannedTrial) -> dict[str, Any]:
        return {"a key": trial.number}

    def caveats(self) -> list[str]:
        return ["switched at each turn"]


@pytest.fixture
def turning(monkeypatch: pytest.MonkeyPatch, world: Any) -> None:
    @contextlib.contextmanager
    def turned(*_: Any) -> Iterator[FakeTurning]:
        try:
            yield FakeTurning(world)
        finally:
            assert world.up == set()
            world.does("turned back", 0)

    monkeypatch.setattr(of_block, "turned", turned)


@pytest.mark.usefixtures("turning")
def test_the_machine_is_set_before_a_server_starts_and_before_it_is_thawed(
    made: Callable[..., Runner], world: Any
) -> None:
    runner = made("design.blocks=1")
    assert runner.run() == "finished"
    second = [what for what, number in world.done if number == 2]
    assert second[:2] == ["turn 1", "open"]
    assert all(second[place + 1] == "thaw" for place, what in enumerate(second) if what[:4] == "turn" and place)
    assert [what for what in second if what[:4] == "turn"] == [f"turn {place}" for place in range(1, 7)]
    trial = open_run(runner.out).trials[1].data
    assert trial["windows"]["at_turns"] == {"a key": 2} and trial["caveats"] == ["switched at each turn"]
    assert world.done[-1] == ("turned back", 0)


@pytest.mark.usefixtures("turning")
@pytest.mark.parametrize("at", ["turn 3", "turn 6"])
@pytest.mark.parametrize("error", [Fault("refused", remedy=""), TrialFailed("refused")])
def test_a_turn_that_cannot_be_set_ends_its_trial_alone(
    made: Callable[..., Runner], world: Any, at: str, error: Exception
) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == (at, 2):
            raise error

    world.hook = hook
    runner = made("design.blocks=1")
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished", "failed", "finished", "finished"]
    trial = open_run(runner.out).trials[1].data
    assert trial["reason"] == "refused" and trial["windows"]["rounds"] == int(at[-1]) - 2
    assert world.up == set() and world.frozen == set() and world.done[-1] == ("turned back", 0)


@pytest.mark.usefixtures("turning")
def test_what_the_machine_refuses_at_the_start_ends_the_run_and_what_others_set_does_not(
    made: Callable[..., Runner], world: Any
) -> None:
    errors: list[Exception] = [TrialFailed("changed by another"), Fault("refused", remedy="")]

    def hook(what: str, number: int) -> None:
        if what == "turn 1" and number in (2, 6):
            raise errors.pop(0)

    world.hook = hook
    runner = made("design.blocks=2")
    with pytest.raises(Fault, match="refused"):
        runner.run()
    assert statuses(runner)[:4] == ["finished", "failed", "finished", "finished"]
    assert ("open", 2) not in world.done and world.up == world.frozen == set()
