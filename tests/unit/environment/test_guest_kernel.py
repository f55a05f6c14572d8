"""The guest kernel that is installed, told by its own configuration; and a guest that is ended by its folder alone."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.environment import Journal, StateDir, doctor
from plimsoll.environment.guest import kernel, machine, parameters
from plimsoll.environment.guest.bootable import UserModeLinux
from plimsoll.environment.journal.journal import is_held

CONFIG = """# CONFIG_PSI is not set
CONFIG_HZ=100
CONFIG_MEMCG=y
CONFIG_EXT4_FS=y
CONFIG_MD_RAID0=m
CONFIG_DM_FLAKEY=m
CONFIG_DEFAULT_HOSTNAME="(none)"
"""


def made(modules: Path, *, loads_modules: bool = True) -> kernel.GuestKernel:
    return kernel.GuestKernel(Path("linux.uml"), "6.1", kernel.parse(CONFIG), modules, loads_modules)


def test_a_module_counts_where_its_file_is(tmp_path: Path) -> None:
    (tmp_path / "kernel/drivers/md").mkdir(parents=True)
    (tmp_path / "kernel/drivers/md/raid0.ko.xz").touch()
    found = made(tmp_path)
    has = found.features()
    assert [name for name, one in has.items() if one] == ["memory control groups (version 2)", "ext4", "md RAID 0"]
    assert found.hz == 100 and not found.is_traced
    assert found.config["CONFIG_DEFAULT_HOSTNAME"] == "(none)"
    without = made(tmp_path, loads_modules=False).features()
    assert [name for name, there in without.items() if there] == ["memory control groups (version 2)", "ext4"]


def test_a_guest_that_can_load_no_modules_is_a_note(monkeypatch: pytest.MonkeyPatch, state: StateDir) -> None:
    monkeypatch.setattr(kernel, "available", lambda: kernel.AVAILABLE)
    for loads_modules, ok in ((True, True), (False, None)):
        installed = made(Path("/nonexistent"), loads_modules=loads_modules)
        monkeypatch.setattr(kernel, "installed", lambda installed=installed: installed)
        check = doctor._guest(state)
        assert check.ok is ok and "user-mode-linux 6.1, without" in check.found
        assert ("package kmod" in check.remedy) is not loads_modules


def test_the_installed_one_says_what_it_is(needs) -> None:
    needs("user-mode-linux")
    kernel.installed.cache_clear()
    found = kernel.installed()
    assert found is not None and found.version in subprocess.check_output([kernel.PROGRAM, "--version"], text=True)
    # What tests/guest boots shows of these: they are there.
    assert {"memory control groups (version 2)", "ext4"} <= {name for name, has in found.features().items() if has}
    assert found.hz == 100 and not found.is_traced


@pytest.mark.parametrize(
    ("absent", "machine_name", "uid", "said"),
    [
        ("linux.uml", "x86_64", 0, "`./plimsoll setup --guest` (package user-mode-linux)"),
        ("mkfs.ext4", "x86_64", 0, "`./plimsoll setup --guest` (package e2fsprogs)"),
        ("unshare", "x86_64", 0, "`./plimsoll setup --guest` (package util-linux)"),
        ("", "aarch64", 0, "x86-64 only"),
        ("", "x86_64", 1000, "run as root"),
    ],
)
def test_why_there_is_none_with_the_one_thing_to_do(
    monkeypatch: pytest.MonkeyPatch, state: StateDir, absent: str, machine_name: str, uid: int, said: str
) -> None:
    monkeypatch.setattr(kernel.shutil, "which", lambda name, **_: None if name == absent else f"/usr/bin/{name}")
    monkeypatch.setattr(kernel.platform, "machine", lambda: machine_name)
    monkeypatch.setattr(kernel.os, "geteuid", lambda: uid)
    monkeypatch.setattr(kernel, "installed", lambda: made(Path("/nonexistent")))
    answer = kernel.available()
    assert not answer.ok and said in f"{answer.reason}; {answer.remedy}"
    check = doctor._guest(state)
    assert check.ok is None and check.found == answer.reason and 'environment.kernel = "guest"' in check.remedy


@pytest.mark.parametrize(
    ("code", "console", "said"),
    [
        (-9, "", "was ended by SIGKILL"),
        (1, "unshare: child kill failed: Invalid argument\n", "was ended by SIGKILL"),
        (1, "linux.uml: no memory\n", "ended with exit code 1"),
        (0, "reboot: System halted\n", "ended with exit code 0"),
        (
            -6,
            "Kernel panic - not syncing: No working init found.\nmore\n",
            "ended by itself: Kernel panic - not syncing",
        ),
    ],
)
def test_how_a_guest_ended_in_words(code: int, console: str, said: str) -> None:
    assert machine.how_it_ended(code, console).startswith(said)


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for one in found:
        one.kill()
        one.wait()


def test_a_guest_holds_the_journals_lock(tmp_path: Path, state: StateDir) -> None:
    """Undo waits for that, since a guest that is just being started is not in its folder yet."""
    journal = Journal.create(state, "x-guest")
    folder = machine.GuestFolder(tmp_path)
    guest = machine.Guest(folder, lambda _channel: ["sleep", "60"], os.environ)
    try:
        journal.release()  # as the end of the front does
        assert is_held(journal.path)
    finally:
        guest.kill()
    assert not is_held(journal.path)


def test_undo_ends_the_processes_of_that_guest_alone(
    tmp_path: Path, state: StateDir, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    """A process stands for a guest's by its program's name and the folder that it is in; others have one of both."""
    folder, other, bin_ = state.work / "x-guest", tmp_path / "other", tmp_path / "bin"
    bin_.mkdir()
    other.mkdir()
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, bin_ / "linux.uml")
    shutil.copy(sleep, bin_ / "sleeper")
    journal = Journal.create(state, "x-guest")
    folder.mkdir()
    journal.record("guest", folder=str(folder))
    for program, at in (("linux.uml", folder), ("linux.uml", other), ("sleeper", folder)):
        sleepers.append(subprocess.Popen([bin_ / program, "60"], cwd=at))
    assert machine.processes_of(folder) == [sleepers[0].pid]
    (undone,) = journal.put_back_all()
    assert undone.ok and undone.what == f"guest kernel of {folder} ended"
    assert sleepers[0].wait(10) == -9
    assert [one.poll() for one in sleepers[1:]] == [None, None]
    again = Journal.create(state, "x-guest")
    again.record("guest", folder=str(folder))
    (undone,) = again.put_back_all()
    assert undone.what == f"guest kernel of {folder} was not running"


def test_parameters_stand_before_ours_on_the_kernels_line(tmp_path: Path) -> None:
    one = UserModeLinux(made(tmp_path))
    argv = one.command(machine.GuestFolder(tmp_path), 1 << 30, "nosmt thp=never", 3)
    assert argv.index("nosmt") + 1 == argv.index("thp=never") < argv.index("loglevel=4") < argv.index("panic=-1")


def test_what_the_kernel_handed_on_it_did_not_know(tmp_path: Path) -> None:
    (tmp_path / "environ").write_bytes(b"HOME=/\0PLIMSOLL_GUEST=/x\0transparent_hugepages=never\0")
    (tmp_path / "cmdline").write_bytes(b"/bin/sh\0/x/init\0nosmtt\0")
    asked = "transparent_hugepages=never nosmtt transparent_hugepage=never"
    assert parameters.unknown(asked, tmp_path) == ["transparent_hugepages=never", "nosmtt"]
    assert parameters.unknown("", tmp_path) == []
