"""Blocks of windows on servers, loads and groups that only note what is done: turns, failures, stops, skips."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.analysis.windows.method import decided_after
from plimsoll.environment import Fault, StateDir
from plimsoll.environment.groups.freezer import NotFrozen
from plimsoll.experiment import PlannedTrial, load
from plimsoll.experiment.design import turns
from plimsoll.experiment.groups import Groups
from plimsoll.experiment.replicates import in_groups
from plimsoll.record import open_run
from plimsoll.run import runner as of_runner
from plimsoll.run.agent import AgentFailed
from plimsoll.run.designs import ARRANGEMENTS, Arrangement
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import Refused, StoodStill, TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped
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


def of_block_one(runner: Runner) -> list[PlannedTrial]:
    return [trial for trial in runner.plan.trials if trial.block == 1]


def test_one_is_awake_at_a_time_and_each_has_every_round(made: Callable[..., Runner], world: World) -> None:
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
    made: Callable[..., Runner], world: World, at: str, error: Exception, said: str
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


def test_a_fault_of_the_machine_ends_the_run_and_leaves_nothing_frozen(
    made: Callable[..., Runner], world: World
) -> None:
    def hook(what: str, number: int) -> None:
        if (what, number) == ("window 2", 3):
            raise Fault("the disk is full", remedy="free some")

    world.hook = hook
    runner = made()
    with pytest.raises(Fault, match="disk is full"):
        runner.run()
    assert world.up == set() and world.frozen == set() and len(world.of("put back")) == 4
    assert open_run(runner.out).data["status"] == "failed"


class FakeTurning:
    """What each turn sets, where the servers of a block differ in something of the whole machine."""

    def __init__(self, world: World) -> None:
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
def turning(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
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
    made: Callable[..., Runner], world: World
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
    made: Callable[..., Runner], world: World, at: str, error: Exception
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
    made: Callable[..., Runner], world: World
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


@pytest.mark.parametrize("at", ["open", "warm", "load", "freeze", "thaw", "window 3", "end", "check"])
def test_a_block_that_was_stopped_is_done_anew_whole(made: Callable[..., Runner], world: World, at: str) -> None:
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


def test_a_block_that_a_kill_has_cut_between_its_results_is_done_anew(
    made: Callable[..., Runner], world: World
) -> None:
    runner = made("design.blocks=2")
    assert runner.run() == "finished"
    (runner.out / "trials/0007/trial.json").unlink()
    world.done.clear()
    assert made("design.blocks=2").run() == "finished"
    assert [number for _, number in world.of("open")] == [5, 6, 7, 8]


def test_what_every_server_refuses_ends_the_run_when_the_block_is_written(
    made: Callable[..., Runner], world: World
) -> None:
    def hook(what: str, _number: int) -> None:
        if what == "warm":
            raise Refused("no such table", remedy="make it")

    world.hook = hook
    runner = made()
    with pytest.raises(Fault, match="no such table; the 8 trials that are left would fail the same way"):
        runner.run()
    assert statuses(runner) == ["failed"] * 4 + ["not run"] * 8


@pytest.mark.parametrize("again", [False, True])
def test_what_is_decided_is_not_measured_any_longer(
    made: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch, world: World, again: bool
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


IN_TWO = Groups("t1", (("t1", "t2"), ("t1", "t3")), "too little memory")


def test_groups_run_one_after_the_other_and_no_other_server_is_up(made: Callable[..., Runner], world: World) -> None:
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
    world: World,
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
