"""A run on a place by NFS whose server fails under it, in a kernel that has both sides: what the trial says, that
nothing hangs, and that nothing is left.

The constraint: a guest of user-mode-linux has one CPU and starts a python in seconds. So each test is one run of one
trial, waits for what it needs to see and never for a time, and is killed from outside where it hangs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nfs_room import Room, ended, loopback_up, until, waiting
from place_stacks import call, found

from plimsoll.environment import StateDir, undo
from plimsoll.environment.devices import mounts
from plimsoll.environment.places.nfs import nfsd

SILENT_SECONDS = 10
KILLER = Path(__file__).parents[1] / "kill_by_nfs.py"


@pytest.fixture
def room(needs: Any, state: StateDir, tmp_path: Path) -> Iterator[Room]:
    needs("root", "mkfs.ext4", "server user", "tc")
    loopback_up()
    before = found(state)
    assert not any(before.values()), before
    tmp_path.chmod(0o755)
    made = Room(state, tmp_path)
    yield made
    try:
        left = found(state)
        assert left == before, f"left {left}"
        until(lambda: not waiting())
    finally:
        made.up()
        undo(state, force=True)
        print(call("dmesg")[-1500:])


def test_a_server_that_loses_its_packets_for_ten_seconds_is_told(room: Room) -> None:
    front = room.run()
    until(room.is_measuring, front)
    room.down()
    time.sleep(SILENT_SECONDS)
    room.up()
    code, said = ended(front)
    assert code == 0, said
    trial = room.trial()
    assert trial["status"] == "finished"
    (silence,) = trial["silences"]
    assert silence["place"] == "filer" and silence["server"] == "127.0.0.1"
    # From the last look before it to the first after it; TCP sends again after times that double.
    assert SILENT_SECONDS - 1 <= silence["seconds"] <= (silence["ended_epoch_ns"] - silence["began_epoch_ns"]) / 1e9 + 1
    assert any("the server at 127.0.0.1 did not answer for" in one for one in trial["caveats"])
    assert all(check["ok"] for check in trial["checks"])


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_server_whose_threads_are_gone_for_ten_seconds_is_told(room: Room, version: str) -> None:
    front = room.run(version=version)
    until(room.is_measuring, front)
    server = room.server()
    (Path(server.files) / "threads").write_text("0\n")
    time.sleep(SILENT_SECONDS)
    nfsd.stop(Path(server.files))
    nfsd.start(server)
    code, said = ended(front)
    assert code == 0, said
    trial = room.trial()
    assert trial["status"] == "finished"
    (silence,) = trial["silences"]
    assert silence["seconds"] >= SILENT_SECONDS - 1
    assert all(check["ok"] for check in trial["checks"])


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_network_that_is_down_for_good_ends_the_trial_and_nothing_is_left(room: Room, version: str) -> None:
    front = room.run(version=version, bound=8)
    until(room.is_measuring, front)
    room.down()
    code, said = ended(front)
    trial = room.trial()
    assert trial["status"] == "failed" and "nfs.silence_seconds_max is 8" in trial["reason"], (code, said)
    (silence,) = trial["silences"]
    assert silence["ended_epoch_ns"] is None and silence["seconds"] > 8
    assert found(room.state)["mounts"] == [] and not waiting()


def test_a_front_that_is_killed_while_the_server_is_silent_is_undone(room: Room) -> None:
    front = room.run()
    until(room.is_measuring, front)
    room.down()
    time.sleep(2)
    front.kill()
    front.wait()
    code, said = ended(room.call("undo"))
    assert code == 0 and "no NFS server answers" in " ".join(said.split()), said


def test_an_agent_that_is_killed_while_the_server_is_silent_fails_its_trial(room: Room) -> None:
    front = room.run(bound=8)
    until(room.is_measuring, front)
    room.down()
    time.sleep(2)
    os.kill(room.agent(), signal.SIGKILL)
    ended(front)
    trial = room.trial()
    assert trial["status"] == "failed" and trial["reason"]


def test_an_export_that_is_withdrawn_fails_the_trial_with_its_reason(room: Room) -> None:
    """exportfs -u: the server forgets it and has nobody to ask. A client is told so at once, or as often as it asks."""
    front = room.run(bound=8)
    until(room.is_measuring, front)
    nfsd.flush()
    ended(front)
    trial = room.trial()
    summary = room.out / "trials/0001/measure/summary.json"
    errors = json.loads(summary.read_text())["errors"] if summary.exists() else []
    print(errors)
    told = [trial["reason"] or "", *(error["sqlstate"] for error in errors)]
    assert any("ESTALE" in one or "tale" in one or "silence_seconds_max" in one for one in told), told


def test_an_export_that_is_full_is_told(room: Room) -> None:
    front = room.run(image="24 MiB", operation="append", bytes="262144", seconds=10)
    code, said = ended(front)
    trial = room.trial()
    assert code == (1 if trial["status"] == "failed" else 0), said
    if trial["status"] == "failed":  # what is to be kept of the files did not fit either
        assert "No space left on device" in trial["reason"] and "free space there" in trial["reason"]
        return
    summary = json.loads((room.out / "trials/0001/measure/summary.json").read_text())
    assert "ENOSPC" in [error["sqlstate"] for error in summary["errors"]], said
    assert all(check["ok"] for check in trial["checks"]), "what was acknowledged is there"


def test_an_export_whose_file_system_is_another_one_is_told_as_stale(room: Room) -> None:
    front = room.run(bound=8)
    until(room.is_measuring, front)
    server = room.server()
    (exported,) = server.exports
    call("mount", "-t", "tmpfs", "tmpfs", exported.path)
    try:
        nfsd.flush()
        for cache, line in nfsd.cache_lines(server):  # the same handles, of another file system
            Path("/proc/net/rpc", cache, "channel").write_text(f"{line}\n")
        ended(front)
    finally:
        if any(mount.point == exported.path for mount in mounts()):  # it covered a place of ours, and went with it
            call("umount", "-l", exported.path)
    trial = room.trial()
    summary = room.out / "trials/0001/measure/summary.json"
    errors = json.loads(summary.read_text())["errors"] if summary.exists() else []
    print(errors)
    told = [trial["reason"] or "", *(error["sqlstate"] for error in errors)]
    assert any("ESTALE" in one or "tale" in one for one in told), told


def test_kills_at_random_moments_leave_nothing(room: Room) -> None:
    """In a program of its own, whose forks are small: kill_by_nfs.py. What it says is kept as it goes."""
    kept = Path(os.environ["PLIMSOLL_ROOM"], "kept/kills")
    kills, seed = os.environ.get("PLIMSOLL_KILLS", "5"), os.environ.get("PLIMSOLL_SEED", "22")
    with kept.open("w") as told:
        argv = [sys.executable, str(KILLER), str(room.state.root), str(room.place), kills, seed]
        code = subprocess.run(argv, stdout=told, stderr=subprocess.STDOUT, check=False).returncode
    print(kept.read_text())
    assert code == 0
