"""Stacks of places in a guest, whose kernel has md and device-mapper as modules; what is there is read from the kernel.

Also a program of its own, since a fork of pytest's takes a second in this guest: a run that makes a stack is killed at
every so many of its steps, with undo after each. Arguments: the state folder, the run's name, the place as JSON, the
stride. Prints the steps' names; ends with 1 and a line on standard error at the first kill that leaves something.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plimsoll.environment import Journal, StateDir, places, undo
from plimsoll.environment.journal import journal as journals
from plimsoll.environment.knob import Site
from plimsoll.environment.places import mounts
from plimsoll.environment.places.machine import HERE
from plimsoll.experiment import Experiment
from plimsoll.run.surroundings import knobs

MIB = 1 << 20


def site_of(state: StateDir, run_id: str, place: dict[str, Any]) -> Site:
    """Of a trial whose files lie on this place."""
    document = {"name": "x", "title": "x", "workload": {"name": "bank", "scale": 1}, "measure": {"seconds": 1}}
    tables = {"environment": {"places": {"disk": place}}, "target": {"files": {"data": "disk"}}}
    return knobs.site_of(Experiment.model_validate(document | tables), state, run_id)


def arrange(site: Site, journal: Journal) -> None:
    """All layers, from the bottom to the top."""
    for knob in places.KNOBS:
        site.arrange(knob, journal)


def call(*argv: str) -> str:
    """What a program says."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env={**os.environ, "PATH": path})
    return done.stdout


def found(state: StateDir) -> dict[str, Any]:
    """What there is of layers: nothing of it may be left."""
    mdstat = Path("/proc/mdstat").read_text().splitlines() if Path("/proc/mdstat").exists() else []
    return {
        "mounts": [mount.point for mount in HERE.mounts() if str(state.root) in mount.point],
        "mapped": sorted(entry.name for entry in Path("/dev/mapper").glob("*") if entry.name != "control"),
        "tables": sorted(path.name for path in Path("/sys/block").glob("dm-*")),
        "arrays": [line for line in mdstat if line.startswith("md")],
        "names": sorted(entry.name for entry in Path("/dev/md").glob("*")),
        "loops": sorted(str(path.parent.parent.name) for path in Path("/sys/block").glob("loop*/loop/backing_file")),
        "work": sorted(path.name for path in state.work.iterdir()),
        "journal": sorted(path.name for path in state.journal.iterdir()),
    }


def _run(state: StateDir, run_id: str, place: dict[str, Any], hook: Callable[[str, int], None]) -> None:
    journals._steps = 0
    journals.step_hook = hook
    journal = Journal.create(state, run_id)
    site = site_of(state, run_id, place)
    arrange(site, journal)
    Path(site.made_by(mounts.KNOB)["disk"], "file").write_bytes(b"x" * 4096)
    journal.put_back_all()


def killed_at(state: StateDir, run_id: str, place: dict[str, Any], step: int) -> tuple[bool, list[str]]:
    """(was it killed, the steps it came to)"""
    said, say = os.pipe()

    def hook(name: str, number: int) -> None:
        os.write(say, f"{name}\n".encode())
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _run(state, run_id, place, hook)
            os._exit(0)
        os._exit(99)
    os.close(say)
    with os.fdopen(said) as lines:
        names = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        sys.exit(f"step {step}: the run ended with {os.WEXITSTATUS(status)}, after {names[-1:]}")
    return os.WIFSIGNALED(status), names


def main() -> None:
    state, run_id, place, stride = StateDir(Path(sys.argv[1])), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
    before = found(state)
    step, killed, names = 1 - stride, True, list[str]()
    while killed:
        step += stride
        killed, names = killed_at(state, run_id, place, step)
        results = undo(state)
        if not all(result.ok and not result.is_left for result in results) or found(state) != before:
            sys.exit(f"killed at step {step} ({names[-1:]}): {results}; left {found(state)}, was {before}")
        if undo(state):
            sys.exit(f"killed at step {step} ({names[-1:]}): there was something left for a second undo")
    print("\n".join(names))


if __name__ == "__main__":
    main()
