"""Wrong places, each refused with its reason before anything is made (acceptance 5): by the file, or by the plan.

What the file alone shows is refused by file, line and key; what only the machine knows is among the plan's obstacles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_machine import Disk, FakeMachine

from plimsoll.environment import StateDir
from plimsoll.environment.devices import Mount
from plimsoll.environment.places import machine
from plimsoll.experiment import ExperimentError, load, plan_trials
from plimsoll.run.planning.needs import Needs
from plimsoll.run.planning.obstacles import obstacles

FILE = """
format = 1
name = "mine"
title = "A question"

[environment.places.disk]
{place}

[target.files]
{files}

[target.settings]
autovacuum = false
{settings}

[workload]
name = "bank"
scale = 1

[measure]
seconds = 1
"""
IMAGE = 'image = "1 GiB"'
ONE = 'devices = ["/dev/sdb"]\nerase = ["/dev/sdb"]'
TWO = 'devices = ["/dev/sdb", "/dev/sdc"]\nerase = ["/dev/sdb", "/dev/sdc"]'

# What is said of the place, and what the refusal has to hold: with the file's line where the file alone shows it.
BY_THE_FILE = {
    "a chunk of 3 KiB": (f'{TWO}\nraid = {{level = 0, chunk = "3 KiB"}}', ["raid.chunk", "4 KiB times a power of 2"]),
    "an unknown key": (f"{IMAGE}\nfilesystem = 'xfs'", ["places.disk.filesystem", "no such key", "file_system"]),
    "a device that is named once": ('devices = ["/dev/sdb"]', ["erase names none", "named twice"]),
    "erase of another device": (
        'devices = ["/dev/sdb"]\nerase = ["/dev/sdc"]',
        ["/dev/sdb", "/dev/sdc", "named twice"],
    ),
    "an image and a device": (f"{IMAGE}\n{ONE}", ["image and devices", "exactly one"]),
    "nothing to lie on": ('file_system = "xfs"', ["none of them", "exactly one"]),
    "a folder with an option": ('folder = "/mnt"\nmount = {noatime = true}', ["mount", "a folder is there already"]),
    "level 5 over two": (f"{TWO}\nraid = {{level = 5}}", ["raid.level = 5 over 2 devices", "at least 3"]),
    "two devices and no array": (TWO, ["2 devices", "raid.level", "linear"]),
    "a chunk of no array": (f'{ONE}\nraid = {{chunk = "64 KiB"}}', ['level is "none"', "a level"]),
    "a mirror with a chunk": (f'{TWO}\nraid = {{level = 1, chunk = "64 KiB"}}', ["mirror", "chunk"]),
    "a bitmap of a stripe": (f'{TWO}\nraid = {{level = 0, bitmap = "internal"}}', ["bitmap", "level 1, 5 or 10"]),
    "a stride of btrfs": (f'{IMAGE}\nfile_system = "btrfs"\nmkfs = {{stride = 4}}', ["mkfs.stride: btrfs", "ext4"]),
    "half a stripe": (f"{IMAGE}\nmkfs = {{stride = 4, stripe_width = 6}}", ["stripe_width = 6", "stride = 4"]),
    "xfs without a log": (f'{IMAGE}\nfile_system = "xfs"\nmkfs = {{journal = "none"}}', ["journal", "xfs"]),
    "a log that is nowhere": (f'{IMAGE}\nlog = "there"', ["disk.log = 'there'", "no such other place"]),
    "a block of 3000 bytes": (f"{IMAGE}\nmkfs = {{block_size = 3000}}", ["block_size = 3000", "power of two"]),
    "mounted to be read": (f"{IMAGE}\nmount = {{ro = true}}", ["ro", "nothing could be laid on it"]),
    "two options in one": (f'{IMAGE}\nmount = {{data = "journal,nobarrier"}}', ["data", "without commas"]),
    "flakey for no time": (f'{ONE}\nmapper = {{kind = "flakey", up_seconds = 5}}', ["flakey", "down_seconds"]),
    "a journal's device by mkfs": (
        f'{IMAGE}\nmkfs = {{options = ["-J", "device=/dev/sdz"]}}',
        ["mkfs.options", "'-J device=/dev/sdz'", "log ="],
    ),
    "a journal by its label": (f'{IMAGE}\nmkfs = {{options = ["-Jsize=4,device=LABEL=x"]}}', ["device=LABEL=x"]),
    "a log's device by mkfs": (
        f'{IMAGE}\nfile_system = "xfs"\nmkfs = {{options = ["-l", "size=16m,logdev=dev/sdz"]}}',
        ["logdev=dev/sdz"],
    ),
    "a real-time device": (f'{IMAGE}\nfile_system = "xfs"\nmkfs = {{options = ["-r", "rtdev=sdz"]}}', ["rtdev=sdz"]),
    "a second device": (f'{IMAGE}\nfile_system = "btrfs"\nmkfs = {{options = ["dev/sdz"]}}', ["'dev/sdz'", "device"]),
    "a second device of f2fs": (
        f'{IMAGE}\nfile_system = "f2fs"\nmkfs = {{options = ["-c", "../dev/sdz"]}}',
        ["'../dev/sdz'"],
    ),
    "an option that its mkfs has not": (f'{IMAGE}\nmkfs = {{options = ["-Q"]}}', ["mkfs.options", "-Q", "ext4"]),
    "files of the machine": (f'{IMAGE}\nmkfs = {{options = ["-qdetc"]}}', ["mkfs.options", "'-d etc'"]),
    "files of the machine in full": (
        f'{IMAGE}\nfile_system = "btrfs"\nmkfs = {{options = ["--root", "etc"]}}',
        ["mkfs.options", "--root"],
    ),
    "a log's device by mount": (f'{IMAGE}\nmount = {{logdev = "/dev/sdz"}}', ["mount.logdev", "log ="]),
    "another loop device": (f"{IMAGE}\nmount = {{loop = true}}", ["mount.loop", "its own devices"]),
    "a delay of linear": (f'{ONE}\nmapper = {{kind = "linear", read_delay_ms = 5}}', ["read_delay_ms", '"delay"']),
    "f2fs on a disk of the user's": (f'{ONE}\nfile_system = "f2fs"', ["f2fs", "UUID", "ext4"]),
    "nodatacow of ext4": (f"{IMAGE}\nmount = {{nodatacow = true}}", ["nodatacow", "btrfs alone"]),
    "no file system for data": (f'{IMAGE}\nfile_system = "none"', ["target.files.data = 'disk'", '"none"']),
}


def lacking(path: str, **how: Any) -> Callable[[FakeMachine], None]:
    def change(here: FakeMachine) -> None:
        for key, value in how.items():
            setattr(here.disks[path], key, value)

    return change


def mounted(here: FakeMachine) -> None:
    here.mounted = [Mount("/dev/sdb", "/home", "ext4", ["rw"], "/", "8:1")]


def part_mounted(here: FakeMachine) -> None:
    here.disks["/dev/sdb"].parts = ["sdb1"]
    here.disks["/dev/sdb1"] = Disk()
    here.mounted = [Mount("/dev/sdb1", "/home", "ext4", ["rw"], "/", "?")]


def swapped(here: FakeMachine) -> None:
    here.swapped = ["/dev/sdb"]


def nothing(_: FakeMachine) -> None:
    """The machine is as it is."""


# What is said of the place, what of the machine is in its way, and what the plan has to say.
BY_THE_PLAN: dict[str, tuple[str, Callable[[FakeMachine], None], str]] = {
    "mounted": (ONE, mounted, "/dev/sdb is mounted at /home (ext4)"),
    "a partition of it is mounted": (ONE, part_mounted, "/dev/sdb is mounted at /home (ext4)"),
    "a file system": (
        ONE, lacking("/dev/sdb", signatures={"TYPE": "xfs", "USAGE": "filesystem", "LABEL": "photos"}),
        "/dev/sdb holds a file system: xfs 'photos'",
    ),
    "a partition table": (ONE, lacking("/dev/sdb", signatures={"PTTYPE": "gpt"}), "has a partition table (gpt)"),
    "a member of an array": (
        ONE, lacking("/dev/sdb", signatures={"TYPE": "linux_raid_member", "USAGE": "raid"}),
        "holds a member of linux_raid_member",
    ),
    "under an array": (ONE, lacking("/dev/sdb", holders=["md0"]), "is a member of md0"),
    "swap": (ONE, swapped, "is swap that is on"),
    "open": (ONE, lacking("/dev/sdb", open_by=["qemu (7)"]), "is open in qemu (7)"),
    "claimed": (ONE, lacking("/dev/sdb", claimed=True), "is in use by the kernel"),
    "unknown data": (ONE, lacking("/dev/sdb", blank=False), "holds data that blkid does not know"),
    "read-only": (ONE, lacking("/dev/sdb", read_only=True), "is read-only"),
    "no device": ('devices = ["/dev/sdz"]\nerase = ["/dev/sdz"]', nothing, "/dev/sdz is no block device"),
    "an unknown option": (f"{IMAGE}\nmount = {{sloppy = true}}", nothing, "mount.sloppy: ext4 refuses it: Unknown"),
    "an option of mkfs": (f'{IMAGE}\nmkfs = {{options = ["-O", "odd"]}}', nothing, "refuses it on 1073741824 bytes"),
    "an unknown file system": (f'{IMAGE}\nfile_system = "reiser4"', nothing, "has no reiser4; choose another"),
    "images in memory": (f'{IMAGE}\nimages_in = "/dev/shm"', nothing, "/dev/shm is tmpfs, which is memory"),
    "images nowhere": (f'{IMAGE}\nimages_in = "/nowhere"', nothing, "images_in = /nowhere: no such folder"),
    "images where everybody writes": (f'{IMAGE}\nimages_in = "{{open}}"', nothing, "may be written by everybody (mode"),
    "images that do not fit": ('image = "900 TiB"', nothing, "choose smaller ones"),
    "data that do not fit": ('image = "8 MiB"', nothing, "it has 8 MiB, and the data need"),
    "no array in this kernel": (f"{TWO}\nraid = {{level = 0}}", nothing, "has no md RAID of level 0"),
}  # fmt: skip


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMachine]:
    fake = FakeMachine({"/dev/sda": Disk(), "/dev/sdb": Disk(), "/dev/sdc": Disk()}, modules=("loop",))
    monkeypatch.setattr(machine, "HERE", fake)
    yield fake
    assert fake.calls == [], "nothing was made"


def written(folder: Path, place: str, files: str = 'data = "disk"', settings: str = "") -> str:
    file = folder / "experiment.toml"
    file.write_text(FILE.format(place=place, files=files, settings=settings))
    return str(file)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("wrong", BY_THE_FILE)
def test_refused_by_the_file(wrong: str, tmp_path: Path) -> None:
    place, said = BY_THE_FILE[wrong]
    with pytest.raises(ExperimentError) as caught:
        load(written(tmp_path, place))
    text = str(caught.value)
    assert "experiment.toml:" in text and "allowed: " in text
    assert [part for part in said if part not in text] == [], text


def of_the_plan(file: str, state: StateDir) -> list[str]:
    source = load(file)
    plan = plan_trials(source.experiment, source.treatments, 1)
    return [text for text in obstacles(plan, Needs(), state) if "places" in text or "target.files" in text]


@pytest.mark.parametrize("wrong", BY_THE_PLAN)
def test_refused_by_the_plan(wrong: str, tmp_path: Path, state: StateDir, here: FakeMachine) -> None:
    place, change, said = BY_THE_PLAN[wrong]
    change(here)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    place = place.replace("{open}", str(tmp_path / "open"))
    found = of_the_plan(written(tmp_path, place), state)
    assert any(said in text for text in found), found
    assert all("; " in text for text in found), "what to do about it"
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


@pytest.mark.usefixtures("here")
def test_what_is_right_is_refused_by_nobody(tmp_path: Path, state: StateDir) -> None:
    for place in (IMAGE, ONE, f'{ONE}\nmount = {{noatime = true, data = "journal"}}', 'folder = "/var/tmp"'):
        assert of_the_plan(written(tmp_path, place), state) == []


@pytest.mark.usefixtures("here")
def test_a_log_in_memory_that_claims_to_be_durable(tmp_path: Path, state: StateDir) -> None:
    memory = 'folder = "/dev/shm"'
    files = 'wal = "disk"'
    (said,) = of_the_plan(written(tmp_path, memory, files), state)
    assert said.startswith("target.files.wal = disk: tmpfs is memory") and "fsync is on" in said
    assert of_the_plan(written(tmp_path, memory, files, "fsync = false"), state) == []
    assert of_the_plan(written(tmp_path, memory, 'temp = "disk"'), state) == []
    assert any(
        "fsync" in text for text in of_the_plan(written(tmp_path, memory, 'wal = "/dev/shm"\ntemp = "disk"'), state)
    )


@pytest.mark.usefixtures("here")
def test_a_place_that_nothing_lies_on(tmp_path: Path) -> None:
    factor = '\n[[factors]]\npath = "target.files.wal"\nlevels = ["disk", "other"]\n'
    place = f"{IMAGE}\n\n[environment.places.other]\n{IMAGE}"
    with pytest.raises(ExperimentError) as caught:
        load(written(tmp_path, place))
    assert "environment.places.other: nothing lies on it; allowed: name it in target.files" in str(caught.value)
    file = Path(written(tmp_path, place))
    file.write_text(file.read_text() + factor)
    assert len(load(str(file)).treatments) == 2, "a level puts the log there"


@pytest.mark.usefixtures("here")
def test_names_that_are_none(tmp_path: Path) -> None:
    for files, said in (
        ('wal = "log"', "target.files.wal = 'log': there is no such place; allowed: disk, or a folder's path"),
        ('tablespaces = {"Bad-Name" = "disk"}', "'Bad-Name' is not the name of a table or an index"),
        ('tablespaces = {history = "there"}', "target.files.tablespaces.history = 'there': there is no such place"),
    ):
        with pytest.raises(ExperimentError) as caught:
            load(written(tmp_path, IMAGE, files))
        assert said in str(caught.value)


def test_a_device_of_two_places_in_use(tmp_path: Path, state: StateDir, here: FakeMachine) -> None:
    del here
    place = f"{ONE}\n\n[environment.places.other]\n{ONE}"
    found = of_the_plan(written(tmp_path, place, 'data = "disk"\nwal = "other"'), state)
    assert any("/dev/sdb is a device of environment.places.disk, too" in text for text in found), found
    file = Path(written(tmp_path, place))
    file.write_text(file.read_text() + '\n[[factors]]\npath = "target.files.data"\nlevels = ["disk", "other"]\n')
    assert of_the_plan(str(file), state) == [], "one after the other they may be"
