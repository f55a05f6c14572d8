"""What every bench does around its measuring: the newest server, the lock, the journal, and the machine put back."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.environment import Fault, Journal, StateDir, undo
from plimsoll.environment.discover import PostgresInstall
from plimsoll.run.host import HERE
from plimsoll.run.signals import Interrupts
from plimsoll.target.installs import installed

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
