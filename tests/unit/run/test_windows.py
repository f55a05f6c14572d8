"""Blocks of windows: turns, failures, stops, on servers that only note what is done."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Fault
from plimsoll.environment.groups.freezer import NotFrozen
from plimsoll.experiment.design import turns
from plimsoll.record import open_run
from plimsoll.run.agent import AgentFailed
from plimsoll.run.refusals import Refused, StoodStill, TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped

_WORLD = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
made, world, statuses = (_WORLD[name] for name in ("made", "world", "statuses"))


def test_one_is_awake_at_a_time_and_each_has_every_round(made: Callable[..., Runner], world: Any) -> None:
    runner = made("design.blocks=2")
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished"] * 8
    windows = Counter(entry for entry in world.done if entry[0].startswith("window"))
    assert set(windows.values()) == {1} and len(windows) == 8 * 4
    for block, first in ((1, 1), (2, 5)):
        for round_ in range(1, 5):
            order = [number for what, number in world.of(f"window {round_}") if first <= number < first + 4]
            assert order == [first + place for place in turns(7, block, round_, 4)]
    trial = open_run(runner.out).trials[0].data
    assert trial["watched"] == "after" and (trial["before"], trial["after"]) == (1, 1)
    told = trial["windows"]
    assert (told["seconds"], told["lead_in_seconds"], told["rounds"]) == (1.0, 0.25, 4)
    assert told["thaw_ns"] == {"median": 10, "max": 10} and told["freeze_ns"] == {"median": 1000, "max": 1000}
    assert "at_turns" not in told, "they differ in nothing that a turn sets"
    assert [phase["name"] for phase in trial["phases"]] == ["measure", "check"]
    # All have ended before the first is put back: one's pages may be in the swap file of another.
    assert world.done.index(("put back", 4)) > max(world.done.index(("kill", number)) for number in range(1, 5))


def test_turns_are_decided_by_seed_block_and_round() -> None:
    orders = [tuple(turns(seed, block, round_, 4)) for seed in (1, 2) for block in (1, 2) for round_ in range(1, 30)]
    assert orders == [tuple(turns(seed, block, n, 4)) for seed in (1, 2) for block in (1, 2) for n in range(1, 30)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(set(orders)) == 24  # every order there is, in 116 draws
    leads = Counter(turns(3, 1, round_, 4)[0] for round_ in range(2000))
    assert all(abs(count - 500) < 80 for count in leads.values())  # four standard deviations


@pytest.mark.parametrize(
    ("at", "error", "said"),
    [
        ("open", TrialFailed("the server did not start"), "the server did not start"),
        ("warm", AgentFailed("load", 3, "unreachable"), "explained: unreachable"),
        ("window 2", AgentFailed("load", 3, "every connection was lost"), "explained: every connection was lost"),
        ("window 3", StoodStill("round 3: transactions of its window had not ended", 31), "round 3: transactions"),
        ("freeze", NotFrozen("not frozen in 10 s", remedy="see the log"), "not frozen in 10 s"),
        ("end", TrialFailed("the agent had not ended"), "the agent had not ended"),
        ("check", TrialFailed("the data are wrong"), "the data are wrong"),
    ],
)
def test_what_goes_wrong_with_one_ends_its_trial_alone(
    made: Callable[..., Runner], world: Any, at: str, error: Exception, said: str
) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == (at, 2):
            raise error

    world.hook = hook
    runner = made("design.blocks=2")
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished", "failed", *["finished"] * 6]
    trial = open_run(runner.out).trials[1].data
    assert trial["reason"].startswith(said)
    if at.startswith("window"):
        assert trial["windows"]["rounds"] == int(at[-1]) - 1 and trial["server_log_tail"] == "its last words"
        assert trial["watched"] == "before"
        assert trial["windows"].get("stood_still_seconds") == (31 if isinstance(error, StoodStill) else None)
        killed = world.done.index(("kill", 2))
        assert not [entry for entry in world.done[killed:] if entry[0].startswith("window") and entry[1] == 2]
    assert world.up == set() and world.frozen == set()
    assert Counter(number for what, number in world.done if what.startswith("window"))[1] == 4


def test_a_fault_of_the_machine_ends_the_run_and_leaves_nothing_frozen(made: Callable[..., Runner], world: Any) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == ("window 2", 3):
            raise Fault("the disk is full", remedy="free some")

    world.hook = hook
    runner = made()
    with pytest.raises(Fault, match="disk is full"):
        runner.run()
    assert world.up == set() and world.frozen == set() and len(world.of("put back")) == 4
    assert open_run(runner.out).data["status"] == "failed"


@pytest.mark.parametrize("at", ["open", "warm", "load", "freeze", "thaw", "window 3", "end", "check"])
def test_a_block_that_was_stopped_is_done_anew_whole(made: Callable[..., Runner], world: Any, at: str) -> None:
    stops = [True]

    def hook(what: str, number: int) -> None:
        if (what, number) == (at, 6) and stops:
            stops.clear()
            raise Stopped

    world.hook = hook
    runner = made()
    assert runner.run() == "stopped"
    assert world.up == set() and world.frozen == set()
    found = statuses(runner)
    assert found[:4] == ["finished"] * 4 and "finished" not in found[4:] and found[5] == "stopped"
    world.done.clear()
    assert made().run() == "finished"
    assert statuses(runner) == ["finished"] * 12
    assert [number for _, number in world.of("open")] == list(range(5, 13))


def test_a_block_that_a_kill_has_cut_between_its_results_is_done_anew(made: Callable[..., Runner], world: Any) -> None:
    runner = made("design.blocks=2")
    assert runner.run() == "finished"
    (runner.out / "trials/0007/trial.json").unlink()
    world.done.clear()
    assert made("design.blocks=2").run() == "finished"
    assert [number for _, number in world.of("open")] == [5, 6, 7, 8]


def test_what_every_server_refuses_ends_the_run_when_the_block_is_written(
    made: Callable[..., Runner], world: Any
) -> None:
    def hook(what: str, _number: int) -> None:
        if what == "warm":
            raise Refused("no such table", remedy="make it")

    world.hook = hook
    runner = made()
    with pytest.raises(Fault, match="no such table; the 8 trials that are left would fail the same way"):
        runner.run()
    assert statuses(runner) == ["failed"] * 4 + ["not run"] * 8
