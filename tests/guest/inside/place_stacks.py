"""Stacks of places in a guest, whose kernel has md and device-mapper as modules; what is there is read from the kernel.

Also a program of its own, since a fork of pytest's takes a second in this guest: a run that makes a stack is killed,
with undo after each time. Arguments: the state folder, the run's name, the place as JSON, and "steps" with the stride
or "moments" with their number. Prints the steps that it was killed at or after, or all of them; ends with 1 and the
reason on standard error at the first kill that leaves something.
"""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import killed
from on_places import on_places
from plimsoll.environment import Journal, StateDir, places
from plimsoll.environment.knob import Site
from plimsoll.environment.places import mounts
from plimsoll.environment.places.machine import HERE
from plimsoll.run.surroundings import knobs

MIB = 1 << 20


def site_of(state: StateDir, run_id: str, place: dict[str, Any]) -> Site:
    """Of a trial whose files lie on this place."""
    return knobs.site_of(on_places({"disk": place}, {"data": "disk"}), state, run_id)


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


def _run(state: StateDir, run_id: str, place: dict[str, Any]) -> None:
    journal = Journal.create(state, run_id)
    site = site_of(state, run_id, place)
    arrange(site, journal)
    Path(site.made_by(mounts.KNOB)["disk"], "file").write_bytes(b"x" * 4096)
    journal.put_back_all()


def main() -> None:
    state, run_id, place, at, number = StateDir(Path(sys.argv[1])), *sys.argv[2:]
    run, look = partial(_run, state, run_id, json.loads(place)), partial(found, state)
    if at == "steps":
        print("\n".join(killed.at_each_step(run, state, look, int(number))))
    else:
        print("\n".join(killed.at_random(run, state, look, int(number)).elements()))


if __name__ == "__main__":
    main()
