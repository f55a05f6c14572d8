"""An experiment on a guest kernel, from the host's front to its verdict, and what is left when a part of it is killed.

Each run is small: every system call of a guest is several of the host's, and its python takes seconds to start.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import StateDir, undo
from plimsoll.environment.guest import machine
from plimsoll.record import open_run
from plimsoll.report.page import write_report

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ("root", "user-mode-linux", "server user", "modprobe", "mdadm")
SECONDS_MAX = 300  # of a hang
FILE = """format = 1
name = "log-in-a-guest"
title = "How many durable appends does the guest's ext4 carry?"

[environment]
kernel = "guest"
memory = "64 MiB"
guest = { memory = "768 MiB" }

[environment.places.stripe]
image = "24 MiB"
images = 2
raid = { level = 0, chunk = "64 KiB" }
mkfs = { stride = 16, stripe_width = 32 }

[target]
server = "files"
files = { data = "stripe" }

[workload]
name = "files"
count = 2
file_size = "4 KiB"

[[workload.mix]]
operation = "append"
bytes = 512
sync = "fsync"

[probes]
page_cache = false
breakdown = false
double_caching = false
sync = true

[[factors]]
path = "workload.clients"
levels = [1, 2]

[warmup]
until = "none"

[measure]
seconds = 1

[design]
blocks = 1
seed = 3
"""


@dataclass
class Laboratory:
    """A folder with an experiment, a state folder and the records of runs."""

    place: Path

    @property
    def state(self) -> StateDir:
        return StateDir(self.place / "state")

    @property
    def out(self) -> Path:
        return self.place / "out"

    def call(self, *words: str) -> "subprocess.Popen[str]":
        env = {**os.environ, "PLIMSOLL_STATE": str(self.state.root), "PYTHONPATH": str(ROOT / "python")}
        argv = [sys.executable, "-P", "-m", "plimsoll", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(argv, env=env, cwd=self.place, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]

    def run(self, *words: str) -> "subprocess.Popen[str]":
        return self.call("run", "experiment.toml", "--out", "out", *words)

    def guests(self) -> list[int]:
        """Processes of guests of this laboratory, however they came to be."""
        folders = self.state.work.glob("*-guest")
        return [pid for folder in folders for pid in machine.processes_of(folder)]

    def kernel(self) -> int:
        """The guest's kernel itself: of its processes the one that none of the others has started."""
        processes = [pid for pid in self.guests() if Path(f"/proc/{pid}/exe").readlink().name == "linux.uml"]
        (found,) = (pid for pid in processes if parent_of(pid) not in processes)
        return found

    def is_clean(self) -> bool:
        return not any((any(self.state.work.iterdir()), any(self.state.journal.iterdir()), self.guests()))

    def run_json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "run.json").read_text())
        return found


def parent_of(pid: int) -> int:
    """As /proc/PID/stat has it, behind the name, which may hold anything."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def laboratory(needs: Callable[..., None]) -> Iterator[Laboratory]:
    needs(*NEEDS)
    # Not in pytest's own folder: the server's user could not reach that.
    with tempfile.TemporaryDirectory(prefix="plimsoll-test-", dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "experiment.toml").write_text(FILE)
        found = Laboratory(place)
        found.state.prepare()
        yield found
        undo(found.state, force=True)


def until(condition: Callable[[], object], of: "subprocess.Popen[str]") -> None:
    """Waits for something that the run is to do."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert of.poll() is None, of.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ended(of: "subprocess.Popen[str]", seconds_max: float = SECONDS_MAX) -> tuple[int, str]:
    """Exit code, and what it said."""
    said = of.communicate(timeout=seconds_max)[0]
    print(said)
    return of.returncode, said


def first_trial(laboratory: Laboratory) -> Callable[[], bool]:
    """Whether the first trial's result is on the host, and that it stands."""
    folder = laboratory.out / "trials/0001"
    return lambda: (folder / "trial.json").exists() and not (folder / "repeat.json").exists()


def test_a_run_that_is_stopped_and_resumed_ends_with_its_verdict(laboratory: Laboratory) -> None:
    front = laboratory.run("--no-page")
    until(first_trial(laboratory), front)
    front.send_signal(signal.SIGINT)
    code, said = ended(front)
    assert code == 4 and "run --resume out" in said
    assert laboratory.is_clean() and laboratory.run_json()["status"] == "stopped"
    first = (laboratory.out / "trials/0001/measure/summary.json").stat().st_mtime_ns

    code, said = ended(laboratory.call("run", "--resume", "out", "--no-page"))
    assert code == 0 and "mechanism, not speed" in said
    assert laboratory.is_clean()
    run = open_run(laboratory.out)
    assert [trial.status for trial in run.trials] == ["finished"] * 2
    assert (laboratory.out / "trials/0001/measure/summary.json").stat().st_mtime_ns == first
    for trial in run.trials:
        # The group is the guest's, of version 2 whatever the host has; the file system is its own.
        assert (trial.data["group"]["version"], trial.data["group"]["limit_bytes"]) == (2, 64 << 20)
        assert trial.data["server"]["version"].startswith("ext4, Linux 6.1.")
        identity = trial.measure.identity
        assert identity["planned"] == identity["done"] > 0
        # The files lay on a stripe that this host's kernel need not know, and the layout is as the guest's tells it.
        stripe = trial.data["layout"]["places"]["stripe"]
        assert (stripe["raid"]["level"], len(stripe["devices"])) == (0, 2) and "stripe=32" in stripe["mount"]
        assert stripe["devices"][0]["image"]["file_system"] == "ext4"
    assert run.fingerprint is not None
    kernel, host = run.fingerprint["kernel"], run.fingerprint["host"]
    assert kernel["kind"] == "guest (user-mode-linux)" and kernel["release"] != host["kernel"]["release"]
    assert host["kernel"]["release"] == os.uname().release
    assert str(laboratory.place) not in kernel["boot_parameters"]
    guest = json.loads((laboratory.out / "verdict.json").read_text())["guest"]
    assert guest["cannot"] == ["speed", "cpus", "tick", "probes", "images", "sweeps"] and not guest["drifts"]
    assert len(guest["boots"]) == 2 and all(abs(boot["drift_ppm"]) < 1000 for boot in guest["boots"])
    page = write_report(laboratory.out).read_text()
    assert (
        "On a guest kernel: what it shows, and what not" in page
        and "mechanism, not speed" in page
        and "rounded up to that, the kernel" in page
    )


@pytest.mark.long
def test_a_guest_is_booted_with_what_was_asked_and_its_record_says_so(laboratory: Laboratory) -> None:
    asked = "environment.guest.parameters=quiet printk.time=1"
    code, said = ended(laboratory.run("--no-page", "--set", asked))
    assert code == 0, said
    run = open_run(laboratory.out)
    assert run.fingerprint is not None and run.fingerprint["kernel"]["boot_parameters"].count("printk.time=1") == 1
    assert json.loads((laboratory.out / "verdict.json").read_text())["guest"]["parameters"] == asked.split("=", 1)[1]
    assert "printk.time=1" in write_report(laboratory.out).read_text()


@pytest.mark.long
def test_a_parameter_that_the_guests_kernel_does_not_know_is_refused(laboratory: Laboratory) -> None:
    asked = "environment.guest.parameters=transparent_hugepages=never quiet"
    code, said = ended(laboratory.run("--no-page", "--set", asked))
    assert code == 3 and "its kernel does not know transparent_hugepages=never" in " ".join(said.split())
    assert "does not know quiet" not in said
    assert laboratory.is_clean() and not laboratory.out.exists()


def test_a_guest_that_is_killed_leaves_what_was_finished(laboratory: Laboratory) -> None:
    front = laboratory.run("--no-page")
    until(first_trial(laboratory), front)
    os.kill(laboratory.kernel(), signal.SIGKILL)
    code, said = ended(front)
    assert code == 1 and "the guest kernel was ended by SIGKILL before the run had ended" in said
    assert "1 of 2 trials have their result" in said and f"./plimsoll run --resume {laboratory.out}" in said
    assert laboratory.is_clean() and laboratory.run_json()["status"] == "failed"
    assert "Checking PROT_EXEC" in (laboratory.out / "guest-console.txt").read_text()
    (trial,) = [one for one in open_run(laboratory.out).trials if one.status == "finished"]
    assert trial.number == 1 and trial.measure.identity["done"] > 0


def test_a_front_that_is_killed_takes_the_guest_with_it(laboratory: Laboratory) -> None:
    front = laboratory.run("--no-page")
    until((laboratory.out / "fingerprint.json").exists, front)  # the first trial has begun
    assert laboratory.guests()
    front.kill()
    front.communicate()
    deadline = time.monotonic() + 10
    while laboratory.guests() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert laboratory.guests() == [] and not laboratory.is_clean()
    code, said = ended(laboratory.call("undo"))
    assert code == 0 and said.count("put back: ") == 2 and "was not running" in said
    assert laboratory.is_clean() and laboratory.run_json()["status"] == "running"
    assert ended(laboratory.call("undo"))[1].strip() == "Nothing was left to put back."


def test_what_the_guests_kernel_cannot_do_is_told_before_a_trial(laboratory: Laboratory) -> None:
    """A guest without CPU sets refuses target_cpus, which the host cannot know of it; nothing stays."""
    text = FILE.replace('memory = "64 MiB"', 'memory = "64 MiB"\ntarget_cpus = "0"')
    (laboratory.place / "experiment.toml").write_text(text)
    code, said = ended(laboratory.run())
    assert code == 3 and "on the guest kernel: environment.target_cpus" in said
    assert laboratory.is_clean() and not laboratory.out.exists()


@pytest.mark.long
def test_a_place_that_fills_up_in_the_guest_is_told_and_nothing_stays(laboratory: Laboratory) -> None:
    """Of two images of 24 MiB; each trial has its own, so that the second one begins on an empty place."""
    text = FILE.replace('bytes = 512\nsync = "fsync"', "bytes = 65536").replace("seconds = 1\n", "seconds = 5\n")
    (laboratory.place / "experiment.toml").write_text(text)
    code, said = ended(laboratory.run("--no-page"))
    assert code == 0 and laboratory.is_clean()
    for number in (1, 2):
        trial = json.loads((laboratory.out / f"trials/{number:04d}/trial.json").read_text())
        if trial["status"] == "failed":  # what is to be kept of the files did not fit either
            assert "No space left on device" in trial["reason"] and "free space there" in trial["reason"]
            continue
        summary = json.loads((laboratory.out / f"trials/{number:04d}/measure/summary.json").read_text())
        assert [error["sqlstate"] for error in summary["errors"]] == ["ENOSPC"], said
        assert all(check["ok"] for check in trial["checks"]), "what was acknowledged is there"
