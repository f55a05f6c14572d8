"""Layers of places on a kernel that has them: made, read back from the kernel, undone, and killed at their steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from place_stacks import MIB, arrange, call, found, site_of

from plimsoll.environment import Fault, Journal, places
from plimsoll.environment.places import mounts

NEEDS = ("root", "modprobe", "mdadm", "dmsetup", "mkfs.ext4")
TWO = {"image": "24 MiB", "images": 2, "image_blocks": "reserved"}
STRIPED = {
    **TWO, "raid": {"level": 0, "chunk": "64 KiB"}, "file_system": "ext2",
    "mkfs": {"block_size": 4096, "stride": 16, "stripe_width": 32},
}  # fmt: skip


def _put_back(journal):
    """What was put back, in its order; all of it was."""
    results = journal.put_back_all()
    assert all(result.ok and not result.is_left for result in results), results
    return [result.kind for result in results]


def _made(state, run_id, place):
    """(the journal, the layout as it is told, the name of the device that is mounted)"""
    site = site_of(state, run_id, place)
    assert [text for knob in places.KNOBS for text in knob.obstacles(site)] == []
    journal = Journal.create(state, run_id)
    arrange(site, journal)
    layout = places.described(site)["places"]["disk"]
    print(json.dumps(layout))
    return journal, layout, call("findmnt", "-n", "-o", "SOURCE", str(site.made_by(mounts.KNOB)["disk"])).strip()


@pytest.fixture
def before(needs, state):
    """What there was; the same is there after the test."""
    needs(*NEEDS)
    there = found(state)
    assert not any(there.values()), there
    yield there
    assert found(state) == there


def test_a_stripe_has_the_chunk_that_was_asked_for(before, state, run_id):
    del before
    journal, layout, device = _made(state, run_id, STRIPED)
    (line,) = [line for line in Path("/proc/mdstat").read_text().splitlines() if " chunks" in line]
    name = Path(device).resolve().name
    assert "64k chunks" in line and Path(f"/sys/block/{name}/md/chunk_size").read_text().strip() == str(64 << 10)
    assert Path(f"/sys/block/{name}/md/level").read_text().strip() == "raid0"
    header = call("dumpe2fs", "-h", device)
    assert "RAID stride:              16" in header and "RAID stripe width:        32" in header
    members = sorted(path.name for path in Path(f"/sys/block/{name}/slaves").iterdir())
    assert members == [one["name"] for one in layout["devices"]] and len(members) == 2
    assert layout["raid"]["level"] == 0
    assert _put_back(journal) == [
        "place_mount", "place_file_system", "place_array", "place_loop", "place_loop", "place_image", "place_image",
    ]  # fmt: skip


def test_a_mirror_is_whole_before_it_is_used(before, state, run_id):
    del before
    mirror = {**TWO, "raid": {"level": 1, "bitmap": "internal"}, "file_system": "ext4"}
    journal, _, device = _made(state, run_id, mirror)
    name = Path(device).resolve().name
    text = Path("/proc/mdstat").read_text()
    assert "active raid1" in text and "[UU]" in text and "bitmap:" in text and "resync" not in text, text
    assert Path(f"/sys/block/{name}/md/sync_action").read_text().strip() == "idle"
    _put_back(journal)


def test_mapped_devices_have_their_tables(before, state, run_id):
    del before
    image = {"image": "16 MiB", "image_blocks": "reserved", "file_system": "ext2"}
    cases = {
        "linear": ({"kind": "linear"}, 2, ["0 32768 linear 7:0 0", "32768 32768 linear 7:1 0"]),
        "delay": ({"kind": "delay", "read_delay_ms": 10, "write_delay_ms": 20}, 1,
                  ["0 32768 delay 7:0 0 10 7:0 0 20"]),
        "flakey": ({"kind": "flakey", "up_seconds": 60, "down_seconds": 1, "while_down": "drop_writes"}, 1,
                   ["0 32768 flakey 7:0 0 60 1 1 drop_writes"]),
    }  # fmt: skip
    for name, (mapper, images, wanted) in cases.items():
        journal, layout, device = _made(state, f"{run_id}-{name}", {**image, "images": images, "mapper": mapper})
        assert device == f"/dev/mapper/plimsoll-{run_id}-{name}-disk" and layout["mapper"]["kind"] == name
        table = [line.strip() for line in call("dmsetup", "table", Path(device).name).splitlines()]
        assert table == wanted
        assert call("dmsetup", "info", "-c", "--noheadings", "-o", "uuid", Path(device).name).startswith("PLIMSOLL-")
        assert _put_back(journal)[:3] == ["place_mount", "place_file_system", "place_mapped"]


def test_a_mapped_device_over_an_array(before, state, run_id):
    del before
    mapper = {"kind": "delay", "write_delay_ms": 10}
    journal, _, device = _made(state, run_id, {**STRIPED, "mapper": mapper})
    assert " delay 9:" in call("dmsetup", "table", Path(device).name)
    assert _put_back(journal)[:4] == ["place_mount", "place_file_system", "place_mapped", "place_array"]


def test_volumes_of_lvm_have_their_tables(before, needs, state, run_id):
    needs("lvm")
    for kind, volume, wanted in (
        ("linear", {"kind": "linear"}, ["linear 7:0", "linear 7:1"]),
        ("striped", {"kind": "striped", "stripe": "64 KiB"}, ["striped 2 128 7:0 2048 7:1 2048"]),
    ):
        journal, layout, device = _made(state, f"{run_id}-{kind}", {**TWO, "volume": volume, "file_system": "ext4"})
        table = call("dmsetup", "table", device).splitlines()
        assert len(table) == len(wanted) and all(one in line for one, line in zip(wanted, table, strict=True)), table
        assert layout["volume"]["kind"] == kind and "LVM2_member" in call("blkid", "--probe", "/dev/loop0")
        assert _put_back(journal)[:3] == ["place_mount", "place_file_system", "place_volume"]
        assert found(state) == before


FIVE = ["place_image", "place_image", "place_loop", "place_loop", "place_array", "place_file_system", "place_mount"]


@pytest.mark.long
def test_a_volume_killed_at_some_steps_is_gone_after_undo(before, needs, state, run_id):
    del before
    needs("lvm")
    made = _killed_at_steps(state, run_id, {**TWO, "volume": {"kind": "striped"}, "file_system": "ext4"}, 7)
    assert made == [one if one != "place_array" else "place_volume" for one in FIVE]


def _killed(state, run_id, place, at, number):
    """What a program of its own says, in which a run that makes the place is killed: place_stacks.py."""
    argv = [sys.executable, str(Path(__file__).with_name("place_stacks.py"))]
    argv += [str(state.root), run_id, json.dumps(place), at, str(number)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _killed_at_steps(state, run_id, place, stride):
    """The layers that it makes, from the bottom; they are put back from the top."""
    names = _killed(state, run_id, place, "steps", stride)
    made = [name.removeprefix("after record ") for name in names if name.startswith("after record")]
    put_back = [name.removeprefix("after mark ") for name in names if name.startswith("after mark")]
    print(f"{len(names)} steps, a kill at every {stride}")
    assert put_back == made[::-1]
    return made


def test_a_stack_of_five_layers_killed_at_some_steps_is_gone_after_undo(before, state, run_id):
    del before
    assert _killed_at_steps(state, run_id, STRIPED, 9) == FIVE


@pytest.mark.long
def test_a_stack_of_five_layers_killed_at_every_step_is_gone_after_undo(before, state, run_id):
    del before
    assert _killed_at_steps(state, run_id, STRIPED, 1) == FIVE


@pytest.mark.long
def test_every_kind_of_stack_killed_at_every_third_step_is_gone_after_undo(before, state, run_id):
    del before
    mirror = {**TWO, "raid": {"level": 1}, "mapper": {"kind": "delay", "write_delay_ms": 10}}
    mirror |= {"file_system": "ext4", "mount": {"noatime": True}, "read_ahead": "64 KiB"}
    others = [
        {**TWO, "images": 4, "raid": {"level": 10, "chunk": "64 KiB"}, "file_system": "ext4"},
        {**TWO, "images": 3, "raid": {"level": 5, "chunk": "64 KiB", "assume_clean": True}, "file_system": "ext4"},
        {**TWO, "mapper": {"kind": "linear"}, "file_system": "ext4"},
        {**TWO, "volume": {"kind": "striped", "stripe": "8 KiB"}, "file_system": "ext4"},
        {"image": 24 * MIB, "mapper": {"kind": "flakey", "up_seconds": 99, "down_seconds": 1}},
    ]
    for number, place in enumerate([mirror, *others]):
        _killed_at_steps(state, f"{run_id}-{number}", place, 3)


def _killed_at_moments(state, run_id, kills):
    """Within steps, too: in the middle of mdadm, mkfs, a mount. The steps after which it was killed."""
    after = _killed(state, run_id, STRIPED, "moments", kills)
    print(f"{kills} kills, after {sorted(set(after))}")
    assert len(after) == kills
    return set(after)


@pytest.mark.long
def test_a_stack_of_five_layers_killed_at_any_time_is_gone_after_undo(before, state, run_id):
    del before
    _killed_at_moments(state, run_id, 4)


@pytest.mark.long
def test_a_stack_of_five_layers_killed_a_hundred_times_is_gone_after_undo(before, state, run_id):
    del before
    assert len(_killed_at_moments(state, run_id, 100)) > 10


def test_an_image_that_its_disk_has_no_room_for(before, state, run_id, tmp_path):
    """The second of two: what was made of the stack until then is put back."""
    disk = tmp_path / "disk"
    disk.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk))
    try:
        journal = Journal.create(state, run_id)
        with pytest.raises(Fault, match="No space left on device"):
            arrange(site_of(state, run_id, {**STRIPED, "images_in": str(disk)}), journal)
        assert len(list(disk.iterdir())) == 2
        assert _put_back(journal) == ["place_image", "place_image"]
        assert list(disk.iterdir()) == [] and found(state) == before
    finally:
        call("umount", str(disk))


def test_a_place_that_was_filled_up_is_put_back(before, state, run_id):
    del before
    site, journal = site_of(state, run_id, STRIPED), Journal.create(state, run_id)
    arrange(site, journal)
    file = Path(site.made_by(mounts.KNOB)["disk"], "file")
    with pytest.raises(OSError, match="No space left"), file.open("wb", buffering=0) as full:
        while True:
            full.write(b"x" * MIB)
    assert 40 * MIB < file.stat().st_size < 48 * MIB
    assert _put_back(journal)[0] == "place_mount"
