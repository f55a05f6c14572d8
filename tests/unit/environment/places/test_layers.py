"""The layers of places on a made-up machine: which programs are called with what, in which order, and undone in which.

On a machine with md and device-mapper the same file runs on the host; where the kernel lacks them the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_machine import GIB, Disk, FakeMachine

from on_places import on_places, up_to
from plimsoll.environment import Journal, StateDir, places
from plimsoll.environment.devices import Mount
from plimsoll.environment.journal.recovery import undo
from plimsoll.environment.knob import Site
from plimsoll.environment.places import arrays, commands, machine, users_devices
from plimsoll.environment.processes import boot_id
from plimsoll.experiment import Experiment
from plimsoll.experiment.places import Place
from plimsoll.run.surroundings import knobs

UUID = "12345678-1234-1234-1234-123456789abc"
Two = dict[str, Any]


def two_disks(**given: Any) -> Two:
    return {"devices": ["/dev/sdb", "/dev/sdc"], "erase": ["/dev/sdb", "/dev/sdc"], **given}


def one_disk(**given: Any) -> Two:
    return {"devices": ["/dev/sdb"], "erase": ["/dev/sdb"], **given}


def on(place: Two, **others: Two) -> Experiment:
    return on_places({"disk": place, **others}, {"data": "disk"})


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    fake = FakeMachine({f"/dev/sd{letter}": Disk() for letter in "bcde"})
    monkeypatch.setattr(machine, "HERE", fake)
    return fake


def obstacles(site: Site) -> list[str]:
    return [text for knob in places.KNOBS for text in knob.obstacles(site)]


def arranged(site: Site, journal: Journal) -> None:
    for knob in places.KNOBS:
        site.arrange(knob, journal)


@pytest.mark.parametrize(
    ("raid", "argv"),
    [
        ({"level": 0, "chunk": "64 KiB"}, "--level=0 --raid-devices=2 UUID --chunk=64"),
        ({"level": 0, "chunk": 8192}, "--level=0 --raid-devices=2 UUID --chunk=8"),
        ({"level": 1}, "--level=1 --raid-devices=2 UUID --bitmap=none"),
        ({"level": 1, "bitmap": "internal", "assume_clean": True},
         "--level=1 --raid-devices=2 UUID --bitmap=internal --assume-clean"),
        ({"level": 10, "chunk": "512 KiB"}, "--level=10 --raid-devices=2 UUID --chunk=512 --bitmap=none"),
    ],
)  # fmt: skip
def test_an_array(raid: dict[str, Any], argv: str) -> None:
    found = commands.array(in_bytes(two_disks(raid=raid)), "/dev/md/x", ["/dev/sdb", "/dev/sdc"], UUID)
    uuid = "--uuid=12345678:12341234:12341234:56789abc"
    wanted = f"mdadm --create /dev/md/x --run --metadata=1.2 {argv.replace('UUID', uuid)} /dev/sdb /dev/sdc"
    assert found == wanted.split()


@pytest.mark.parametrize(
    ("mapper", "table"),
    [
        ({"kind": "linear"}, "0 2048 linear /dev/sdb 0\n2048 4096 linear /dev/sdc 0\n"),
        ({"kind": "delay", "read_delay_ms": 5, "write_delay_ms": 100}, "0 2048 delay /dev/sdb 0 5 /dev/sdb 0 100\n"),
        ({"kind": "flakey", "up_seconds": 9, "down_seconds": 1}, "0 2048 flakey /dev/sdb 0 9 1\n"),
        ({"kind": "flakey", "up_seconds": 9, "down_seconds": 1, "while_down": "drop_writes"},
         "0 2048 flakey /dev/sdb 0 9 1 1 drop_writes\n"),
    ],
)  # fmt: skip
def test_a_table_of_device_mapper(mapper: dict[str, Any], table: str) -> None:
    count = 2 if mapper["kind"] == "linear" else 1
    devices = ["/dev/sdb", "/dev/sdc"][:count]
    place = Place.model_validate({"devices": devices, "erase": devices, "mapper": mapper})
    members = [("/dev/sdb", 1 << 20), ("/dev/sdc", 2 << 20)][:count]
    assert commands.mapper_table(place, members) == table


@pytest.mark.parametrize(
    ("place", "argv"),
    [
        ({}, "mke2fs -q -F -t ext4 -U U -E lazy_itable_init=0,lazy_journal_init=0,nodiscard DEV"),
        ({"file_system": "ext2", "mkfs": {"block_size": 1024, "stride": 8, "stripe_width": 16}},
         "mke2fs -q -F -t ext2 -U U -b 1024 -E "
         "lazy_itable_init=0,lazy_journal_init=0,nodiscard,stride=8,stripe_width=16 DEV"),
        ({"mkfs": {"journal": "none", "discard": True, "options": ["-m", "0"]}},
         "mke2fs -q -F -t ext4 -U U -O ^has_journal -E lazy_itable_init=0,lazy_journal_init=0,discard -m 0 DEV"),
        ({"mkfs": {"journal_size": "64 MiB"}},
         "mke2fs -q -F -t ext4 -U U -J size=64 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard DEV"),
        ({"log": "other"},
         "mke2fs -q -F -t ext4 -U U -b 4096 -J device=LOG -E lazy_itable_init=0,lazy_journal_init=0,nodiscard DEV"),
        ({"file_system": "xfs", "mkfs": {"stride": 16, "stripe_width": 32}},
         "mkfs.xfs -q -f -m uuid=U -K -d su=65536,sw=2 DEV"),
        ({"file_system": "xfs", "log": "other", "mkfs": {"journal_size": "32 MiB"}},
         "mkfs.xfs -q -f -m uuid=U -K -l size=33554432,logdev=LOG DEV"),
        ({"file_system": "btrfs"}, "mkfs.btrfs -q -U U -K DEV"),
        ({"file_system": "f2fs", "mkfs": {"options": ["-l", "x"]}}, "mkfs.f2fs -l x DEV"),
    ],
)  # fmt: skip
def test_mkfs(place: dict[str, Any], argv: str) -> None:
    found = commands.mkfs(in_bytes({"image": GIB, **place}), "U", "LOG" if "log" in place else None)
    assert " ".join(found).replace(machine.DEVICE, "DEV") == argv


def in_bytes(document: dict[str, Any]) -> Place:
    other = {"other": {"image": GIB, "file_system": "none"}} if "log" in document else {}
    site = knobs.site_of(on(document, **other), StateDir(Path("/var/tmp/nowhere")), "x")
    return site.settings.environment.places["disk"]


def test_mount() -> None:
    place = Place.model_validate({"image": GIB, "mount": {"data": "writeback", "noatime": True, "lazytime": False}})
    assert commands.mount(place, "/dev/x", Path("/m"), None) == (
        ["mount", "-t", "ext4", "-o", "data=writeback,noatime", "/dev/x", "/m"]
    )
    xfs = Place.model_validate({"image": GIB, "file_system": "xfs", "log": "other"})
    assert commands.mount(xfs, "/dev/x", Path("/m"), "/dev/y") == [
        "mount",
        "-t",
        "xfs",
        "-o",
        "logdev=/dev/y",
        "/dev/x",
        "/m",
    ]


def test_a_stack_on_a_machine_with_md_and_device_mapper(here: FakeMachine, state: StateDir) -> None:
    """Acceptance 1: the file that a kernel without md refuses runs on the host where it has it."""
    raid = {"level": 0, "chunk": "128 KiB"}
    mkfs = {"stride": 32, "stripe_width": 64}
    mapper = {"kind": "delay", "read_delay_ms": 1}
    settings = on(two_disks(raid=raid, mapper=mapper, file_system="ext2", mkfs=mkfs, mount={"noatime": True}))
    site = knobs.site_of(settings, state, "t-1")
    assert obstacles(site) == []
    journal = Journal.create(state, "t-1")
    arranged(site, journal)
    array, mapped = "/dev/md/plimsoll-t-1-disk", "/dev/mapper/plimsoll-t-1-disk"
    programs = [call.split()[0] + ("" if " --" not in call else f" {call.split()[1]}") for call in here.calls]
    assert programs == ["mdadm --create", "dmsetup create", "mke2fs", "mount"]
    assert here.calls[0].endswith("--chunk=128 /dev/sdb /dev/sdc") and f"--create {array}" in here.calls[0]
    assert here.calls[1].endswith(f"<<< 0 {2 * GIB // 512} delay {array} 0 1 {array} 0 0")
    assert "stride=32,stripe_width=64" in here.calls[2] and here.calls[2].endswith(mapped)
    assert here.calls[3] == f"mount -t ext2 -o noatime {mapped} {state.work}/t-1.at-disk"
    assert [entry.kind for entry in journal.entries] == [
        "place_device", "place_device", "place_array", "place_mapped", "place_file_system", "place_mount",
    ]  # fmt: skip
    here.calls.clear()
    results = undo(state, force=True)
    assert all(result.ok for result in results), results
    changed = [call for call in here.calls if "info" not in call and "--export" not in call]
    assert changed == [
        f"umount {state.work}/t-1.at-disk", "dmsetup remove --retry plimsoll-t-1-disk", "mdadm --stop /dev/md127",
        "mdadm --zero-superblock /dev/sdb", "mdadm --zero-superblock /dev/sdc",
    ]  # fmt: skip
    assert [result.kind for result in results] == [entry.kind for entry in reversed(journal.entries)]


def test_a_volume_of_lvm_sees_its_own_devices_alone(here: FakeMachine, state: StateDir) -> None:
    settings = on(two_disks(volume={"kind": "striped", "stripe": "64 KiB"}))
    site = knobs.site_of(settings, state, "t-7")
    assert obstacles(site) == []
    journal = Journal.create(state, "t-7")
    arranged(site, journal)
    group, volume = (call for call in here.calls if call.startswith("lvm "))
    assert "vgcreate" in group and group.endswith("--yes plimsoll-t-7-disk /dev/sdb /dev/sdc")
    assert "lvcreate" in volume and "--stripes 2 --stripesize 64k --extents 100%FREE plimsoll-t-7-disk" in volume
    for call in (group, volume):
        seen = '["a|^/dev/sdb$|","a|^/dev/sdc$|","r|.*|"]'
        assert f"filter={seen} global_filter={seen}" in call and "backup=0 archive=0" in call
    (mkfs,) = (call for call in here.calls if call.startswith("mke2fs"))
    assert mkfs.endswith("/dev/mapper/plimsoll--t--7--disk-volume")
    here.calls.clear()
    assert all(result.ok for result in undo(state, force=True))
    assert [call.split()[1] for call in here.calls if call.startswith("lvm ") and "pvs" not in call] == [
        "vgremove", "pvremove", "pvremove",
    ]  # fmt: skip


def test_a_volume_group_that_was_never_whole_is_taken_off_its_devices(here: FakeMachine, state: StateDir) -> None:
    journal = Journal.create(state, "t-9")
    journal.record("place_volume", group="plimsoll-t-9-disk", members=["/dev/sdb", "/dev/sdc"])
    here.disks["/dev/sdb"].signatures = {"TYPE": "LVM2_member"}
    here.groups["/dev/sdb"], here.failing = "plimsoll-t-9-disk", "vgremove"
    (result,) = undo(state, force=True)
    assert result.ok and "/dev/sdb no member any more" in result.what
    assert [call.split()[-1] for call in here.calls if "pvremove" in call] == ["/dev/sdb"]


def test_a_volume_group_of_somebody_else_is_left(here: FakeMachine, state: StateDir) -> None:
    journal = Journal.create(state, "t-8")
    journal.record("place_volume", group="plimsoll-t-8-disk", members=["/dev/sdb"])
    here.disks["/dev/sdb"].signatures = {"TYPE": "LVM2_member"}
    here.groups["/dev/sdb"] = "home"
    (result,) = undo(state, force=True)
    assert not result.ok and "home: a volume group of somebody else" in result.what
    assert not any("remove" in call for call in here.calls)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"image": GIB, "volume": {"kind": "striped"}}, "over one device"),
        ({"image": GIB, "images": 2, "volume": {"kind": "linear", "stripe": 8192}}, 'of volume kind "striped"'),
        ({"image": GIB, "images": 2, "volume": {"kind": "striped", "stripe": 3000}}, "4 KiB times a power of 2"),
    ],
)
def test_volumes_that_cannot_be_meant(place: Two, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        on(place)


def test_an_array_is_waited_for_until_it_is_synchronised(here: FakeMachine, state: StateDir) -> None:
    for clean, waits in ((False, True), (True, False)):
        here.calls.clear()
        site = knobs.site_of(on(two_disks(raid={"level": 1, "assume_clean": clean})), state, f"t-{clean}")
        journal = Journal.create(state, f"t-{clean}")
        for knob in up_to(arrays.KNOB):
            site.arrange(knob, journal)
        assert any(call.startswith("mdadm --wait") for call in here.calls) == waits
        journal.put_back_all()


def test_where_the_kernel_has_no_such_layer_the_plan_says_so(here: FakeMachine, state: StateDir) -> None:
    here.modules = ("loop", "dm_mod")
    five = {"devices": [f"/dev/sd{one}" for one in "bcd"], "erase": [f"/dev/sd{one}" for one in "bcd"]}

    def of(**place: Any) -> list[str]:
        return obstacles(knobs.site_of(on(place), state, "plan"))

    said = {
        "array": of(**five, raid={"level": 5}),
        "delay": of(image="1 MiB", mapper={"kind": "delay", "read_delay_ms": 1}),
        "linear": of(image="1 MiB", images=2, mapper={"kind": "linear"}),
    }
    assert said["linear"] == []
    assert said["array"] == [
        "environment.places.disk.raid.level = 5: this kernel (6.12.0-made-up) has no md RAID of level 5; leave it out, "
        "or use a kernel with CONFIG_BLK_DEV_MD and CONFIG_MD_RAID456 (on such a machine the same file runs)"
    ]
    assert said["delay"] == [
        "environment.places.disk.mapper.kind = delay: this kernel (6.12.0-made-up) has no device-mapper target delay; "
        "leave it out, or use a kernel with CONFIG_BLK_DEV_DM and CONFIG_DM_DELAY (on such a machine the same file "
        "runs)"
    ]
    assert here.calls == [] and list(state.work.iterdir()) == []


def test_a_program_that_is_not_installed(here: FakeMachine, state: StateDir) -> None:
    here.missing = {"mdadm", "mke2fs", "losetup", "blkid"}
    of_disks = obstacles(knobs.site_of(on(two_disks(raid={"level": 0})), state, "plan"))
    assert [text.partition(": ")[2] for text in of_disks] == [
        "blkid is not installed; install util-linux",
        "mdadm is not installed; install mdadm",
        "mke2fs is not installed; install e2fsprogs",
    ]
    of_image = obstacles(knobs.site_of(on({"image": "1 MiB"}), state, "plan"))
    assert any("losetup is not installed" in text for text in of_image)


def test_an_array_of_somebody_else_is_not_stopped(here: FakeMachine, state: StateDir) -> None:
    theirs = {"TYPE": "linux_raid_member", "UUID": "00000000-0000-0000-0000-000000000000"}
    here.disks["/dev/sdb"] = Disk(signatures=theirs, holders=["md127"])
    here.disks["/dev/md/x"] = here.disks["/dev/md127"] = Disk()
    with Journal.create(state, "t-2") as journal:
        journal.record("place_array", node="/dev/md/x", uuid=UUID, members=["/dev/sdb"])
        journal.record("place_mapped", name="gone", uuid=UUID)
    assert here.calls == []


def test_an_array_of_ours_is_found_by_its_uuid_under_any_name(here: FakeMachine, state: StateDir) -> None:
    """After a reboot the kernel has assembled it under a name of its own; so it has where mdadm was killed early."""
    ours = {"TYPE": "linux_raid_member", "UUID": UUID}
    for letter in "bc":
        here.disks[f"/dev/sd{letter}"] = Disk(signatures=ours, holders=["md126"])
    here.disks["/dev/md126"] = Disk()
    with Journal.create(state, "t-2") as journal:
        journal.record("place_array", node="/dev/md/plimsoll-x", uuid=UUID, members=["/dev/sdb", "/dev/sdc"])
    assert here.calls == [
        "mdadm --stop /dev/md126", "mdadm --zero-superblock /dev/sdb", "mdadm --zero-superblock /dev/sdc",
    ]  # fmt: skip


def test_what_cannot_be_told_is_not_taken_for_nothing(here: FakeMachine, state: StateDir) -> None:
    here.disks["/dev/sdb"] = Disk(unreadable=True)
    (said,) = [text for text in obstacles(knobs.site_of(on(one_disk()), state, "plan")) if "examined" in text]
    assert "/dev/sdb cannot be examined (/dev/sdb: cannot be read: Input/output error)" in said
    journal = Journal.create(state, "t-2")
    journal.record("place_array", node="/dev/md/x", uuid=UUID, members=["/dev/sdb"])
    journal.record("place_device", path="/dev/sdb", uuids=[UUID], number="8:0", size_bytes=GIB, boot=boot_id())
    results = undo(state, force=True)
    assert [result.ok for result in results] == [False, False] and "Input/output error" in results[0].what
    assert here.calls == [] and [entry.undone for entry in Journal.load(journal.path).entries] == [False, False]


@pytest.mark.parametrize(("diskseq", "is_wiped"), [(1, True), (2, False)])
def test_a_disk_is_known_by_its_diskseq(
    here: FakeMachine, state: StateDir, monkeypatch: pytest.MonkeyPatch, diskseq: int, is_wiped: bool
) -> None:
    """One that was plugged in since may have path, number and size of the one that was taken, and other data."""
    wiped: list[str] = []
    monkeypatch.setattr(FakeMachine, "zero_ends", lambda _, path: wiped.append(path))
    site = knobs.site_of(on(one_disk()), state, "t-2")
    journal = Journal.create(state, "t-2")
    site.arrange(users_devices.KNOB, journal)
    here.disks["/dev/sdb"].blank, here.disks["/dev/sdb"].diskseq = False, diskseq
    (undone,) = undo(state, force=True)
    assert (wiped == ["/dev/sdb"]) == is_wiped and undone.is_left != is_wiped


def test_after_a_reboot_a_disk_is_found_by_its_uuid_under_another_name(
    here: FakeMachine, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiped: list[str] = []
    monkeypatch.setattr(FakeMachine, "zero_ends", lambda _, path: wiped.append(path))
    journal = Journal.create(state, "t-2")
    journal.record("place_device", path="/dev/sdb", uuids=["x", UUID], number="8:0", size_bytes=GIB, boot="before")
    here.disks["/dev/sdc"] = Disk(signatures={"TYPE": "ext4", "UUID": UUID}, blank=False)
    (undone,) = undo(state, force=True)
    assert wiped == ["/dev/sdc"] and undone.what == "/dev/sdc blank again" and not undone.is_left


def test_a_log_of_xfs_on_a_disk_of_the_user_is_known_for_ours(
    here: FakeMachine, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiped: list[str] = []
    monkeypatch.setattr(FakeMachine, "zero_ends", lambda _, path: wiped.append(path))
    log = {"devices": ["/dev/sdc"], "erase": ["/dev/sdc"], "file_system": "none"}
    site = knobs.site_of(on(one_disk(file_system="xfs", log="log"), log=log), state, "t-2")
    arranged(site, Journal.create(state, "t-2"))
    uuid = here.disks["/dev/sdb"].signatures["UUID"]
    here.disks["/dev/sdc"] = Disk(signatures={"TYPE": "xfs_external_log", "LOGUUID": uuid}, blank=False)
    results = undo(state, force=True)
    assert wiped == ["/dev/sdb", "/dev/sdc"] and not any(result.is_left for result in results)


def test_a_disk_that_holds_the_log_of_a_mounted_file_system_is_in_use(here: FakeMachine, state: StateDir) -> None:
    here.mounted = [Mount("/dev/sdz", "/srv", "xfs", ["rw", "logdev=/dev/sdb", "noquota"], "/", "8:99")]
    here.disks["/dev/sdc"] = Disk(signatures={"TYPE": "xfs_external_log", "LOGUUID": UUID, "USAGE": "other"})
    settings = on(two_disks(raid={"level": 0}))
    said = [text.partition("devices: ")[2] for text in obstacles(knobs.site_of(settings, state, "plan"))]
    assert said[0].startswith("/dev/sdb is mounted with what is at /srv (xfs, logdev=/dev/sdb)")
    assert said[1].startswith("/dev/sdc holds something: xfs_external_log")


def test_where_a_program_fails_what_was_made_before_is_put_back(here: FakeMachine, state: StateDir) -> None:
    here.failing = "mkfs.xfs"
    site = knobs.site_of(on({"image": "1 MiB", "file_system": "xfs"}), state, "t-3")
    with pytest.raises(Exception, match="it failed"), Journal.create(state, "t-3") as journal:
        arranged(site, journal)
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


@pytest.fixture(autouse=True)
def nothing_reaches_the_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A call that goes around the fake would format something."""

    def refuse(*argv: Any, **_: Any) -> None:
        raise AssertionError(f"called: {argv}")

    monkeypatch.setattr(machine.subprocess, "Popen", refuse)
    yield
