"""Runs of windows that end early because all is decided, and those in groups of treatments."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.windows.method import decided_after
from plimsoll.record import open_run
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.windows import blocks as of_blocks

_WORLD = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
made, world, statuses, IN_TWO = (_WORLD[name] for name in ("made", "world", "statuses", "IN_TWO"))


@pytest.mark.parametrize("again", [False, True])
def test_what_is_decided_is_not_measured_any_longer(
    made: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch, world: Any, again: bool
) -> None:
    """Whether it is asked right after the block, or when a run is resumed that was killed just then."""
    decided = {} if again else {2: "all pairs are told apart"}
    monkeypatch.setattr(of_blocks, "_decided", lambda out: decided.get(finished(out)))

    def finished(out: Path) -> int:
        return sum(trial.status == "finished" for trial in open_run(out).trials) // 4

    runner = made()
    if again:

        def hook(what: str, number: int) -> None:
            if (what, number) == ("open", 9):
                raise Stopped

        world.hook = hook
        assert runner.run() == "stopped"
        decided[2] = "all pairs are told apart"
        runner = made()
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished"] * 8 + ["skipped"] * 4
    assert open_run(runner.out).trials[-1].data["reason"] == "decided after block 2: all pairs are told apart"
    assert decided_after(open_run(runner.out)) == 2, "the verdict reads what the run has written"
    assert made("design.stop=never").left == [], "what was skipped has its result"


def test_groups_run_one_after_the_other_and_no_other_server_is_up(made: Callable[..., Runner], world: Any) -> None:
    most = 0

    def hook(_what: str, _number: int) -> None:
        nonlocal most
        most = max(most, len(world.up))

    world.hook = hook
    runner = made("design.blocks=2", groups=IN_TWO)
    assert runner.run() == "finished"
    assert statuses(runner) == ["finished"] * 12 and most == 3, "two treatments and the duplicate of one"
    by_block = {trial.block: trial.group for trial in runner.plan.trials}
    assert list(by_block) == [1, 2, 3, 4] and sorted(list(by_block.values())[:2]) == [1, 2]
    for block in range(2, 5):
        begun = world.done.index(("open", 3 * block - 2))
        assert max(world.done.index(("put back", number)) for number in range(3 * block - 5, 3 * block - 2)) < begun


@pytest.mark.parametrize(("stopped", "first", "looked"), [(5, 4, [3]), (11, 10, [])])
def test_a_stop_in_the_second_group_leaves_the_first_and_goes_on_with_the_second(
    made: Callable[..., Runner],
    world: Any,
    monkeypatch: pytest.MonkeyPatch,
    stopped: int,
    first: int,
    looked: list[int],
) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == ("window 2", stopped):
            raise Stopped

    world.hook = hook
    runner = made("design.blocks=2", groups=IN_TWO)
    assert runner.run() == "stopped"
    assert statuses(runner)[: first - 1] == ["finished"] * (first - 1)
    assert "finished" not in statuses(runner)[first - 1 :]
    world.hook, asked = lambda _what, _number: None, []
    world.done.clear()
    monkeypatch.setattr(of_blocks, "_decided", lambda _: asked.append(len(world.of("open"))))
    again = made("design.blocks=2")
    assert again.plan == runner.plan and again.run() == "finished"
    assert [number for _, number in world.of("open")] == list(range(first, 13))
    assert asked == looked, "it is looked at a replicate that is whole, and at no half of one"


def test_groups_that_are_decided_say_after_which_block(
    made: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        of_blocks, "_decided", lambda out: "all told" if len(list(out.glob("trials/*/trial.json"))) >= 12 else None
    )
    runner = made("design.blocks=3", groups=IN_TWO)
    assert runner.run() == "finished"
    run = open_run(runner.out)
    assert run.trials[-1].data["reason"] == "decided after block 4 (replicate 2): all told"
    assert decided_after(run) == 4
