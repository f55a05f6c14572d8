"""A stack of every layer that this kernel has, killed at each of its steps: after undo the machine is as it was found.

Two places: ext4 on an image, whose journal lies on the device of another place; and XFS on a disk that the user named,
which is a loop device of the test's own.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from loop_file_system import call

import killed
from on_places import on_places, up_to
from plimsoll.environment import Fault, Journal, StateDir, places, undo
from plimsoll.environment.journal import journal as journals
from plimsoll.environment.places import loops, queues, users_devices
from plimsoll.environment.places.found_on import found_on
from plimsoll.environment.places.machine import HERE
from plimsoll.experiment import Experiment
from plimsoll.run.surroundings import file_locations, knobs

MIB = 1 << 20
NEEDS = ("root", "loop devices and mkfs.ext4", "mkfs.xfs", "server user")
EVERY_LAYER = (*places.KNOBS, file_locations.KNOB)


def asked(disk: str | None = None) -> Experiment:
    """The data on ext4 with a journal elsewhere, and the log on the user's disk."""
    tables: dict[str, Any] = {
        "one": {"image": "24 MiB", "scheduler": "none", "read_ahead": "64 KiB", "log": "journal",
                "mkfs": {"stride": 4, "stripe_width": 8}, "mount": {"data": "journal", "noatime": True}},
        "journal": {"image": "8 MiB", "file_system": "none", "image_blocks": "reserved"},
    }  # fmt: skip
    files = {"data": "one"}
    if disk is not None:
        tables["disk"] = {"devices": [disk], "erase": [disk], "file_system": "xfs", "nr_requests": 64}
        files["wal"] = "disk"
    return on_places(tables, files)


@pytest.fixture
def disk(needs: Callable[..., None]) -> Iterator[str]:
    """A blank disk of the user's."""
    needs(*NEEDS)
    image = Path("/var/tmp", f"plimsoll-known-{os.getpid()}-disk")
    with image.open("wb") as file:
        file.truncate(310 * MIB)
    loop = call("losetup", "--find", "--show", "--direct-io=on", str(image))
    try:
        yield loop
    finally:
        call("losetup", "--detach", loop)
        image.unlink()


def _machine(state: StateDir, disk: str) -> dict[str, Any]:
    loops = [line for line in call("losetup", "--list", "--noheadings", "-O", "BACK-FILE").splitlines()]
    queue = HERE.queue(disk)
    return {
        "loops": sorted(line for line in loops if str(state.root) in line),
        "mounts": [mount.point for mount in HERE.mounts() if str(state.root) in mount.point or mount.source == disk],
        "work": sorted(path.name for path in state.work.iterdir()),
        "journal": sorted(path.name for path in state.journal.iterdir()),
        "disk": (HERE.signatures(disk), HERE.ends_are_zero(disk), (queue / "nr_requests").read_text()),
    }


def _run(state: StateDir, run_id: str, disk: str) -> None:
    """What a run does."""
    journal = Journal.create(state, run_id)
    site = knobs.site_of(asked(disk), state, run_id)
    for knob in EVERY_LAYER:
        site.arrange(knob, journal)
    (site.data / "file").write_bytes(b"x" * MIB)
    journal.put_back_all()


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_a_step_nothing_is_left_after_undo(state: StateDir, run_id: str, disk: str, stride: int) -> None:
    before = _machine(state, disk)
    assert before["disk"][:2] == ({}, True) and before["mounts"] == before["loops"] == []
    names = killed.at_each_step(partial(_run, state, run_id, disk), state, partial(_machine, state, disk), stride)
    made = [name.removeprefix("after record ") for name in names if name.startswith("after record")]
    assert made == [
        "place_device", "place_image", "place_image", "place_loop", "place_loop", "place_queue", "place_queue",
        "place_file_system", "place_file_system", "place_file_system", "place_mount", "place_mount",
        "placed_dir", "placed_dir",
    ]  # fmt: skip
    put_back = [name.removeprefix("after mark ") for name in names if name.startswith("after mark")]
    assert put_back == made[::-1]
    assert len(names) > 80


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.long)])
def test_killed_at_any_time_nothing_is_left_after_undo(state: StateDir, run_id: str, disk: str, kills: int) -> None:
    """Between steps, too: within mkfs, a mount, the making of a loop device."""
    hit = killed.at_random(partial(_run, state, run_id, disk), state, partial(_machine, state, disk), kills)
    print(f"{kills} kills after {len(hit)} different steps: {hit}")
    if kills > 20:  # a handful may all fall into the step that takes longest
        assert len(hit) > kills**0.5


def test_a_loop_device_that_is_just_being_made_is_seen_by_undo(needs: Callable[..., None], state: StateDir) -> None:
    """The killed run's losetup ends its system call, and may do that after undo has looked."""
    needs(*NEEDS)
    image = state.work / "plimsoll-x-y-0.img"
    for _ in range(40):
        with image.open("wb") as file:
            file.truncate(8 * MIB)
        said, say = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                journal = Journal.create(state, "run")
                journals.step_hook = lambda name, _, to=say: os.write(to, b"." * name.startswith("after record"))
                loops._attach(image, journal)
                time.sleep(60)
            os._exit(99)
        os.read(said, 1)
        time.sleep(random.uniform(0, 0.012))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        results = undo(state)
        time.sleep(0.03)
        left = HERE.loops_of(image)
        for loop in left:
            call("losetup", "--detach", loop)
        os.close(said)
        os.close(say)
        assert all(result.ok for result in results) and left == []


def test_undo_itself_may_be_killed_at_every_step(state: StateDir, run_id: str, disk: str) -> None:
    run, look = partial(_run, state, run_id, disk), partial(_machine, state, disk)
    assert killed.undo_at_each_step(run, state, look) > 5


def test_a_state_folder_behind_a_symbolic_link(state: StateDir, run_id: str, disk: str) -> None:
    before = _machine(state, disk)
    link = state.root.with_name(f"{state.root.name}-link")
    link.symlink_to(state.root)
    try:
        behind = StateDir(link)
        journal = Journal.create(behind, run_id)
        site = knobs.site_of(asked(disk), behind, run_id)
        for knob in EVERY_LAYER:
            site.arrange(knob, journal)
        assert _machine(state, disk) != before
        results = undo(behind, force=True)
        assert all(result.ok and not result.is_left for result in results), results
        assert _machine(state, disk) == before
    finally:
        link.unlink()


def test_a_program_that_makes_a_layer_ends_with_the_run() -> None:
    """A mkfs that goes on would hold its device against undo."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            say = f"import os, time; os.write({tell}, b'%d\\n' % os.getpid()); time.sleep(300)"
            HERE.call(sys.executable, "-I", "-S", "-c", say, pass_fds=(tell,))
        os._exit(99)
    os.close(tell)
    with os.fdopen(told) as lines:
        pid = int(lines.readline())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert lines.read() == "", "the other end of the pipe is closed when it ends"
    assert not Path(f"/proc/{pid}/exe").exists()


def test_what_was_asked_for_is_what_is_there(state: StateDir, run_id: str, disk: str) -> None:
    site = knobs.site_of(asked(disk), state, run_id)
    assert [text for knob in EVERY_LAYER for text in knob.obstacles(site)] == []
    with Journal.create(state, run_id) as journal:
        for knob in EVERY_LAYER:
            site.arrange(knob, journal)
        found = places.described(site)
        one, other = found["places"]["one"], found["places"]["disk"]
        assert found["parts"] == {"data": "one", "wal": "disk"} and found["logs"] == {"one": "journal"}
        assert {"noatime", "data=journal", "stripe=8"} <= set(one["mount"]) and one["read_ahead_kib"] == 64
        (device,) = one["devices"]
        assert device["loop_direct_io"] == 1 and device["size_bytes"] == 24 * MIB and device["scheduler"] == "none"
        assert other["file_system"] == "xfs" and other["devices"][0]["nr_requests"] == 64
        header = call("dumpe2fs", "-h", f"/dev/{device['name']}")
        assert "RAID stride:              4" in header and "Journal device:" in header
        image = state.work / f"plimsoll-{run_id}-one-0.img"
        assert image.stat().st_blocks * 512 >= 24 * MIB, "no block of it is a hole"
    with pytest.raises(Fault), Journal.create(state, run_id) as journal:
        call("mkfs.ext4", "-q", disk)  # between the plan and the trial somebody else took the disk
        site = knobs.site_of(asked(disk), state, run_id)
        for knob in EVERY_LAYER:
            site.arrange(knob, journal)
    assert HERE.signatures(disk)["TYPE"] == "ext4", "what is somebody else's stays"
    assert list(state.work.iterdir()) == []
    subprocess.run(["wipefs", "--all", "--quiet", disk], check=True)


def test_a_journal_on_a_disk_of_the_user_goes_with_the_trial(state: StateDir, run_id: str, disk: str) -> None:
    document = asked().model_dump(mode="json")
    document["environment"]["places"]["journal"] = {"devices": [disk], "erase": [disk], "file_system": "none"}
    site = knobs.site_of(Experiment.model_validate(document), state, run_id)
    journal = Journal.create(state, run_id)
    for knob in EVERY_LAYER:
        site.arrange(knob, journal)
    assert HERE.signatures(disk)["TYPE"] == "jbd"
    results = undo(state, force=True)
    assert all(result.ok and not result.is_left for result in results), results
    assert HERE.signatures(disk) == {} and HERE.ends_are_zero(disk)


def test_a_log_of_xfs_on_a_disk_of_the_user_goes_with_the_trial(state: StateDir, run_id: str, disk: str) -> None:
    document = asked().model_dump(mode="json")
    one = {"image": "304 MiB", "image_blocks": "reserved", "file_system": "xfs", "log": "journal"}
    log = {"devices": [disk], "erase": [disk], "file_system": "none"}
    document["environment"]["places"] = {"one": one, "journal": log}
    site = knobs.site_of(Experiment.model_validate(document), state, run_id)
    journal = Journal.create(state, run_id)
    for knob in EVERY_LAYER:
        site.arrange(knob, journal)
    assert HERE.signatures(disk)["TYPE"] == "xfs_external_log"
    assert any("is mounted with" in one for one in found_on(disk, HERE))
    results = undo(state, force=True)
    assert all(result.ok and not result.is_left for result in results), results
    assert HERE.signatures(disk) == {} and HERE.ends_are_zero(disk)


def test_what_cannot_be_asked_is_told_from_nothing(disk: str) -> None:
    assert HERE.signatures(disk) == {} and HERE.mapped("plimsoll-none") is None
    with pytest.raises(Fault, match="No such file"):
        HERE.signatures("/dev/plimsoll-none")
    with pytest.raises(Fault, match="has not answered in 0 s"):
        HERE.call("sleep", "100", seconds=0.1)


def test_what_a_queue_was_set_to_comes_back_with_its_scheduler(state: StateDir, run_id: str, disk: str) -> None:
    """The kernel drops it when the scheduler is changed."""
    queue = HERE.queue(disk)
    (queue / "scheduler").write_text("mq-deadline")
    (queue / "nr_requests").write_text("77")
    (queue / "iosched/fifo_batch").write_text("5")
    names = ("scheduler", "nr_requests", "wbt_lat_usec", "iosched/fifo_batch", "iosched/read_expire")
    before = {name: (queue / name).read_text() for name in names}
    place = {"devices": [disk], "erase": [disk], "scheduler": "none"}
    document = asked().model_dump(mode="json") | {"target": {"files": {"data": "one"}}}
    document["environment"]["places"] = {"one": place}
    for way in ("put back", "killed"):
        site = knobs.site_of(Experiment.model_validate(document), state, run_id)
        journal = Journal.create(state, run_id)
        for knob in up_to(queues.KNOB):
            site.arrange(knob, journal)
        assert "[none]" in (queue / "scheduler").read_text() and (queue / "nr_requests").read_text() != "77\n"
        results = journal.put_back_all() if way == "put back" else undo(state, force=True)
        assert not any(result.is_left for result in results)
        assert {name: (queue / name).read_text() for name in names} == before


def test_who_has_a_disk_open_is_told_without_a_look_at_other_files(
    disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may lie on a mount whose server is gone, where every look waits for ever."""
    looked = list[str]()

    def seen(ask: Callable[..., Any], path: Any, *args: Any, **options: Any) -> Any:
        looked.append(str(path))
        with contextlib.suppress(OSError):
            looked.append(str(Path(str(path)).readlink()))
        return ask(path, *args, **options)

    with (tmp_path / "theirs").open("w"), Path(disk).open("rb"), monkeypatch.context() as patched:
        for name in ("stat", "lstat"):
            patched.setattr(os, name, partial(seen, getattr(os, name)))
        found = HERE.open_by(disk)
    assert [f"({os.getpid()})" in one for one in found] == [True]
    assert disk in looked and str(tmp_path / "theirs") not in looked


def test_a_disk_that_somebody_formatted_meanwhile_is_left_to_him(state: StateDir, run_id: str, disk: str) -> None:
    journal = Journal.create(state, run_id)
    site = knobs.site_of(asked(disk), state, run_id)
    site.arrange(users_devices.KNOB, journal)
    call("mkfs.ext4", "-q", disk)
    (undone,) = undo(state, force=True)
    assert undone.is_left and "holds ext4 that is not the run's" in undone.what
    assert HERE.signatures(disk)["TYPE"] == "ext4"


def test_an_image_that_does_not_fit_is_refused_and_nothing_stays(
    state: StateDir, run_id: str, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(Fault, match="No space left on device"), Journal.create(state, run_id) as journal:
        site = knobs.site_of(asked(), state, run_id)
        for knob in EVERY_LAYER:
            site.arrange(knob, journal)
    assert list(state.work.iterdir()) == [] and _machine(state, disk)["loops"] == []
