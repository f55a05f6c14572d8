"""Stopping a web server, and the program behind it, that a killed run left running.

The constraint: another one may be on the machine. Only processes that run such a program *and* work in the trial's
folder, or were started on a configuration or a socket in it, are ours.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from plimsoll.environment import processes
from plimsoll.environment.fault import Fault

WEB_PROGRAMS = ("nginx", "apache2", "httpd", "plimsoll-agent")
_KILL_SECONDS = 10.0


def processes_of(work: Path) -> list[int]:
    """Every process of a web server, and of the program behind it, whose configuration or socket is in the folder."""
    place = os.path.realpath(work)
    return [pid for pid in processes.all_pids() if _is_ours(pid, place)]


def _is_ours(pid: int, place: str) -> bool:
    if Path(processes.link(pid, "exe") or "").name not in WEB_PROGRAMS or processes.start_ticks(pid) is None:
        return False
    # nginx writes its arguments anew, as one text; its workers have none and work in the folder.
    below = f"{place}/"
    return any(below in text for text in processes.arguments(pid)) or below in f"{processes.link(pid, 'cwd') or ''}/"


def stop(work: Path) -> bool:
    """Kills what is left of a web server: nothing that it has in memory is needed again. False if none was running."""
    place = os.path.realpath(work)
    was_running = bool(processes_of(work))

    def remaining() -> list[int]:
        left = processes_of(work)
        for pid in left:
            processes.signal_if(pid, signal.SIGKILL, lambda number: _is_ours(number, place))
        return left

    left = processes.wait_until_gone(remaining, _KILL_SECONDS)
    if left:
        remedy = "they are in uninterruptible sleep, probably on I/O; run `plimsoll undo` again later"
        raise Fault(f"{work}: processes {left} of a web server did not end after SIGKILL", remedy=remedy)
    return was_running
