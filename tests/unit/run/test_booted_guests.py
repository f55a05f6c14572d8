"""Runs that boot kernels in guests: what the plan says with KVM and without it, how a guest is started, and what two
runs and their kernels may differ in."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_boot import NEW, OLD
from two_kernels import Json, print_of, source_in

from plimsoll.environment import StateDir
from plimsoll.environment.boots import once
from plimsoll.environment.fingerprint import comparable
from plimsoll.environment.guest import qemu
from plimsoll.environment.knob import AVAILABLE, Availability
from plimsoll.run import kernels, one_trial, own_fingerprints
from plimsoll.run.booted.in_qemu import QemuRunner
from plimsoll.run.guest.inside import InGuest
from plimsoll.run.observer import Silent
from plimsoll.run.planning.needs import Needs
from plimsoll.run.runner import Impossible


def unpacked(folder: Path, *releases: str) -> Path:
    """As `dpkg-deb -x` and `depmod` leave kernels."""
    for release in releases:
        (folder / "boot").mkdir(parents=True, exist_ok=True)
        (folder / f"boot/vmlinuz-{release}").touch()
        (folder / f"boot/config-{release}").write_text("CONFIG_HZ=250\nCONFIG_DEBUG_INFO_BTF=y\nCONFIG_FTRACE=y\n")
        (folder / f"lib/modules/{release}").mkdir(parents=True)
        (folder / f"lib/modules/{release}/modules.dep").touch()
    return folder


def guests(tmp_path: Path, state: StateDir, *releases: str, sets: Sequence[str] = ()) -> QemuRunner:
    place = unpacked(tmp_path / "kernels", *releases)
    folders = [f'environment.kernels.{name}.folder="{place}"' for name in ("old", "new")]
    found = kernels.runner_of(source_in(tmp_path, *folders, *sets), tmp_path / "out", state, Silent(), ["plimsoll"])
    assert isinstance(found, QemuRunner)
    return found


@pytest.mark.parametrize(
    ("kvm", "said", "seconds_max"),
    [
        (True, "guests of QEMU with KVM: their results count", 200),
        (False, "emulated: mechanism only. This machine has no KVM", 2000),
    ],
)
def test_the_plan_says_what_results_are_worth(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch, kvm: bool, said: str, seconds_max: float
) -> None:
    monkeypatch.setattr(qemu, "has_kvm", lambda: kvm)
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    runner = guests(tmp_path, state, OLD, NEW)
    needs = runner.needs()
    assert any(remark.startswith(said) for remark in needs.remarks), needs.remarks
    booted = f"4 boots of old ({OLD}) and new ({NEW}), in random order, each block with boots of its own, 768 MiB each"
    swapped = f"4 boots of new ({NEW}) and old ({OLD}), in random order, each block with boots of its own, 768 MiB each"
    assert booted in needs.remarks or swapped in needs.remarks, needs.remarks
    assert 4 * 20 <= needs.seconds <= seconds_max
    assert not [reason for reason in needs.impossible if "kernel" in reason or "qemu" in reason]
    document = runner._guest_document()
    assert document["accelerator"] == ("kvm" if kvm else "tcg") and document["cpus"] == 2
    assert document["kernels"]["old"] == {"release": OLD, "parameters": ""}


@pytest.mark.parametrize("untraced", [OLD, NEW])
def test_what_one_of_the_kernels_cannot_show_the_run_cannot(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch, untraced: str
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    runner = guests(tmp_path, state, OLD, NEW)
    assert runner._guest_document()["probes_in_the_kernel"]
    qemu.kernel_of.cache_clear()
    (tmp_path / f"kernels/boot/config-{untraced}").write_text("CONFIG_HZ=250\n")
    assert not runner._guest_document()["probes_in_the_kernel"]


def test_a_guest_that_cannot_be_had_is_refused_with_the_command(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    runner = guests(tmp_path, state, OLD)
    assert any(f"vmlinuz-{NEW} is not there; unpack" in reason for reason in runner.needs().impossible)
    monkeypatch.setattr(qemu, "available", lambda: Availability(False, "qemu is not installed", "`apt-get install`"))
    assert runner.needs().impossible == ['environment.boot.by = "qemu": qemu is not installed; `apt-get install`']


def test_a_place_is_held_against_each_kernel_before_anything_is_booted(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    config = "CONFIG_BLK_DEV_LOOP=m\nCONFIG_BLK_DEV_MD=m\nCONFIG_MD_RAID0=m\nCONFIG_EXT4_FS=y\n"
    stripe = ('image="24 MiB"', "images=2", "raid.level=0", 'raid.chunk="64 KiB"')
    sets = [*(f"environment.places.disk.{one}" for one in stripe), 'target.files.data="disk"']
    runner = guests(tmp_path, state, OLD, NEW, sets=sets)
    for release in (OLD, NEW):
        (tmp_path / f"kernels/boot/config-{release}").write_text(config)
        for module in ("loop", "md-mod", "raid0"):
            (tmp_path / f"kernels/lib/modules/{release}/{module}.ko.xz").touch()
    lacking = [reason for reason in runner.needs().impossible if "this kernel" in reason or "no loop devices" in reason]
    assert lacking == []
    (tmp_path / f"kernels/lib/modules/{NEW}/raid0.ko.xz").unlink()
    (reason,) = (reason for reason in runner.needs().impossible if "this kernel" in reason)
    assert reason.startswith(
        f"environment.places.disk.raid.level = 0: this kernel (guest, {NEW}) has no md RAID of lev"
    )
    assert not runner.out.exists()


def test_a_run_that_began_with_kvm_does_not_go_on_emulated(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    monkeypatch.setattr(qemu, "has_kvm", lambda: False)
    runner = guests(tmp_path, state, OLD, NEW)
    runner.out.mkdir()
    (runner.out / "run.json").write_text('{"guest": {"accelerator": "kvm"}}')
    assert any("the run began with kvm, and this machine has tcg now" in one for one in runner.needs().impossible)


def test_kvm_in_software_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "_SYS_MODULE", tmp_path)
    monkeypatch.setattr(qemu, "_DEV_KVM", tmp_path)
    assert not qemu.has_kvm(), "no module"
    (tmp_path / "kvm_intel").mkdir()
    assert qemu.has_kvm()
    (tmp_path / "kvm_pvm").mkdir()
    assert not qemu.has_kvm(), "its variant that boots no usual kernel"


def test_what_boots_a_guest_is_contained_and_has_its_parameters(tmp_path: Path) -> None:
    place = unpacked(tmp_path / "kernels", OLD)
    one = qemu.Qemu(qemu.kernel_of(once.Wanted(OLD, folder=place)), once.Wanted(OLD, folder=place), 3, qemu.TCG)
    (tmp_path / "record").write_text("/runs/a b\n")
    argv = one.command(qemu.GuestFolder(tmp_path), 1 << 30, "quiet  thp=never", 7)
    assert argv[: len(qemu.CONTAINED)] == [*qemu.CONTAINED] and argv[-3:-1] == ["sh", "-c"]
    assert "-o source='/runs/a b' -o cache=auto" in argv[-1]
    machine = one.machine(qemu.GuestFolder(tmp_path), 1 << 30, "quiet  thp=never", 7)
    assert machine[machine.index("-smp") + 1] == "3" and "socket,id=lines,fd=7" in machine
    append = machine[machine.index("-append") + 1]
    assert append.endswith(f"quiet thp=never PLIMSOLL_GUEST={tmp_path}")


def test_what_a_later_guest_refuses_takes_no_result_away(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    runner = guests(tmp_path, state, OLD, NEW)
    booted = list[int]()

    def one_boot(trials: list[Any], *_given: object) -> str:
        booted.append(trials[0].number)
        if len(booted) > kept:
            raise Impossible(["on the guest kernel: mitigation=off: its kernel does not know it"])
        (runner.out / f"trials/{trials[0].number:04d}").mkdir(parents=True)
        (runner.out / f"trials/{trials[0].number:04d}/trial.json").write_text('{"status": "finished"}')
        return "finished"

    monkeypatch.setattr(QemuRunner, "needs", lambda _self: Needs())
    monkeypatch.setattr(runner, "_one_boot", one_boot)
    kept = 0
    with pytest.raises(Impossible, match="does not know"):
        runner.run()
    assert booted == [1] and not runner.out.exists(), "nothing was begun, and nothing is left"
    kept = 2
    with pytest.raises(Impossible, match="does not know"):
        runner.run()
    document = json.loads((runner.out / "run.json").read_text())
    assert document["status"] == "failed" and len(document["guest"]["boots"]) == 2
    assert (runner.out / "plan.json").exists() and [trial.number for trial in runner.left] == [2, 3, 4]


def test_a_guest_s_part_of_a_run_is_not_told_as_the_whole(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InGuest, "fingerprint", lambda _self: print_of(OLD))
    monkeypatch.setattr(InGuest, "needs", lambda _self: Needs())
    monkeypatch.setattr(InGuest, "_servers", lambda _self: contextlib.nullcontext(lambda _log: None))
    monkeypatch.setattr(one_trial, "run_trial", lambda _context, _log, _server: None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/run.json").write_text('{"status": "running", "ended_epoch_ns": null}')

    def told(*trials: int) -> tuple[str, Json]:
        of_guest = {"kernel": "guest (QEMU)", "host": {}, "trials": trials}
        one = InGuest(source_in(tmp_path), tmp_path / "out", state, Silent(), ["plimsoll"], seed=7, told=of_guest)
        return one.run(), json.loads((tmp_path / "out/run.json").read_text())

    status, document = told(1)
    assert status == "finished", "the guest's own word, by which the next is booted"
    assert (document["status"], document["ended_epoch_ns"]) == ("running", None)
    (tmp_path / "out/fingerprint.json").unlink()
    status, document = told(2, 3, 4)
    assert status == document["status"] == "finished" and document["ended_epoch_ns"]


def test_nobody_but_root_may_write_to_what_shows_the_host_s_root(tmp_path: Path) -> None:
    place = unpacked(tmp_path / "kernels", OLD)
    one = qemu.Qemu(qemu.kernel_of(once.Wanted(OLD, folder=place)), once.Wanted(OLD, folder=place), 1, qemu.TCG)
    (tmp_path / "record").write_text("/runs/a\n")
    *_, script = one.command(qemu.GuestFolder(tmp_path), 1 << 30, "", 7)
    before = script.splitlines()[: next(at for at, line in enumerate(script.splitlines()) if "--socket-path" in line)]
    ours = "\n".join(["umask 000", *before, "umask"])
    umask = subprocess.run(["sh", "-c", ours], capture_output=True, text=True, check=True)
    assert int(umask.stdout, 8) & 0o022 == 0o022


def test_what_virtiofsd_locks_is_each_guest_s_own_and_goes_with_it(tmp_path: Path, needs: Callable[..., None]) -> None:
    """Debian 12's locks a file by its socket's name, so that a second guest on the machine was refused."""
    needs("root")
    place = unpacked(tmp_path / "kernels", OLD)
    one = qemu.Qemu(qemu.kernel_of(once.Wanted(OLD, folder=place)), once.Wanted(OLD, folder=place), 1, qemu.TCG)
    (tmp_path / "record").write_text("/runs/a\n")
    *before, _ = one.command(qemu.GuestFolder(tmp_path), 1 << 30, "", 7)
    lock = Path("/run/virtiofsd", f"plimsoll-test-{os.getpid()}")
    argv = [*before[before.index("--mount") - 1 :], f"test ! -e {lock} && touch {lock} && ls {lock}"]
    for _ in range(2):
        assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == str(lock)
    assert not lock.exists()


def test_a_guest_whose_folders_are_not_shown_ends_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "virtiofsd"
    broken.write_text("#!/bin/sh\necho fuse: unknown option\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(qemu, "VIRTIOFSD", (broken,))
    monkeypatch.setattr(qemu, "_SHOWN_TRIES", 2)
    place = unpacked(tmp_path / "kernels", OLD)
    one = qemu.Qemu(qemu.kernel_of(once.Wanted(OLD, folder=place)), once.Wanted(OLD, folder=place), 1, qemu.TCG)
    (tmp_path / "record").write_text("/runs/a\n")
    *_, script = one.command(qemu.GuestFolder(tmp_path), 1 << 30, "", 7)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "unknown option" in done.stdout


@pytest.mark.parametrize("name", ["a,b", "a\\b", "a\nb"])
def test_a_record_whose_path_virtiofsd_would_read_as_another_is_refused(
    tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(qemu, "available", lambda: AVAILABLE)
    runner = guests(tmp_path, state, OLD, NEW)
    assert not [reason for reason in runner.needs().impossible if "virtiofsd" in reason]
    runner.out = tmp_path / name
    assert any("virtiofsd takes no path with a comma" in reason for reason in runner.needs().impossible)


def test_modules_of_a_kernel_may_lie_in_a_folder_with_a_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    base = "/opt/my kernels/lib/modules/6.1/kernel"

    def modprobe(argv: Sequence[str], **_given: object) -> subprocess.CompletedProcess[str]:
        told = {
            "ext4": f"builtin crc16\ninsmod {base}/fs/jbd2/jbd2.ko.xz \ninsmod {base}/fs/ext4/ext4.ko.xz \n",
            "virtio_blk": f"insmod {base}/block/virtio_blk.ko queue_depth=64\n",
        }
        return subprocess.CompletedProcess(argv, 0, told.get(argv[-1], ""), "")

    monkeypatch.setattr(qemu.subprocess, "run", modprobe)
    found = qemu.modules_of(once.Wanted("6.1", folder=Path("/opt/my kernels")))
    names = ("block/virtio_blk.ko", "fs/jbd2/jbd2.ko.xz", "fs/ext4/ext4.ko.xz")
    assert found == [Path(base, name) for name in names]


def test_kernels_may_differ_and_their_boots_and_the_machine_may_not(tmp_path: Path) -> None:
    for name, release in (("old", OLD), ("new", NEW), ("old", OLD)):
        own_fingerprints.note(tmp_path, name, print_of(release))
    with pytest.raises(Impossible, match=r"kernel old: kernel\.release was"):
        own_fingerprints.note(tmp_path, "old", print_of("6.1.0-57"))
    with pytest.raises(Impossible, match=r"kernel new: vm\.swappiness was 60 and is 10"):
        own_fingerprints.note(tmp_path, "new", print_of(NEW) | {"vm": {"swappiness": 10}})
    with pytest.raises(Impossible, match=r"machine\.cpu_model was x and is y"):
        own_fingerprints.note(tmp_path, "third", print_of("7.0") | {"machine": {"cpu_model": "y"}})


def test_two_runs_of_the_same_kernels_compare_and_of_others_do_not(tmp_path: Path) -> None:
    for run, new in (("a", NEW), ("b", NEW), ("c", "7.0")):
        (tmp_path / run).mkdir()
        own_fingerprints.note(tmp_path / run, "old", print_of(OLD))
        own_fingerprints.note(tmp_path / run, "new", print_of(new))
    a, b, c = (json.loads((tmp_path / run / "fingerprint.json").read_text()) for run in "abc")
    assert comparable(a, b) == []
    assert [one["key"] for one in comparable(a, c)] == [
        "kernels.new.kernel.release",
        "kernels.new.machine.cpu_governor",
    ]
