"""What every bench does around its measuring: the newest server, the lock, the journal, and the machine put back."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plimsoll.environment import Fault, Journal, StateDir, undo
from plimsoll.environment.discover import PostgresInstall
from plimsoll.run.agent import AgentFailed
from plimsoll.run.host import HERE
from plimsoll.run.observer import Silent
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.target import ServerFailed
from plimsoll.target.installs import installed

Found = TypeVar("Found")

HOLDS, BROKEN, BAD_REQUEST, IMPOSSIBLE, CANNOT_TELL = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Laboratory:
    """Where a bench works."""

    state: StateDir
    journal: Journal
    install: PostgresInstall


@contextmanager
def laboratory(name: str, interrupts: Interrupts) -> Iterator[Laboratory]:
    """Alone on the machine as far as Plimsoll goes; whatever happens inside, what was journalled is put back."""
    install = max(installed(), key=lambda found: int(found.version), default=None)
    if install is None:
        raise Fault("no PostgreSQL server is installed", remedy="see ./plimsoll doctor")
    state = StateDir()
    with state.hold_lock():
        for left in undo(state):
            if not left.ok:
                raise Fault(f"left by run {left.run_id}, and not put back: {left.what}", remedy=left.remedy)
        journal = Journal.create(state, name)
        try:
            with interrupts.may_cut():
                yield Laboratory(state, journal, install)
        finally:
            with interrupts.must_finish():
                journal.put_back_all()


def measured(name: str, work: Callable[[Interrupts], Found], *, as_json: bool) -> Found | int:
    """What a bench's work gives, or the exit code where it was stopped or cannot be done here, which is told.

    With JSON standard output is left to the results.
    """
    interrupts = Interrupts(Silent())
    try:
        with interrupts.handled(), contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
            return work(interrupts)
    except Stopped:
        say("stopped: the machine is put back")
        return CANNOT_TELL
    except (Fault, AgentFailed, ServerFailed) as failure:
        say(f"{name}: {failure}")
        return IMPOSSIBLE


def code_of(bounds: Iterable[Mapping[str, Any]]) -> int:
    """The exit code of all bounds: broken if one is, else "cannot tell" if one is that."""
    held = [bound["holds"] for bound in bounds]
    return BROKEN if False in held else CANNOT_TELL if None in held else HOLDS


def machine() -> dict[str, Any]:
    """What the figures are true of."""
    virtual = " hypervisor" in Path("/proc/cpuinfo").read_text()
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "memory_bytes": HERE.memory_bytes(),
        "virtual": virtual,
    }


def say(text: str) -> None:
    """Progress goes to standard error, results to standard output."""
    print(text, file=sys.stderr, flush=True)
