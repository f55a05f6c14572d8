"""The devices that places are made on in the fingerprint: what of them decides, and what tells two runs apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import devices, fingerprint
from plimsoll.experiment import load
from plimsoll.run.surroundings import file_locations

FILE = """format = 1
name = "mine"
title = "A question"
workload = { name = "bank", scale = 1 }
measure = { seconds = 1 }
target = { files = { data = "disk" } }

[environment.places.disk]
devices = ["/dev/sdc", "/dev/sdb"]
erase = ["/dev/sdb", "/dev/sdc"]
raid = { level = 0, chunk = "64 KiB" }
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sysfs of two disks, the second with a partition, and of an array over both."""
    files = {
        "block/sdb/device/model": "SLOW 18", "block/sdb/queue/write_cache": "write through", "block/sdb/size": "1000",
        "block/sdb/queue/nr_requests": "64", "block/sdb/queue/scheduler": "none [mq-deadline]",
        "block/sdc/device/model": "FAST 36", "block/sdc/queue/write_cache": "write back", "block/sdc/size": "2000",
        "block/sdc/sdc1/partition": "1", "block/sdc/sdc1/size": "900",
        "block/md0/md/level": "raid0", "block/md0/md/chunk_size": "65536", "block/md0/size": "1800",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "block/md0/slaves").mkdir()
    (tmp_path / "class/block").mkdir(parents=True)
    for name in ("sdb", "sdc", "md0"):
        (tmp_path / "class/block" / name).symlink_to(tmp_path / "block" / name)
    (tmp_path / "class/block/sdc1").symlink_to(tmp_path / "block/sdc/sdc1")
    for name in ("sdb", "sdc"):
        (tmp_path / "block/md0/slaves" / name).symlink_to(tmp_path / "block" / name)
    monkeypatch.setattr(devices, "_SYS", tmp_path)
    return tmp_path


def described(path: str) -> dict[str, Any]:
    found = devices.described_block(Path(path))
    assert found is not None
    return found


def test_a_disk_a_partition_and_an_array(tree: Path) -> None:
    assert tree.is_dir()
    disk = described("/dev/sdb")
    told = (disk["path"], disk["model"], disk["write_cache"], disk["nr_requests"], disk["scheduler"])
    assert told == ("/dev/sdb", "SLOW 18", "write through", 64, "mq-deadline") and disk["size_sectors"] == 1000
    part = described("/dev/sdc1")
    assert (part["name"], part["model"], part["size_sectors"]) == ("sdc", "FAST 36", 900)
    array = described("/dev/md0")
    assert (array["raid_level"], array["chunk_bytes"]) == ("raid0", 65536)
    assert [below["model"] for below in array["under"]] == ["SLOW 18", "FAST 36"]
    assert devices.described_block(Path("/dev/sdz")) is None


def test_runs_on_other_devices_are_told_apart_and_names_are_not(tree: Path) -> None:
    one = {"place_devices": [described("/dev/md0")]}
    (tree / "class/block/md9").symlink_to(tree / "block/md0")
    assert fingerprint.comparable(one, {"place_devices": [described("/dev/md9")]}) == []
    (tree / "block/md0/md/chunk_size").write_text("8192\n")
    (tree / "block/sdc/queue/write_cache").write_text("write through\n")
    assert fingerprint.comparable(one, {"place_devices": [described("/dev/md0")]}) == [
        {"key": "place_devices.0.chunk_bytes", "a": 65536, "b": 8192},
        {"key": "place_devices.0.under.1.write_cache", "a": "write back", "b": "write through"},
    ]
    (difference,) = fingerprint.comparable({"place_devices": [described("/dev/sdb")]}, {"place_devices": [
        described("/dev/sdb") | {"size_sectors": 5}]})  # fmt: skip
    assert difference["key"] == "place_devices.0.size_sectors"


def test_those_that_the_parts_lie_on_are_in_it(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(FILE)
    settings = load(str(tmp_path / "experiment.toml")).treatments[0].settings
    assert file_locations.devices_of(settings) == ["/dev/sdc", "/dev/sdb"]
    assert "place_devices" not in fingerprint.fingerprint([tmp_path])
