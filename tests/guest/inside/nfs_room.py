"""A run of one trial on a place by NFS, in a kernel that has both sides, and what it does while its server fails."""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from place_stacks import call

from plimsoll.environment import StateDir
from plimsoll.environment.places.nfs import nfsd

PATIENCE_SECONDS = 600  # of a hang
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


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH", b"lo", 0x41))  # SIOCSIFFLAGS: up and running


class Room:
    """A folder with one run."""

    def __init__(self, state: StateDir, place: Path) -> None:
        self.state, self.place, self.out = state, place, place / "out"
        self.is_down = False

    def write(self, **given: Any) -> None:
        """The experiment."""
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

    def run(self, **given: Any) -> "subprocess.Popen[str]":
        self.write(**given)
        return self.call("run", "experiment.toml", "--out", "out", "--no-page")

    def call(self, *words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-P", "-m", "plimsoll", *words]
        env = {**os.environ, "PLIMSOLL_STATE": str(self.state.root)}
        return subprocess.Popen(
            argv,
            env=env,
            cwd=self.place,
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

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
