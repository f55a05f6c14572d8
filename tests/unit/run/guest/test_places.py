"""Places in a guest: what its kernel lacks is said by the plan, the host's is not asked, and nothing is booted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_machine import FakeMachine

from plimsoll.environment import StateDir
from plimsoll.environment.guest import kernel
from plimsoll.environment.guest import machine as guest_machine
from plimsoll.environment.places import machine
from plimsoll.experiment import ExperimentError, load
from plimsoll.run.guest import planning
from plimsoll.run.guest.runner import GuestRunner
from plimsoll.run.observer import Silent
from plimsoll.run.planning.needs import Needs

FILE = """format = 1
name = "mine"
title = "A question"
design = { blocks = 1 }
warmup = { until = "none" }
measure = { seconds = 1 }
workload = { name = "files", count = 1, file_size = "4 KiB", mix = [{ operation = "append", bytes = 512 }] }

[environment]
kernel = "guest"
guest = { memory = "768 MiB" }

[environment.places.disk]
PLACE

[target]
server = "files"
files = { data = "disk" }
"""
STRIPE = 'image = "24 MiB"\nimages = 2\nraid = { level = 0, chunk = "8 KiB" }\nfile_system = "ext2"'
CONFIG = "CONFIG_HZ=100\nCONFIG_BLK_DEV_LOOP=m\nCONFIG_BLK_DEV_MD=m\nCONFIG_MD_RAID0=m\nCONFIG_EXT4_FS=y\n"


def guest_of(folder: Path, place: str) -> GuestRunner:
    (folder / "experiment.toml").write_text(FILE.replace("PLACE", place))
    state = StateDir(folder / "state").prepare()
    return GuestRunner(load(str(folder / "experiment.toml")), folder / "out", state, Silent(), [])


def refusals(runner: GuestRunner) -> list[str]:
    said = planning.refusals(runner.plan, Needs(), runner.state)
    return [text for text in said if text.startswith("environment.places")]


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A guest's modules: loop, md and RAID 0. The host has none and is not asked."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name in ("loop", "md-mod", "raid0"):
        (folder / f"{name}.ko").touch()
    found = kernel.GuestKernel(Path("linux.uml"), "6.1", kernel.parse(CONFIG), folder, loads_modules=True)
    monkeypatch.setattr(kernel, "installed", lambda: found)
    monkeypatch.setattr(kernel, "available", lambda: planning.kernel.Availability(True))
    monkeypatch.setattr(planning.HERE, "has_user", lambda _: True)
    monkeypatch.setattr(machine, "HERE", FakeMachine({}, modules=()))
    monkeypatch.setattr(machine.Machine, "is_root", True)
    monkeypatch.setattr(machine.Machine, "has_program", lambda *_: True)
    monkeypatch.setattr(machine.Machine, "refused_mkfs", lambda *_: None)
    return folder


def test_a_stripe_that_the_host_cannot_have_is_planned_in_the_guest(tmp_path: Path, modules: Path) -> None:
    runner = guest_of(tmp_path, STRIPE)
    host = machine.HERE
    assert refusals(runner) == [] and machine.HERE is host
    (modules / "raid0.ko").unlink()
    (said,) = refusals(runner)
    assert said.startswith("environment.places.disk.raid.level = 0: this kernel (guest, 6.1) has no md RAID of level 0")


def test_modules_are_looked_for_where_the_guest_s_first_program_links_them() -> None:
    init = Path(guest_machine.__file__).with_name("init").read_text()
    (here,) = re.findall(r"^here=(\S+)$", init, re.MULTILINE)
    assert 'ln -s "$modules" $here/lib/modules' in init and Path(here, "lib/modules") in machine._MODULES


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (STRIPE.replace("level = 0", "level = 10"), "raid.level = 10: this kernel (guest, 6.1) has no md RAID"),
        ('image = "1 MiB"\nmapper = { kind = "delay" }', "this kernel (guest, 6.1) has no device-mapper target delay"),
        ('image = "1 MiB"\nfile_system = "btrfs"', "this kernel (guest, 6.1) has no btrfs"),
    ],
)
def test_what_its_kernel_lacks_is_named(tmp_path: Path, modules: Path, place: str, said: str) -> None:
    assert modules.is_dir() and said in " ".join(refusals(guest_of(tmp_path, place)))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ('folder = "/mnt"', "environment.places.disk.folder names a folder of the host"),
        ('image = "1 MiB"\nimages_in = "/mnt"', "environment.places.disk.images_in names a folder of the host"),
        ('devices = ["/dev/sdb"]\nerase = ["/dev/sdb"]', "environment.places.disk.devices names devices of the host"),
    ],
)
def test_what_lies_on_the_host_is_refused_by_the_file(tmp_path: Path, place: str, said: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        guest_of(tmp_path, place)
    whole = "\n".join(str(problem) for problem in refused.value.problems)
    assert said in whole and "a place with an image" in whole and 'environment.kernel = "host"' in whole
