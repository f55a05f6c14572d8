"""Ends of servers in blocks of windows: whichever way one goes, its trial says why, the others go on, nothing is left.

The constraint: a server that is not served is frozen, and what befalls it takes effect in its next window. So a fault
is planted when all servers have had a window, in a run of so many rounds that the last is far away on any machine.
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
from pathlib import Path

import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.record import Run, open_run

NEEDS = ("root", "cgroup memory", "freezer", "swap", "postgresql", "server user")
SEED = 20261128
KILLS = 8
ROUNDS, ROUNDS_KILLED = 40, 8
VICTIMS = ("front", "plimsoll-agent", "postgres")
PATIENCE_SECONDS = 600.0  # for what comes as soon as the machine lets it
DESIGN = f"""[probes]
page_cache = false
breakdown = false

[design]
kind = "windows"
blocks = 1
rounds = {ROUNDS}
window_seconds = 0.2
lead_in_seconds = 0.05
stop = "never"
duplicate = false

[[factors]]
path = "workload.clients"
levels = [1, 2, 4]
"""
# Takes memory within a group until it is ended.
_EATS = """
import mmap, sys, time
for file in sys.argv[1:]:
    open(file, "w").write("0")
eaten = []
while True:
    memory = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * len(memory))
    eaten.append(memory)
"""


@pytest.fixture(scope="module", autouse=True)
def _three_treatments(laboratory: Laboratory) -> None:
    text = laboratory.experiment.read_text()
    laboratory.experiment.write_text(text[: text.index("[design]")].replace("48 MiB", "16 MiB") + DESIGN)
    # The data set is built once, so that no kill falls into that.
    laboratory.call("run", str(laboratory.experiment), "--set", "design.rounds=1", "--no-page", "--out", "warm")


def _wait(process: subprocess.Popen[str], until: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until():
        assert process.poll() is None, (what, process.communicate())
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextlib.contextmanager
def _running(laboratory: Laboratory, name: str, *sets: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run whose servers have all had a window. Whatever the test comes to, it is ended and put back."""
    out, words = laboratory.state / name, [word for one in sets for word in ("--set", one)]
    argv = ("run", str(laboratory.experiment), *words, "--no-page", "--out", str(out), "--seed", "1")
    process = laboratory.start(*argv)
    try:
        tables = [out / f"trials/000{number}/measure/windows.npy" for number in (1, 2, 3)]
        _wait(process, lambda: all(one.exists() and one.stat().st_size > 512 for one in tables), "no windows")
        yield process, out
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
            laboratory.call("undo")


def _postmaster(laboratory: Laboratory) -> int:
    """Of the first trial's server."""
    (pid_file,) = laboratory.state.glob("work/*-0001/data/postmaster.pid")
    return int(pid_file.read_text().splitlines()[0])


def _ends_alone(laboratory: Laboratory, process: subprocess.Popen[str], out: Path) -> Run:
    """The first trial failed in its windows; the others had all of theirs and are judged; nothing is left."""
    output, error = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, output + error
    assert laboratory.left_behind() == []
    assert laboratory.call("undo").startswith("Nothing")
    run = open_run(out)
    assert [trial.status for trial in run.trials] == ["failed", "finished", "finished"], [
        trial.data.get("reason") for trial in run.trials
    ]
    failed, *finished = run.trials
    print(failed.data["reason"], failed.data["windows"])
    assert 1 <= failed.data["windows"]["rounds"] < ROUNDS
    for trial in finished:
        assert trial.data["windows"]["rounds"] == ROUNDS and all(check["ok"] for check in trial.data["checks"])
    verdict = analyse(run)
    assert [one["trial"] for one in verdict["exclusions"]] == [1], verdict["exclusions"]
    (comparison,) = verdict["comparisons"]
    print(comparison["levels"])
    return run


def test_a_server_that_crashes(laboratory: Laboratory) -> None:
    with _running(laboratory, "crashes") as (process, out):
        os.kill(_postmaster(laboratory), signal.SIGKILL)
        run = _ends_alone(laboratory, process, out)
    assert "connection was lost" in run.trials[0].data["reason"]


def _oom_kills(folders: list[Path]) -> int:
    told = [Path(folder, name) for folder in folders for name in ("memory.oom_control", "memory.events.local")]
    words = " ".join(file.read_text() for file in told if file.exists()).split()
    return int(words[words.index("oom_kill") + 1])


def test_a_server_that_runs_out_of_memory(laboratory: Laboratory) -> None:
    with _running(laboratory, "memory", "environment.swap=0") as (process, out):
        # In the group whose memory it takes, and not in the freezer's: it goes on while the server is frozen.
        of_memory = [folder for folder in laboratory.groups(1) if (folder / "memory.stat").exists()]
        assert _oom_kills(of_memory) == 0
        # Whom the kernel ends is not left to the sizes of the moment: it is the one that says it is the largest.
        postmaster = Path("/proc", str(_postmaster(laboratory)))
        (postmaster / "oom_score_adj").write_text("1000")
        argv = [sys.executable, "-I", "-S", "-c", _EATS, *(str(folder / "cgroup.procs") for folder in of_memory)]
        eater = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        try:
            _wait(process, lambda: _is_gone(postmaster), "the kernel ends nobody")
        finally:
            eater.kill()
            _, said = eater.communicate()
        assert eater.returncode == -signal.SIGKILL and not said, said
        run = _ends_alone(laboratory, process, out)
    assert "out-of-memory killer" in run.trials[0].data["reason"], run.trials[0].data["reason"]
    assert run.trials[0].data["group"]["oom_kills"] >= 1, run.trials[0].data["group"]


def _is_gone(process: Path) -> bool:
    """Whether it has ended, waited for or not."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.long
def test_a_server_that_hangs(laboratory: Laboratory) -> None:
    with _running(laboratory, "hangs") as (process, out):
        parent = _postmaster(laboratory)
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in (parent, *map(int, children)):
            os.kill(pid, signal.SIGSTOP)
        run = _ends_alone(laboratory, process, out)
    assert "transactions of its window had not ended" in run.trials[0].data["reason"]


def test_a_backend_that_is_killed(laboratory: Laboratory) -> None:
    """The server takes all of its processes down and comes up again: what is measured then is another start of it."""
    with _running(laboratory, "backend") as (process, out):
        parent = _postmaster(laboratory)
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        run = _ends_alone(laboratory, process, out)
    print(run.trials[0].data["server_log_tail"][-500:])


def _kill(laboratory: Laboratory, number: int, draw: random.Random, whole_seconds: float) -> str:
    """Kills one process of a run somewhere in its life; what it was and what came of it."""
    out, victim, after = laboratory.state / f"kill-{number}", draw.choice(VICTIMS), draw.uniform(0.05, 0.95)
    sets, began = ("--set", f"design.rounds={ROUNDS_KILLED}"), time.monotonic()
    process = laboratory.start("run", str(laboratory.experiment), *sets, "--no-page", "--out", str(out), "--seed", "1")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after * whole_seconds)
    said = f"kill {number} of seed {SEED}: {victim} after {after * whole_seconds:.2f} s of {whole_seconds:.1f}"
    killed = False
    while not killed and process.poll() is None:  # who is not there yet will come
        pids = [process.pid] if victim == "front" else sorted(laboratory.processes(victim))
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # ended since it was looked for
            if pids:
                pid = draw.choice(pids)
                said += ", " + Path("/proc", str(pid), "cmdline").read_text().replace("\0", " ")[:80].strip()
                os.kill(pid, signal.SIGKILL)
                killed = True
        time.sleep(0.01)
    output, error = process.communicate(timeout=PATIENCE_SECONDS)
    said += f": exit {process.returncode} {time.monotonic() - began:.1f} s after its start"
    print(said)
    said += f"\n{output}\n{error}"
    if victim == "front":
        laboratory.call("undo")
    assert laboratory.left_behind() == [], said
    assert laboratory.call("undo").startswith("Nothing"), said
    if victim != "front" and any(out.glob("trials/*/measure")):  # else it was asked something before the run
        # Whichever process of a server or its load it was, no trial ends of it but its own.
        run = open_run(out)
        ended = [trial.status for trial in run.trials]
        print(ended, [trial.data.get("reason") for trial in run.trials if trial.status != "finished"])
        assert sorted(ended)[1:] == ["finished"] * 2 and ended.count("failed") <= 1, said
    return said


def _whole(laboratory: Laboratory) -> float:
    """Seconds that a run takes which nobody kills, on this machine as it is now."""
    began = time.monotonic()
    sets = ("--set", f"design.rounds={ROUNDS_KILLED}")
    laboratory.call("run", str(laboratory.experiment), *sets, "--no-page", "--out", f"whole-{began}", seconds=600)
    return time.monotonic() - began


@pytest.mark.long
def test_random_kills(laboratory: Laboratory) -> None:
    draw, whole = random.Random(SEED), _whole(laboratory)
    for number in range(KILLS):
        _kill(laboratory, number, draw, whole)
