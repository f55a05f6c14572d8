"""The file that needs a guest where the kernel has no md runs on the host of a machine that has it, images or disks."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_machine import GIB, Disk, FakeMachine

from plimsoll.environment import Journal, StateDir, places
from plimsoll.environment.places import machine
from plimsoll.experiment import Source, load, plan_trials
from plimsoll.run.kernels import RUNNERS
from plimsoll.run.planning.needs import Needs
from plimsoll.run.planning.obstacles import obstacles
from plimsoll.run.surroundings import knobs

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = ROOT / "experiments/raw-storage/experiment.toml"
ON_THE_HOST = 'environment.kernel="host"'
SIZES = 7  # storages


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Two large blank disks, and a kernel with md."""
    fake = FakeMachine({f"/dev/sd{letter}": Disk(64 * GIB) for letter in "bc"})
    monkeypatch.setattr(machine, "HERE", fake)
    return fake


def against(source: Source, state: StateDir) -> list[str]:
    plan = plan_trials(source.experiment, source.treatments, 1)
    return [text for text in obstacles(plan, Needs(), state) if "places" in text or "target.files" in text]


def on_disks(folder: Path) -> str:
    """A copy of the shipped file on disks of the user's, as its comment says."""
    text = SHIPPED.read_text()
    one, two = ['"/dev/sdb"'], ['"/dev/sdb"', '"/dev/sdc"']
    for count, disks in ((1, one), (2, two)):
        named = "".join(f'"environment.places.disk.{key}" = [{", ".join(disks)}]\n' for key in ("devices", "erase"))
        assert f'"environment.places.disk.images" = {count}\n' in text
        text = text.replace(f'"environment.places.disk.images" = {count}\n', named)
    for line in (
        'image = "1536 MiB"\n',
        '"environment.places.disk.image" = "128 MiB"\n',
        '"environment.places.disk.image_blocks" = "reserved"\n',
    ):
        assert line in text
        text = text.replace(line, "" if line.startswith('"') else 'devices = ["/dev/sdb"]\nerase = ["/dev/sdb"]\n')
    file = folder / "experiment.toml"
    file.write_text(text)
    return str(file)


def test_it_is_planned_in_a_guest_unless_the_host_is_asked_for() -> None:
    kernels = [load(str(SHIPPED), sets=sets).experiment.environment.kernel for sets in ([], [ON_THE_HOST])]
    assert kernels == ["guest", "host"] and set(kernels) <= set(RUNNERS)


def test_on_a_machine_with_md_the_same_file_runs_on_the_host(here: FakeMachine, state: StateDir) -> None:
    source = load(str(SHIPPED), quick=True, sets=[ON_THE_HOST])
    assert len(source.treatments) == SIZES and against(source, state) == []
    here.modules = ("loop",)
    said = against(source, state)
    assert len(said) == 1 and "has no md RAID of level 0" in said[0] and "the same file runs" in said[0]


def test_and_on_disks_of_the_user(here: FakeMachine, state: StateDir, tmp_path: Path) -> None:
    source = load(on_disks(tmp_path), quick=True, sets=[ON_THE_HOST])
    assert len(source.treatments) == SIZES and against(source, state) == []
    assert here.calls == []
    stripe = next(one for one in source.treatments if "128 KiB, stride" in one.label)
    with Journal.create(state, "t-1") as journal:
        site = knobs.site_of(stripe.settings, state, "t-1")
        for knob in places.KNOBS:
            site.arrange(knob, journal)
        array, mkfs, mount = here.calls
        assert array.startswith("mdadm --create") and array.endswith("--chunk=128 /dev/sdb /dev/sdc")
        assert "-t ext2" in mkfs and "stride=32,stripe_width=64" in mkfs and mount.startswith("mount -t ext2")
    here.disks["/dev/sdc"].signatures = {"TYPE": "ext4", "USAGE": "filesystem", "LABEL": "photos"}
    assert any("/dev/sdc holds a file system: ext4 'photos'" in text for text in against(source, state))
