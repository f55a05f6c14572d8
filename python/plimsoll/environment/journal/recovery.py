"""Putting back what dead runs left: every journal whose owner is gone, newest run first.

The constraint: a run that is alive must never have its environment taken away, so the owner's pid and start time
decide, or his lock where those are of another PID namespace or machine; and two undos at once take turns.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Collection
from pathlib import Path

from plimsoll.environment import processes
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, Undone, is_held, step
from plimsoll.environment.state import StateDir

_PATIENCE_SECONDS = 60
_DYING_SECONDS = 10.0


def undo(state: StateDir, *, force: bool = False, but_for: Collection[str] = ()) -> list[Undone]:
    """Put back the changes of every dead run. `force` also takes those of runs whose process still lives, `but_for`
    leaves those of some run ids to a later undo.

    Never raises for a change that cannot be put back: it is in the list with ok = False and its remedy. Raises Fault
    where the state folder is another user's.
    """
    if not state.journal.is_dir():
        return []
    for place in (state.root, state.journal):
        state.check_owned(place)
    folder = os.open(state.journal, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _take_turn(folder, state.journal)
        results: list[Undone] = []
        journals: list[Journal] = []
        for path in state.journal.glob("*.jsonl"):
            try:
                journals.append(Journal.load(path))
            except FileNotFoundError:
                continue  # its run ended meanwhile
            except OSError as error:
                what = f"{path}: could not be read: {error.strerror}"
                results.append(
                    Undone(path.stem, "journal", False, what, "it is not a journal that Plimsoll wrote: remove it")
                )
            except Fault as fault:
                results.append(Undone(path.stem, "journal", False, fault.what, fault.remedy))
            except (ValueError, KeyError) as error:
                remedy = "inspect it, put back by hand what it names, then delete it"
                results.append(Undone(path.stem, "journal", False, f"{path}: not readable ({error})", remedy))
        left = [journal for journal in journals if journal.run_id not in but_for]
        for journal in sorted(left, key=lambda journal: -int(journal.owner["epoch_ns"])):
            if is_dead := not journal.owner_is_alive():
                _wait_for_programs(journal.path)
            if force or is_dead:
                results.extend(journal.put_back_each())
        _sweep_unborn(state.journal)
        if not any(state.journal.iterdir()):
            state.note_put_back()
        return results
    finally:
        os.close(folder)


def live_runs(state: StateDir) -> list[tuple[str, int]]:
    """Runs with a journal whose owner lives: (run id, pid). `undo` leaves these alone."""
    alive = []
    for path in sorted(state.journal.glob("*.jsonl")) if state.journal.is_dir() else []:
        try:
            journal = Journal.load(path)
        except (OSError, Fault, ValueError, KeyError):
            continue
        if journal.owner_is_alive():
            alive.append((journal.run_id, int(journal.owner["pid"])))
    return alive


def _take_turn(folder: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Fault(
                    f"{path}: another undo is running", remedy=f"wait for it (`fuser {path}` names it)"
                ) from None
            time.sleep(0.05)


def _wait_for_programs(path: Path) -> None:
    """Those of a dead run die with it, but one in the middle of a system call ends that first: a mount, a loop device.

    One that never does (its device hangs) is not waited for: what it holds says so when it is to be put back.
    """
    pause = 0.01
    for _ in range(int(_DYING_SECONDS / pause)):  # counted, and not by the clock: where we stood still, so did they
        if not is_held(path):
            return
        time.sleep(pause)


def _sweep_unborn(folder: Path) -> None:
    """Journals whose owner died before the first line was in place: nothing had been changed."""
    for path in folder.glob("*.jsonl.*.tmp"):
        pid = path.name.split(".")[-2]
        if not (pid.isdigit() and processes.start_ticks(int(pid)) is not None) and not is_held(path):
            path.unlink(missing_ok=True)
            step("removed unborn journal")
