"""A run that boots this machine into its kernels: its plan, its reboots, and kills, stops and failures between them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_boot import NEW, OLD, FakeMachine
from two_kernels import Json, print_of, source_in

from plimsoll.environment import Fault, StateDir, devices, undo, units
from plimsoll.environment.boots import once
from plimsoll.environment.journal import journal as journals
from plimsoll.environment.journal.journal import Journal
from plimsoll.run import one_trial, own_fingerprints
from plimsoll.run.booted import on_the_machine
from plimsoll.run.booted.on_the_machine import MachineRunner
from plimsoll.run.host import ThisMachine
from plimsoll.run.observer import Silent
from plimsoll.run.runner import Impossible


class Killed(BaseException):
    """As SIGKILL does it: nothing of ours runs afterwards but `undo`."""


class World(FakeMachine):
    """A machine that is booted again and again: its kernel, its boot, its units, and what was measured on which."""

    def __init__(self, root: Path, state: StateDir, way: str = once.GRUB) -> None:
        super().__init__(root, way)
        self.state, self.number, self.release = state, 1, NEW
        self.goes_down, self.enabled, self.dead = False, set[str](), set[str]()
        self.measured: list[tuple[int, str, int]] = []  # trial, release, boot
        self.misses = False  # a boot loader that boots what it likes

    def __call__(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.goes_down |= list(argv) in (["systemctl", way] for way in ("reboot", "kexec"))
        self.goes_down |= list(argv) == ["shutdown", "-r", "+5"]
        return super().__call__(argv)

    def systemctl(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if words[0] in ("enable", "disable"):
            (self.enabled.add if words[0] == "enable" else self.enabled.discard)(words[1])
        return subprocess.CompletedProcess(words, 0, "running", "")

    def comes_up(self) -> None:
        self.release = NEW if self.misses else self.boot()
        self.boot()  # takes what was for one boot back, if anything were left
        self.number, self.goes_down = self.number + 1, False
        self.dead |= {path.stem for path in self.state.journal.glob("*.jsonl")}


class Host(ThisMachine):
    def __init__(self, world: World) -> None:
        self.world = world

    def read(self, path: str) -> str:
        told = {
            on_the_machine._RELEASE: self.world.release,
            on_the_machine._BOOT_ID: f"boot {self.world.number}",
            on_the_machine._UPTIME: "1000.0 1.0",
        }
        return told.get(path) or super().read(path)


@pytest.fixture
def world(tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "root").mkdir()
    found = World(tmp_path / "root", state)
    for name in ("system", "runtime"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(units, "FOLDER", tmp_path / "system")
    monkeypatch.setattr(units, "RUNTIME", tmp_path / "runtime")
    monkeypatch.setattr(units, "systemctl", found.systemctl)
    monkeypatch.setattr(once, "call", found)
    monkeypatch.setattr(on_the_machine, "VOLATILE", frozenset[str]())  # as this test's folders may be
    alive = Journal.owner_is_alive
    monkeypatch.setattr(Journal, "owner_is_alive", lambda self: self.run_id not in found.dead and alive(self))
    monkeypatch.setattr(MachineRunner, "fingerprint", lambda self: print_of(self.host.read(on_the_machine._RELEASE)))
    monkeypatch.setattr(MachineRunner, "_servers", lambda _self: contextlib.nullcontext(lambda _log: None))

    def run_trial(_context: object, log: Any, _server: object) -> None:
        found.measured.append((log.trial.number, found.release, found.number))

    monkeypatch.setattr(one_trial, "run_trial", run_trial)
    yield found
    journals.step_hook = None


def of_machine(tmp_path: Path, state: StateDir, world: World, *sets: str) -> MachineRunner:
    source = source_in(tmp_path, 'environment.boot.by="boot loader"', *sets)
    found = MachineRunner(source, tmp_path / "out", state, Silent(), ["plimsoll"], host=Host(world))
    found.way = world.machine_way()
    return found


def to_its_end(tmp_path: Path, state: StateDir, world: World) -> None:
    """As the unit does it at each boot, for as long as it is enabled."""
    for _ in range(20):
        if world.goes_down:
            world.comes_up()
        if (tmp_path / "out/run.json").exists() and not world.enabled:
            return
        of_machine(tmp_path, state, world).run()
    raise AssertionError("it never ends")


class Told(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def event(self, name: str, **info: Any) -> None:
        if name == "note":
            self.notes.append(info["text"])


def boots(tmp_path: Path) -> Json:
    found: Json = json.loads((tmp_path / "out/boots.json").read_text())
    return found


def test_the_plan_on_bare_metal_asks_for_leave_and_says_how_often_it_reboots(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    needs = of_machine(tmp_path, state, world).needs()
    assert "this machine is rebooted 5 times, by GRUB; its default entry stays" in needs.remarks
    assert not [reason for reason in needs.impossible if "boot" in reason or "kernel" in reason], needs.impossible
    refused = of_machine(tmp_path, state, world, "environment.boot.reboots=false").needs().impossible
    assert any("would be rebooted 5 times; allow it with --set environment.boot.reboots=true" in one for one in refused)
    (world.root / f"boot/vmlinuz-{OLD}").unlink()
    units.RUNTIME.rmdir()
    refused = of_machine(tmp_path, state, world).needs().impossible
    assert any(f"environment.kernels.old: GRUB: /boot/vmlinuz-{OLD} is not there" in one for one in refused)
    assert "what goes on after a reboot: systemd is not this machine's init" in refused


def test_each_trial_is_measured_in_a_boot_of_its_kernel_and_the_machine_ends_as_it_began(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    to_its_end(tmp_path, state, world)
    plan = of_machine(tmp_path, state, world).plan
    wanted = {one.number: OLD if one.treatment.settings.environment.kernel == "old" else NEW for one in plan.trials}
    assert {number: release for number, release, _ in world.measured} == wanted
    assert [number for number, _, _ in world.measured] == [1, 2, 3, 4]
    assert [boot for _, _, boot in world.measured] == [2, 3, 4, 5], "each block boots each kernel anew"
    assert world.release == NEW and world.number == 6, "back into what it booted before"
    assert not world.enabled and not [*units.FOLDER.iterdir()] and not [*state.journal.iterdir()]
    assert [boot["release"] for boot in boots(tmp_path)["boots"]] == [wanted[number] for number in (1, 2, 3, 4)]
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert run["status"] == "finished"
    whole = json.loads((tmp_path / "out/fingerprint.json").read_text())
    assert {name: one["kernel"]["release"] for name, one in whole["kernels"].items()} == {"old": OLD, "new": NEW}
    for number, release in wanted.items():
        own = json.loads((tmp_path / f"out/trials/{number:04d}/fingerprint.json").read_text())
        assert own["kernel"]["release"] == release


def test_how_equals_differ_in_one_boot_does_not_stand_beside_boots(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    (state.a_a / "newest.json").write_text('{"run": "a-a", "ratio_spread": 1.01}')
    of_machine(tmp_path, state, world).run()
    assert json.loads((tmp_path / "out/run.json").read_text())["a_a"] is None


def test_a_shutdown_that_somebody_has_planned_stays_as_it_is(tmp_path: Path, state: StateDir, world: World) -> None:
    planned = world.root / "run/systemd/shutdown/scheduled"
    planned.parent.mkdir(parents=True)
    planned.touch()
    to_its_end(tmp_path, state, world)
    assert [number for number, _, _ in world.measured] == [1, 2, 3, 4] and not world.enabled
    assert not world.goes_down and not any(asked.startswith("shutdown") for asked in world.asked)


def test_what_a_reboot_empties_is_refused(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = of_machine(tmp_path, state, world)
    assert not [one for one in runner.needs().impossible if "empties" in one]
    monkeypatch.setattr(on_the_machine, "VOLATILE", frozenset({devices.mount_of(tmp_path).fs}))
    refused = [one for one in runner.needs().impossible if "which a reboot empties" in one]
    assert len(refused) == 2 and "PLIMSOLL_STATE" in refused[0] and "--out" in refused[1]


def test_a_run_that_has_ended_and_is_resumed_reboots_nothing(tmp_path: Path, state: StateDir, world: World) -> None:
    to_its_end(tmp_path, state, world)
    booted = world.number
    assert of_machine(tmp_path, state, world).run() == "finished"
    assert not world.goes_down and world.number == booted and not world.enabled, "it is in its default already"


def test_killed_at_every_step_of_its_first_sitting_it_boots_what_it_booted_before(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    names: list[str] = []

    def sitting(kill_at: int) -> None:
        count = 0

        def hook(name: str, _number: int) -> None:
            nonlocal count
            count += 1
            names.append(name)
            if 0 < kill_at <= count:
                raise Killed  # once killed it takes no further step, not even to put back

        journals.step_hook = hook
        try:
            of_machine(tmp_path, state, world).run()
        finally:
            journals.step_hook = None

    def cleaned() -> None:
        world.dead |= {path.stem for path in state.journal.glob("*.jsonl")}
        assert all(undone.ok for undone in undo(state, force=True))
        for left in state.journal.glob("*.tmp"):
            left.unlink()  # of a process that lives, as the test's does
        assert world.boot() == NEW and not world.enabled and not [*units.FOLDER.iterdir()]
        world.goes_down = False

    sitting(0)
    assert (world.goes_down and world.values()["next_entry"]) or world.boot() == NEW
    cleaned()
    every = len(names)
    assert {"written next boot", "written unit"} <= set(names) and every > 10
    for number in range(1, every + 1):
        without_record(tmp_path)
        with contextlib.suppress(Killed):
            sitting(number)
        cleaned()
    without_record(tmp_path)
    world.measured.clear()
    to_its_end(tmp_path, state, world)
    assert [number for number, _, _ in world.measured] == [1, 2, 3, 4], "and the run can still be made whole"


def without_record(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_power_that_fails_in_a_boot_gives_its_trials_a_boot_of_their_own(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    of_machine(tmp_path, state, world).run()
    world.comes_up()
    world.comes_up()  # it failed before the unit was started; now that is, on the default kernel
    with pytest.raises(Fault, match="was to boot"):
        of_machine(tmp_path, state, world).run()
    assert world.measured == [] and not world.enabled
    of_machine(tmp_path, state, world).run()  # as the remedy says
    to_its_end(tmp_path, state, world)
    plan = of_machine(tmp_path, state, world).plan
    wanted = {one.number: OLD if one.treatment.settings.environment.kernel == "old" else NEW for one in plan.trials}
    assert {number: release for number, release, _ in world.measured} == wanted


def test_a_boot_that_came_up_with_another_kernel_measures_nothing(
    tmp_path: Path, state: StateDir, world: World
) -> None:
    world.misses = True
    with pytest.raises(Fault, match=re.escape(f"was to boot {OLD} by GRUB, and came up with {NEW}")):
        to_its_end(tmp_path, state, world)
    assert all(release == NEW for _, release, _ in world.measured)
    plan = of_machine(tmp_path, state, world).plan
    old = {one.number for one in plan.trials if one.treatment.settings.environment.kernel == "old"}
    assert not old & {number for number, _, _ in world.measured}
    assert not world.enabled, "and does not try again at the next boot"


def test_a_resume_that_is_refused_leaves_no_unit(tmp_path: Path, state: StateDir, world: World) -> None:
    of_machine(tmp_path, state, world).run()
    world.comes_up()
    (world.root / f"boot/vmlinuz-{OLD}").unlink()
    (world.root / f"boot/vmlinuz-{NEW}").unlink()
    runner = of_machine(tmp_path, state, world)
    runner.observe(told := Told())
    with pytest.raises(Impossible, match="is not there"):
        runner.run()
    assert told.notes[-1].startswith(f"this machine is still in kernel old ({OLD})")
    assert not world.enabled and not [*units.FOLDER.iterdir()], "it would go on at some boot in some weeks"
    assert not [*state.journal.iterdir()]


def test_a_stop_while_the_last_trial_of_a_boot_is_put_back_stops_the_reboot_too(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(tmp_path, state, world).run()
    world.comes_up()
    runner = of_machine(tmp_path, state, world)

    def stopped(_context: object, log: Any, _server: object) -> None:
        world.measured.append((log.trial.number, world.release, world.number))
        with runner.interrupts.must_finish():
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(one_trial, "run_trial", stopped)
    runner.observe(told := Told())
    assert runner.run() == "stopped"
    left_in = f"this machine is still in kernel old ({OLD}), which the run booted; `systemctl reboot` boots its default"
    assert told.notes[-1] == left_in
    assert len(world.measured) == 1 and not world.goes_down and "next_entry" not in world.values()
    assert not world.enabled and not [*state.journal.iterdir()]


@pytest.mark.parametrize("at", ["before put back", "the machine reboots"])
def test_a_stop_after_the_entry_is_armed_takes_it_back(tmp_path: Path, state: StateDir, world: World, at: str) -> None:
    runner = of_machine(tmp_path, state, world)

    class Stopping(Silent):
        def event(self, name: str, **info: Any) -> None:  # noqa: ARG002
            if str(info.get("text", "")).startswith(at):
                signal.raise_signal(signal.SIGINT)

    runner.observe(Stopping())
    if at == "before put back":
        left_to = runner._left_to_its_successor

        def asked() -> Any:
            found = left_to()
            signal.raise_signal(signal.SIGINT)  # the signal comes when all was left to the run's successor
            return found

        runner._left_to_its_successor = asked  # type: ignore[method-assign]
    assert runner.run() == "stopped"
    assert not world.goes_down and "next_entry" not in world.values() and not world.enabled
    assert not [*state.journal.iterdir()]


def test_an_error_once_the_entry_is_armed_takes_it_back(tmp_path: Path, state: StateDir, world: World) -> None:
    class Gone(Silent):
        def event(self, name: str, **info: Any) -> None:  # noqa: ARG002
            if str(info.get("text", "")).startswith("the machine reboots"):
                raise BrokenPipeError("the terminal is gone")

    runner = of_machine(tmp_path, state, world)
    runner.observe(Gone())
    with pytest.raises(BrokenPipeError):
        runner.run()
    assert "next_entry" not in world.values() and not world.enabled and not [*state.journal.iterdir()]


def test_a_boot_with_other_parameters_than_were_wanted_measures_nothing(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kexec").mkdir()
    machine = World(tmp_path / "kexec", state, once.KEXEC)
    monkeypatch.setattr(once, "call", machine)
    sets = ['environment.boot.by="kexec"', f'environment.kernels.old.release="{NEW}"']
    sets.append('environment.kernels.old.parameters="nosmt"')
    of_machine(tmp_path, state, machine, *sets).run()
    assert machine.goes_down
    machine.comes_up()
    machine.release = NEW  # power failed: it came up with the same kernel, by its boot loader
    with pytest.raises(Fault, match=r"was to boot .* by kexec, and came up with its boot loader's command line"):
        of_machine(tmp_path, state, machine, *sets).run()
    assert machine.measured == [] and world.measured == [] and not world.enabled


def test_a_run_that_was_killed_while_its_record_was_made_is_resumed(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_given: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(own_fingerprints, "shared", killed)
        with pytest.raises(Killed):
            of_machine(tmp_path, state, world).run()
    assert (tmp_path / "out/run.json").exists() and not (tmp_path / "out/boots.json").exists()
    of_machine(tmp_path, state, world).run()
    to_its_end(tmp_path, state, world)
    assert [number for number, _, _ in world.measured] == [1, 2, 3, 4] and world.release == NEW


def test_a_kernel_that_panics_under_its_trials_is_not_booted_for_ever(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(_context: object, _log: object, _server: object) -> None:
        world.measured.append((0, world.release, world.number))
        journals.step_hook = dead
        raise Killed

    def dead(_name: str, _number: int) -> None:
        raise Killed

    monkeypatch.setattr(one_trial, "run_trial", panics)
    with pytest.raises(Fault, match=r"went down 2 times under trial 1, in kernel old .* not booted into it again"):
        for _ in range(20):
            with contextlib.suppress(Killed):
                of_machine(tmp_path, state, world).run()
            journals.step_hook = None
            world.comes_up()
    assert [number for number, _, _ in world.measured] == [0, 0] and not world.enabled
    of_machine(tmp_path, state, world).run()
    assert world.goes_down, "by hand it is tried again"


def test_stops_in_a_boot_are_no_panics(
    tmp_path: Path, state: StateDir, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(_context: object, _log: object, _server: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(one_trial, "run_trial", stops)
    for _ in range(5):
        assert of_machine(tmp_path, state, world).run() == "stopped"
        if not world.goes_down:  # it was stopped, and the machine rebooted by hand
            of_machine(tmp_path, state, world).way.reboot()
        world.comes_up()
    assert {boot["ended"] for boot in boots(tmp_path)["boots"]} == {True}
