"""Stopping a server that a killed run left running, and what a PostgreSQL leaves behind.

The constraint: another server may be on the machine. Only processes that run a program of PostgreSQL's
server *and* work in the recorded data folder (or were started on it and are on their way there) are ours. The file
postmaster.pid alone proves nothing, for its pid may be somebody else's by now. (Web servers: web_processes.py.)
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from plimsoll.environment import processes, web_processes
from plimsoll.environment.fault import Fault
from plimsoll.environment.groups import freezer
from plimsoll.environment.journal.journal import Entry, Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.memory import shared_memory

_LADDER = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0))  # fast, then immediate shutdown
_PROGRAMS = ("postgres", "postmaster", "initdb", "pg_ctl")
_SHELLS = ("sh", "dash", "bash", "busybox")
_KILL_SECONDS = 10.0


def record(journal: Journal, data_dir: Path, group: Sequence[Path] = (), work: Path | None = None) -> Entry:
    """To be called before the server is started. `group`: the folders of the group that it will be in; `work`: the one
    of its configuration."""
    folders, at = [str(folder) for folder in group], None if work is None else str(work.absolute())
    return journal.record("server", data_dir=str(data_dir.absolute()), group=folders, work=at)


def processes_of(data_dir: Path) -> list[int]:
    """Every process at work in the folder: the postmaster and its children, or initdb and its server."""
    place = os.path.realpath(data_dir)
    return [pid for pid in processes.all_pids() if _is_ours(pid, place)]


def _is_ours(pid: int, place: str) -> bool:
    program = Path(processes.link(pid, "exe") or "").name
    if program not in (*_PROGRAMS, *_SHELLS) or processes.start_ticks(pid) is None:
        return False
    # initdb's server, and the shell that is about to become it; no shell of somebody who looks at the folder.
    if f"PGDATA={place}" in processes.environment(pid) and _is_of_its_user(pid, place):
        return True
    return program in _PROGRAMS and (processes.link(pid, "cwd") == place or place in processes.arguments(pid))


def _is_of_its_user(pid: int, place: str) -> bool:
    try:
        return Path(f"/proc/{pid}").stat().st_uid == Path(place).stat().st_uid
    except OSError:
        return False


def _pid_file(data_dir: Path) -> list[str]:
    try:
        return (data_dir / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []


def stop(data_dir: Path, *, patient: bool = True) -> bool:
    """Stop the server of a data folder: asked, told, killed. False if none was running."""
    place = os.path.realpath(data_dir)
    lines = _pid_file(data_dir)
    postmaster = int(lines[0]) if lines and lines[0].strip().isdigit() else None
    running = processes_of(data_dir)
    estate = shared_memory.Estate()
    estate.see(running)
    if running and postmaster in running and patient:
        for number, seconds in _LADDER:
            processes.signal_if(postmaster, number, lambda pid: _is_ours(pid, place))
            if not processes.wait_until_gone(lambda: processes_of(data_dir), seconds):
                break

    def remaining() -> list[int]:
        left = processes_of(data_dir)
        estate.see(left)
        for pid in left:
            processes.signal_if(pid, signal.SIGKILL, lambda number: _is_ours(number, place))
        return left

    left = processes.wait_until_gone(remaining, _KILL_SECONDS)
    if left:
        remedy = "they are in uninterruptible sleep, probably on I/O; run `plimsoll undo` again later"
        raise Fault(f"{data_dir}: server processes {left} did not end after SIGKILL", remedy=remedy)
    step("after server stopped")
    lines = _pid_file(data_dir) or lines  # it may have been completed since
    numbers = [re.fullmatch(r"\s*-?(\d+)\s*", line) for line in lines[:3:2]]  # less than 0: of initdb's server
    if len(numbers) == 2 and numbers[0] and numbers[1]:
        estate.see_of_dead(int(numbers[0][1]), int(numbers[1][1]), data_dir.stat().st_uid)
    estate.remove()
    return bool(running)


@puts_back("server", survives_reboot=False)
def _put_back(args: Args) -> str:
    data_dir = Path(args["data_dir"])
    freezer.thaw(Path(folder) for folder in args.get("group", ()))  # a server that stands still ends by no signal
    was_running = stop(data_dir)
    if (work := args.get("work")) is not None:
        was_running |= web_processes.stop(Path(work))
    return f"server in {data_dir} {'stopped' if was_running else 'was not running'}"
