"""A program: runs on a place by NFS, whose front or agent is killed at random moments, the server silent or not;
undo after each, and nothing may be left.

A process of its own that has imported everything once: a front is a fork of it, since a guest of user-mode-linux takes
seconds to start a python. Arguments: the state folder, one for the runs, how many kills, the seed. Prints a line for
each kill; ends with 1 and the reason at the first one that leaves something.
"""

import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfs_room import PATIENCE_SECONDS, Room, until, waiting
from place_stacks import call, found

from plimsoll.cli import app
from plimsoll.environment import StateDir, undo
from plimsoll.environment.places.machine import HERE

LOAD_SECONDS, SILENCE_SECONDS_MAX, AFTER_SECONDS_MAX = 5, 5, 5.0
MODULES = "modules.json"


@dataclass
class Front:
    """A fork of ours that runs the experiment of the folder that it stands in."""

    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.code = 0
        return self.code

    def communicate(self) -> tuple[str]:
        """For whoever waits for something that it should have done."""
        return (Path("said").read_text(),)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def start(place: Path, state: StateDir) -> Front:
    pid = os.fork()
    if pid:
        return Front(pid)
    os.setsid()
    os.chdir(place)
    os.environ["PLIMSOLL_STATE"] = str(state.root)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(said, stream)
    sys.argv = ["plimsoll", "run", "experiment.toml", "--out", "out", "--no-page"]
    try:
        app.main()
    except SystemExit as end:
        print("ended with", end.code)
    finally:
        Path(MODULES).write_text(json.dumps([*sys.modules]))
        sys.stdout.flush()
        os._exit(0)


def room_of(state: StateDir, place: Path, **given: Any) -> Room:
    """A folder with the experiment."""
    place.mkdir(mode=0o755)
    room = Room(state, place)
    room.write(image="24 MiB", seconds=LOAD_SECONDS, bound=SILENCE_SECONDS_MAX, **given)
    return room


def look(state: StateDir) -> dict[str, Any]:
    """What there is of a run: nothing of it may be left."""
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("plimsoll*/**")]
    agents = [path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if _says(path).startswith("plimsoll-ag")]
    return {**found(state), "server": HERE.serves_nfs(), "groups": groups, "agents": agents}


def _says(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def whole(state: StateDir, place: Path, version: str) -> float:
    """One that nobody kills; the seconds that it took. What it has imported we have from now on."""
    room = room_of(state, place, version=version)
    began, front = time.monotonic(), start(place, state)
    until(lambda: front.poll() is not None)
    seconds = time.monotonic() - began
    record, said = room.out / "trials/0001/trial.json", (place / "said").read_text()
    assert record.exists() and room.trial()["status"] == "finished", said
    for name in json.loads((place / MODULES).read_text()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return seconds


@dataclass
class Kill:
    """Whom, when, and what became of the server before it. `moments`: of the silence and of the kill, since the front
    began or, `late`, since all was set up."""

    whom: str
    silent: str | None
    back: bool
    late: bool
    moments: list[float]
    version: str


def drawn(chance: random.Random, seconds: float) -> Kill:
    """At random. An agent is there only once all is set up."""
    whom = chance.choice(("front", "front", "agent"))
    late = whom == "agent" or chance.random() < 0.5
    return Kill(
        whom=whom,
        silent=chance.choice((None, "down", "threads")),
        back=chance.random() < 0.3,
        late=late,
        moments=sorted(chance.uniform(0, AFTER_SECONDS_MAX if late else seconds) for _ in range(2)),
        version=chance.choice(("3", "4.2")),
    )


def kill(state: StateDir, place: Path, one: Kill) -> float:
    """Does so, and undoes; the seconds that undoing took."""
    room = room_of(state, place, version=one.version)
    front = start(place, state)
    try:
        if one.late:
            until(lambda: room.journalled() or front.poll() is not None)
        began = time.monotonic()
        _wait(began + one.moments[0], front)
        if one.silent == "down":
            room.down()
        elif one.silent == "threads" and (files := room.journalled().get("files")) is not None:
            with contextlib.suppress(OSError):  # put back meanwhile
                Path(files, "threads").write_text("0\n")
        _wait(began + one.moments[1], front)
        if one.whom == "front":
            front.kill()
        else:
            with contextlib.suppress(AssertionError, ProcessLookupError):  # it has ended
                os.kill(room.agent(), signal.SIGKILL)
        if one.back:
            room.up()
        until(lambda: front.poll() is not None)
        began = time.monotonic()
        undone = undo(state)
        seconds = time.monotonic() - began
        assert all(entry.ok and not entry.is_left for entry in undone), undone
        until(lambda: not waiting())
        return seconds
    finally:
        room.up()


def _wait(moment: float, front: Front) -> None:
    while time.monotonic() < moment and front.poll() is None:
        time.sleep(min(0.1, max(0.0, moment - time.monotonic())))


def main() -> None:
    state, folder, kills, seed = StateDir(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    before, chance = look(state), random.Random(seed)
    seconds = [whole(state, folder / f"whole-{version}", version) for version in ("3", "4.2")]
    print(f"seed {seed}; a whole run takes {seconds[0]:.1f} s (version 3) and {seconds[1]:.1f} s", flush=True)
    assert look(state) == before, look(state)
    for number in range(1, kills + 1):
        one, place, began = drawn(chance, seconds[1]), folder / str(number), time.monotonic()
        print(f"kill {number}: {one}", flush=True)
        signal.alarm(PATIENCE_SECONDS)  # ends us, where undo hangs
        undoing = kill(state, place, one)
        left = look(state)
        if left != before:
            print((place / "said").read_text(), call("dmesg")[-2000:])
            sys.exit(f"left {left}")
        shutil.rmtree(place)
        print(f"    undone in {undoing:.1f} s, {time.monotonic() - began:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
