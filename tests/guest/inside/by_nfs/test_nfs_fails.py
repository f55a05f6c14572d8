"""A run on a place by NFS whose server fails under it, in a kernel that has both sides: what the trial says, that
nothing hangs, and that nothing is left.

The constraint: a guest of user-mode-linux has one CPU and starts a python in seconds. So each test is one run of one
trial, waits for what it needs to see and never for a time, and is killed from outside where it hangs.
"""

import contextlib
import fcntl
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from place_stacks import call, found

from plimsoll.environment import StateDir, undo
from plimsoll.environment.devices import mounts
from plimsoll.environment.places.nfs import nfsd

PATIENCE_SECONDS = 1200  # of a hang; a server takes minutes to stop where packets are lost
SILENT_SECONDS = 10
EXPERIMENT = """format = 1
name = "writes-by-nfs"
title = "How many durable writes does the mount carry?"

[environment.places.disk]
image = "IMAGE"
file_system = "ext4"

[environment.places.filer]
nfs = { on = "disk", version = "VERSION", silence_seconds_max = BOUND }

[target]
server = "files"
files = { data = "filer" }

[workload]
name = "files"
count = 2
file_size = "64 KiB"
clients = 2
mix = [{ operation = "OPERATION", bytes = BYTES, sync = "fsync" }]

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

[measure]
seconds = SECONDS

[design]
blocks = 1
seed = 5
"""


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH", b"lo", 0x41))  # SIOCSIFFLAGS: up and running


class Room:
    """A folder with one run."""

    def __init__(self, state: StateDir, place: Path) -> None:
        self.state, self.place, self.out = state, place, place / "out"
        self.is_down = False

    def run(self, **given: Any) -> "subprocess.Popen[str]":
        text = EXPERIMENT
        for name, value in {
            "image": "64 MiB",
            "version": "4.2",
            "bound": 120,
            "operation": "write",
            "bytes": 4096,
            "seconds": 30,
            **given,
        }.items():
            text = text.replace(name.upper(), str(value))
        (self.place / "experiment.toml").write_text(text)
        return self.call("run", "experiment.toml", "--out", "out", "--no-page")

    def call(self, *words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-P", "-m", "plimsoll", *words]
        env = {**os.environ, "PLIMSOLL_STATE": str(self.state.root)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(argv, env=env, cwd=self.place, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]

    def trial(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.out / "trials/0001/trial.json").read_text())
        print(json.dumps({key: told.get(key) for key in ("status", "reason", "silences", "caveats", "checks")}))
        return told

    def journalled(self) -> dict[str, Any]:
        """The server as the run's journal has it; {} before there is one."""
        for journal in self.state.journal.glob("*.jsonl"):
            for line in journal.read_text().splitlines():
                if '"place_nfs_calls"' in line:
                    server: dict[str, Any] = json.loads(line)["args"]["mounts"][0]["server"]
                    return server
        return {}

    def server(self) -> nfsd.Wanted:
        return nfsd.Wanted.of(self.journalled())

    def is_measuring(self) -> bool:
        """Whether the load is on: the probes' series grow."""
        sample = self.out / "trials/0001/measure/host.npy"
        return bool(self.journalled()) and sample.exists() and sample.stat().st_size > 200

    def agent(self) -> int:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"plimsoll-agent") and words[1:2] == [b"load"]:
                return int(folder.name)
        raise AssertionError("no agent loads")

    def down(self) -> None:
        """Every packet of the loopback is lost."""
        call("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%")
        self.is_down = True

    def up(self) -> None:
        if self.is_down:
            call("tc", "qdisc", "del", "dev", "lo", "root")
            self.is_down = False


def until(condition: Callable[[], object], of: "subprocess.Popen[str] | None" = None) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert of is None or of.poll() is None, of.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def ended(of: "subprocess.Popen[str]") -> tuple[int, str]:
    try:
        said = of.communicate(timeout=PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        print(call("ps", "-e", "-o", "pid,ppid,stat,etimes,wchan:24,args"))
        raise
    print(said)
    return of.returncode, said


def waiting() -> list[str]:
    """Processes in uninterruptible sleep for NFS or RPC, and mounts of it."""
    names = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        if state == "D" and not name.startswith(("kworker", "jbd2", "nfsd")):
            names.append(f"{name} ({folder.name})")
    return names


@pytest.fixture
def room(needs: Any, state: StateDir, tmp_path: Path) -> Iterator[Room]:
    needs("root", "mkfs.ext4", "server user", "tc")
    _loopback_up()
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
    assert code == 0, said
    trial = room.trial()
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


def _killed_at_random(room: Room, kills: int) -> None:
    """The server silent from a random moment on or not, for good or for a while; then front or agent killed at a random
    moment; and undo, with the network as it is then."""
    chance, before = random.Random(kills), found(room.state)
    for number in range(1, kills + 1):
        place = room.place / str(number)
        place.mkdir(mode=0o755)
        one = Room(room.state, place)
        silent, back = chance.choice((None, "down", "threads")), chance.random() < 0.3
        whom, moments = chance.choice(("front", "front", "agent")), sorted(chance.uniform(0, 6) for _ in range(2))
        what = f"kill {number}: {whom}, server {silent}, back {back}, moments {moments}"
        front = one.run(bound=6, seconds=10, version=chance.choice(("3", "4.2")))
        try:
            until(lambda: one.journalled() or front.poll() is not None)  # noqa: B023
            time.sleep(moments[0])
            if silent == "down":
                room.down()
            elif silent == "threads" and (files := one.journalled().get("files")) is not None:
                with contextlib.suppress(OSError):  # put back meanwhile
                    Path(files, "threads").write_text("0\n")
            time.sleep(moments[1] - moments[0])
            if whom == "front":
                front.kill()
            else:
                with contextlib.suppress(AssertionError, ProcessLookupError):  # it has ended
                    os.kill(one.agent(), signal.SIGKILL)
            if back:
                room.up()
            said = front.communicate(timeout=PATIENCE_SECONDS)[0]
            code, undone = ended(one.call("undo"))
            assert code == 0, (what, said, undone)
            assert found(room.state) == before, (what, said, undone)
            until(lambda: not waiting())
            print(what, "undone")
        finally:
            room.up()


def test_a_handful_of_kills_at_random_moments_leaves_nothing(room: Room) -> None:
    _killed_at_random(room, 5)


def test_a_hundred_kills_at_random_moments_leave_nothing(room: Room) -> None:
    _killed_at_random(room, 100)
