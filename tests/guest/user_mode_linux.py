"""A guest with cgroup version 2: tests of ours run inside Debian's user-mode-linux, and what each did comes out.

The constraint: a kernel that runs as a process has one CPU, forks slowly and sees the host's root as its own (hostfs).
So it is booted once for all tests that were asked for, and what charges a page cache or holds swap lies on an ext4
image of its own: hostfs hands its pages to the host's cache, and files made there belong to the host's root.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from plimsoll.environment.guest.kernel import PRELOADED

ROOT = Path(__file__).resolve().parents[2]
INIT = Path(__file__).with_name("init_user_mode")
MEMORY_MIB = 768
DISK_BYTES = 8 << 30  # sparse
TOOLS = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}
NEEDED = ("linux.uml", "mkfs.ext4", "setpriv")


def available() -> bool:
    """Can a guest be built and booted? It mounts file systems over the host's folders, in its own kernel only."""
    return os.geteuid() == 0 and all(shutil.which(tool, path=TOOLS["PATH"]) for tool in NEEDED)


@dataclass(frozen=True)
class Result:
    """One test inside. `outcome`: passed, failed or skipped; `text`: what it printed, and why it failed."""

    outcome: str
    seconds: float
    text: str


@dataclass(frozen=True)
class Session:
    """`results` by the test's name inside; one that never ended is missing. `transcript`: the kernel's and pytest's."""

    results: dict[str, Result]
    transcript: str
    seconds: float


def run(
    tests: list[str], seconds_max: float, kept: Path, state: Path | None = None, words: Sequence[str] = ()
) -> Session:
    """Boot, run these tests of pytest (by name, from the project's root), halt. A guest out of time is killed.

    What they write to $PLIMSOLL_ROOM/kept is moved into the folder `kept`; `state` is copied in as their state folder.
    `words`: more of their environment.
    """
    with tempfile.TemporaryDirectory(prefix="plimsoll-uml-", dir="/var/tmp") as name:
        room = Path(name)
        room.chmod(0o755)  # the server's user works inside
        for folder in ("disk", "kept", "content/state"):
            (room / folder).mkdir(parents=True)
        if state is not None:
            subprocess.run(["cp", "-a", f"{state}/.", str(room / "content/state")], check=True)
        (room / "image").touch()
        os.truncate(room / "image", DISK_BYTES)
        make = ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", "-d", str(room / "content"), str(room / "image")]
        subprocess.run(make, check=True, capture_output=True, env=TOOLS)
        (room / "tests").write_text("\n".join(tests) + "\n")
        started = time.monotonic()
        _boot(room, seconds_max, words)
        seconds = time.monotonic() - started
        shutil.copytree(room / "kept", kept, dirs_exist_ok=True)
        return Session(_results(room / "results"), (room / "console").read_text(errors="replace"), seconds)


def start(room: Path, console: IO[bytes], *words: str) -> subprocess.Popen[bytes]:
    """A guest whose disk is the room's image, not waited for. `words`: more of its first program's environment."""
    argv = ["setpriv", "--pdeathsig", "KILL", "linux.uml", f"mem={MEMORY_MIB}M", f"ubda={room / 'image'}"]
    # The kernel's command line knows no blank in a path, and a checkout's may have one.
    for name, place in (("tree", ROOT), ("venv", Path(sys.prefix)), (PRELOADED.name, PRELOADED)):
        if not (room / name).is_symlink():
            (room / name).symlink_to(place)
    env = {**TOOLS, "LD_PRELOAD": str(room / PRELOADED.name)}
    init = room / "tree" / INIT.relative_to(ROOT)
    argv += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}", f"uml_dir={room}/"]
    argv += ["con=null", "con0=null,fd:1", "loglevel=4", "panic=-1"]
    # What the kernel does not know becomes the environment of its first program.
    argv += [f"PLIMSOLL_ROOM={room}", f"PLIMSOLL_PYTHON={room}/venv/bin/python", f"PLIMSOLL_ROOT={room}/tree"]
    return subprocess.Popen(
        [*argv, *words], stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env, start_new_session=True
    )


def kill(guest: subprocess.Popen[bytes]) -> None:
    """At once, if it runs: what it holds in memory is lost."""
    if guest.poll() is None:
        os.killpg(guest.pid, signal.SIGKILL)  # its processes are processes here, too
        guest.wait()


def _boot(room: Path, seconds_max: float, words: Sequence[str]) -> None:
    with (room / "console").open("wb") as console:
        guest = start(room, console, *words)
        try:
            guest.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            pass  # what has not ended is missing, and the transcript tells how far it came
        finally:
            kill(guest)


def _results(file: Path) -> dict[str, Result]:
    """The last line of a test counts; a guest that was killed leaves half a line at the end."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        before = found.get(told["test"])
        if before is None or before.outcome == "passed":
            found[told["test"]] = Result(told["outcome"], told["seconds"], told["text"])
    return found
