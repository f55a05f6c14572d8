"""One boot into another kernel: what is found in a tree of /boot, and that after a kill at every step the machine
boots what it booted before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_boot import CONFIG, NEW, OLD, OLD_ENTRY, FakeMachine

from plimsoll.environment import Journal, StateDir, undo
from plimsoll.environment.boots import once
from plimsoll.environment.boots.once import Grub, Kexec, Wanted
from plimsoll.environment.journal import journal as journals


class Killed(BaseException):
    """As SIGKILL does it: nothing of ours runs afterwards but `undo`."""


@pytest.fixture(params=[once.GRUB, once.SYSTEMD_BOOT, once.KEXEC])
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMachine]:
    root = tmp_path / "root"
    root.mkdir()
    found = FakeMachine(root, request.param)
    monkeypatch.setattr(once, "call", found)
    yield found
    journals.step_hook = None


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state").prepare()


def test_one_boot_into_another_kernel_and_no_other(machine: FakeMachine, state: StateDir) -> None:
    way = machine.machine_way()
    assert way.name == machine.way and way.why_not(Wanted(OLD)) is None
    assert machine.boot() == NEW, "the default"
    journal = Journal.create(state, "run")
    way.arm(Wanted(OLD), journal)
    assert machine.boot() == OLD
    assert all(undone.ok for undone in journal.put_back_each())
    assert machine.boot() == NEW, "what it booted before"


def at_each_step(state: StateDir, act: Callable[[], object]) -> Iterator[tuple[int, str]]:
    """Kills `act` at every durable step, one after the other; yields where, for what is to hold then."""
    steps: list[str] = []

    def run(kill_at: int) -> None:
        count = 0

        def hook(name: str, _number: int) -> None:
            nonlocal count
            count += 1
            steps.append(name)
            if count == kill_at:
                raise Killed

        journals.step_hook = hook
        try:
            act()
        finally:
            journals.step_hook = None

    run(0)
    undo(state, force=True)
    for number, name in enumerate([*steps], start=1):
        with pytest.raises(Killed):
            run(number)
        yield number, name
        for left in state.journal.glob("*.tmp"):
            left.unlink()  # of a process that lives, as the test's does


def test_killed_at_every_step_of_arming_it_boots_what_it_booted_before(machine: FakeMachine, state: StateDir) -> None:
    way, seen = machine.machine_way(), []
    for number, name in at_each_step(state, lambda: way.arm(Wanted(OLD), Journal.create(state, "run"))):
        seen.append(name)
        assert all(undone.ok for undone in undo(state, force=True))
        assert machine.boot() == NEW, f"killed at step {number}, {name}"
    assert any(name.startswith("after boot_once_") for name in seen), seen


def test_killed_at_every_step_and_booted_at_once_only_that_boot_differs(machine: FakeMachine, state: StateDir) -> None:
    way, booted = machine.machine_way(), set()
    for number, name in at_each_step(state, lambda: way.arm(Wanted(OLD), Journal.create(state, "run"))):
        booted.add(machine.boot())  # power fails, and nobody has put anything back
        assert all(undone.ok for undone in undo(state, force=True))
        assert machine.boot() == NEW, f"killed at step {number}, {name}"
    assert booted == {OLD, NEW}


def test_killed_at_every_step_of_the_putting_back(machine: FakeMachine, state: StateDir) -> None:
    way = machine.machine_way()

    def armed_and_put_back() -> None:
        journal = Journal.create(state, "run")
        hook, journals.step_hook = journals.step_hook, None
        way.arm(Wanted(OLD), journal)
        journals.step_hook = hook
        journal.put_back_each()

    seen = []
    for number, name in at_each_step(state, armed_and_put_back):
        seen.append(name)
        assert all(undone.ok for undone in undo(state, force=True))
        assert machine.boot() == NEW, f"killed at step {number}, {name}"
    assert "taken back" in seen


def test_what_somebody_else_has_chosen_since_is_his(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    machine = FakeMachine(tmp_path / "root", once.GRUB)
    monkeypatch.setattr(once, "call", machine)
    machine.grubenv({"saved_entry": "kept", "next_entry": "his"})
    journal = Journal.create(state, "run")
    machine.machine_way().arm(Wanted(OLD), journal)
    assert machine.values()["next_entry"] == OLD_ENTRY
    journal.put_back_each()
    assert machine.values() == {"saved_entry": "kept", "next_entry": "his"}, "as it was found"
    journal = Journal.create(state, "again")
    machine.machine_way().arm(Wanted(OLD), journal)
    machine.grubenv({"next_entry": "another"})
    (undone,) = journal.put_back_each()
    assert undone.is_left and "has become another since" in undone.what
    assert machine.values() == {"next_entry": "another"}


def test_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for way in once.WAYS:
        (tmp_path / way).mkdir()
        machine = FakeMachine(tmp_path / way, way)
        one = found[way] = machine.machine_way()
        assert "is not there; install the kernel's package" in (one.why_not(Wanted("6.99")) or "")
        assert "is not installed" in (type(one)(machine.root, lambda _: False).why_not(Wanted(OLD)) or "")
        assert "leave folder out, or boot it by qemu" in (one.why_not(Wanted(OLD, folder=Path("/opt/k"))) or "")
    assert "choose kexec" in (found[once.GRUB].why_not(Wanted(OLD, "quiet")) or "")
    assert "choose kexec" in (found[once.SYSTEMD_BOOT].why_not(Wanted(OLD, "quiet")) or "")
    assert found[once.KEXEC].why_not(Wanted(OLD, "quiet")) is None
    disabled = tmp_path / once.KEXEC / "proc/sys/kernel/kexec_load_disabled"
    disabled.parent.mkdir(parents=True)
    disabled.write_text("1\n")
    assert "kexec_load_disabled is set" in (found[once.KEXEC].why_not(Wanted(OLD)) or "")
    disabled.write_text("0\n")
    assert found[once.KEXEC].why_not(Wanted(OLD)) is None
    (tmp_path / once.KEXEC / "sys/kernel/kexec_loaded").write_text("1")
    assert "which is not ours" in (found[once.KEXEC].why_not(Wanted(OLD)) or "")
    grub = found[once.GRUB]
    assert isinstance(grub, Grub)
    mount = once.devices.mount_of(tmp_path)
    monkeypatch.setattr(once.devices, "mount_of", lambda _path: type(mount)(**{**vars(mount), "source": "/dev/md0"}))
    assert "cannot take the entry back" in (grub.why_not(Wanted(OLD)) or "")
    monkeypatch.undo()
    grub.config.write_text(CONFIG.replace("next_entry", "other"))
    assert "knows no next_entry" in (grub.why_not(Wanted(OLD)) or "")


def test_a_next_boot_that_somebody_has_chosen_is_not_used_up(machine: FakeMachine, state: StateDir) -> None:
    way = machine.machine_way()
    journal = Journal.create(state, "run")
    way.arm(Wanted(OLD), journal)  # stands for somebody else's
    assert re.search("not by this run|not ours", way.why_not(Wanted(NEW)) or "")
    journal.put_back_each()
    assert way.why_not(Wanted(NEW)) is None


def test_grub_that_tells_its_name_as_systemd_boot_does_is_grub(tmp_path: Path) -> None:
    variable = once.SystemdBoot(tmp_path).variable("LoaderInfo")
    variable.parent.mkdir(parents=True)
    assert once.of_the_machine("boot loader", tmp_path).name == once.GRUB
    variable.write_bytes(b"\6\0\0\0" + "GRUB 2.12-9\0".encode("utf-16-le"))
    assert once.of_the_machine("boot loader", tmp_path).name == once.GRUB
    variable.write_bytes(b"\6\0\0\0" + "systemd-boot 257.8-1\0".encode("utf-16-le"))
    assert once.of_the_machine("boot loader", tmp_path).name == once.SYSTEMD_BOOT


def test_kexec_keeps_the_command_line_and_ours_stand_behind_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    machine = FakeMachine(tmp_path / "root", once.KEXEC)
    way = machine.machine_way()
    assert isinstance(way, Kexec)
    first = way.command_line(Wanted(OLD, "transparent_hugepage=never"))
    assert first == "root=UUID=1234 ro quiet plimsoll.boot=1 transparent_hugepage=never"
    (machine.root / "proc/cmdline").write_text(first)
    assert way.command_line(Wanted(OLD)) == "root=UUID=1234 ro quiet plimsoll.boot=1", "not those of the boot before"


def test_a_boot_that_kexec_did_not_make_is_told_by_its_command_line(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    machine = FakeMachine(tmp_path / "root", once.KEXEC)
    way = machine.machine_way()
    assert isinstance(way, Kexec)
    assert way.is_another_boot("") == "came up with its boot loader's command line"
    (machine.root / "proc/cmdline").write_text(way.command_line(Wanted(OLD, "quiet nosmt")) + "\n")
    assert way.is_another_boot("quiet nosmt") == ""
    assert way.is_another_boot("mitigations=off") == "came up with parameters 'quiet nosmt'"
    (tmp_path / "grub").mkdir()
    assert FakeMachine(tmp_path / "grub", once.GRUB).machine_way().is_another_boot("") == ""
