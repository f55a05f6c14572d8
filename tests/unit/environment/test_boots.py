"""One boot into another kernel: what is found in a tree of /boot, and that after a kill at every step the machine
boots what it booted before."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from plimsoll.environment import Journal, StateDir, undo
from plimsoll.environment.boots import once
from plimsoll.environment.boots.once import Grub, Kexec, SystemdBoot, Wanted, Way, of_the_machine
from plimsoll.environment.journal import journal as journals

OLD, NEW = "6.1.0-56-cloud-amd64", "6.12.113+deb12-cloud-amd64"
# As Debian's update-grub writes it: the default first, then a submenu with every kernel twice.
CONFIG = f"""
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
function gfxmode {{
	set gfxpayload="${{1}}"
}}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1234' {{
	linux	/boot/vmlinuz-{NEW} root=UUID=1234 ro  quiet
	initrd	/boot/initrd.img-{NEW}
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1234' {{
	menuentry 'Debian GNU/Linux, with Linux {NEW}' --class debian $menuentry_id_option 'gnulinux-{NEW}-advanced-1234' {{
		if [ x$grub_platform = xxen ]; then insmod xzio; fi
		linux	/boot/vmlinuz-{NEW} root=UUID=1234 ro  quiet
	}}
	menuentry 'Debian, with Linux {OLD} (recovery mode)' $menuentry_id_option 'gnulinux-{OLD}-recovery-1234' {{
		linux	/boot/vmlinuz-{OLD} root=UUID=1234 ro single
	}}
	menuentry 'Debian GNU/Linux, with Linux {OLD}' --class debian $menuentry_id_option 'gnulinux-{OLD}-advanced-1234' {{
		linux	/boot/vmlinuz-{OLD} root=UUID=1234 ro  quiet
	}}
}}
"""
OLD_ENTRY = f"gnulinux-advanced-1234>gnulinux-{OLD}-advanced-1234"


class Killed(BaseException):
    """As SIGKILL does it: nothing of ours runs afterwards but `undo`."""


class FakeMachine:
    """A tree of files, and the commands that change it as the real ones do. `boot` does what its boot loader does."""

    def __init__(self, root: Path, way: str) -> None:
        self.root, self.way, self.asked = root, way, list[str]()
        for release in (OLD, NEW):
            for name in ("vmlinuz", "initrd.img"):
                (root / "boot").mkdir(exist_ok=True)
                (root / f"boot/{name}-{release}").touch()
        (root / "proc").mkdir()
        (root / "proc/cmdline").write_text(f"BOOT_IMAGE=/boot/vmlinuz-{NEW} root=UUID=1234 ro quiet\n")
        if way == once.GRUB:
            (root / "boot/grub").mkdir()
            (root / "boot/grub/grub.cfg").write_text(CONFIG)
            self.grubenv({})
        elif way == once.SYSTEMD_BOOT:
            (root / "boot/loader/entries").mkdir(parents=True)
            for release in (OLD, NEW):
                text = f"title Debian\nversion {release}\nlinux /1234/{release}/linux\noptions ro\n"
                (root / f"boot/loader/entries/1234-{release}.conf").write_text(text)
            (root / once._EFI).mkdir(parents=True)
            SystemdBoot(root).variable("LoaderInfo").write_bytes(b"\6\0\0\0" + "systemd-boot 252\0".encode("utf-16-le"))
        else:
            (root / "sys/kernel").mkdir(parents=True)
            (root / "sys/kernel/kexec_loaded").write_text("0\n")

    def machine_way(self) -> Way:
        found = of_the_machine("kexec" if self.way == once.KEXEC else "boot loader", self.root)
        return type(found)(self.root, lambda _name: True)

    def grubenv(self, values: dict[str, str]) -> None:
        text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in values.items())
        (self.root / "boot/grub/grubenv").write_text(text.ljust(1024, "#"))

    def values(self) -> dict[str, str]:
        lines = (self.root / "boot/grub/grubenv").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def __call__(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(" ".join(argv))
        variable = SystemdBoot(self.root).variable("LoaderEntryOneShot")
        loaded = self.root / "sys/kernel/kexec_loaded"
        match list(argv):
            case ["grub-reboot", where, entry]:
                assert where == f"--boot-directory={self.root}/boot"
                self.grubenv(self.values() | {"next_entry": entry})
            case ["grub-editenv", file, "unset", name]:
                assert file == str(self.root / "boot/grub/grubenv")
                self.grubenv({key: value for key, value in self.values().items() if key != name})
            case ["grub-editenv", _, "set", pair]:
                self.grubenv(self.values() | dict([pair.split("=", 1)]))
            case ["bootctl", "set-oneshot", ""]:
                variable.unlink(missing_ok=True)
            case ["bootctl", "set-oneshot", entry]:
                variable.write_bytes(b"\7\0\0\0" + f"{entry}\0".encode("utf-16-le"))
            case ["kexec", "-l", *_]:
                loaded.write_text("1\n")
            case ["kexec", "-u"]:
                loaded.write_text("0\n")
            case ["systemctl", "reboot" | "kexec"]:
                pass
            case other:
                return subprocess.CompletedProcess(argv, 1, "", f"{other}: not known here")
        return subprocess.CompletedProcess(argv, 0, "", "")

    def boot(self) -> str:
        """The release that it comes up with; what was for one boot is taken back, as the boot loader does it."""
        if self.way == once.GRUB:
            values = self.values()
            entry = values.pop("next_entry", "")
            self.grubenv(values)
            return OLD if entry == OLD_ENTRY else NEW
        if self.way == once.SYSTEMD_BOOT:
            variable = SystemdBoot(self.root).variable("LoaderEntryOneShot")
            entry = once.efi_text(variable)
            variable.unlink(missing_ok=True)
            return OLD if entry == f"1234-{OLD}.conf" else NEW
        loaded = self.root / "sys/kernel/kexec_loaded"
        was = loaded.read_text().strip()
        loaded.write_text("0\n")
        return OLD if was == "1" else NEW


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


def test_kexec_keeps_the_command_line_and_ours_stand_behind_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    machine = FakeMachine(tmp_path / "root", once.KEXEC)
    way = machine.machine_way()
    assert isinstance(way, Kexec)
    first = way.command_line(Wanted(OLD, "transparent_hugepage=never"))
    assert first == "root=UUID=1234 ro quiet plimsoll.boot=1 transparent_hugepage=never"
    (machine.root / "proc/cmdline").write_text(first)
    assert way.command_line(Wanted(OLD)) == "root=UUID=1234 ro quiet plimsoll.boot=1", "not those of the boot before"
