"""Settings of the whole machine, which one run at a time may change, whatever its state folder: a lock below /run.

The constraint: two at once would each take for found what the other has set, and put that back. The kernel drops the
lock when its holder dies; that he left something to put back is told by his words in the file, which only an end in
order removes. /run is empty after a reboot, as such settings are.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.state import StateDir, check_owner

LOCK = Path("/run/plimsoll/settings.lock")
_ASK_SECONDS = 0.2


@contextlib.contextmanager
def ours(state: StateDir, told: Callable[[str], None], is_stopping: Callable[[], bool]) -> Iterator[None]:
    """For as long as it lasts no run of another state folder changes them; nor may we, if we were stopped in waiting.

    `told` hears once who is waited for. Raises Fault where a run of another folder was killed and nobody has put back
    what it left.
    """
    handle = _opened()
    try:
        if not _taken(handle, told, is_stopping):
            yield
            return
        _refuse_what_is_left(_holder(handle), state)
        _say(handle, {"pid": os.getpid(), "state": str(state.root)})
        try:
            yield
        finally:
            if not any(state.journal.glob("*.jsonl")):
                _say(handle, None)
    finally:
        os.close(handle)


def _opened() -> int:
    try:
        LOCK.parent.mkdir(mode=0o755, exist_ok=True)
        handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Fault(f"{LOCK}: {error.strerror}", remedy="run as root, with /run writable") from error
    try:
        check_owner(LOCK, os.fstat(handle))
    except Fault:
        os.close(handle)
        raise
    return handle


def _taken(handle: int, told: Callable[[str], None], is_stopping: Callable[[], bool]) -> bool:
    waited = False
    while not is_stopping():
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if not waited:
                pid, folder = _holder(handle) or ("unknown", "unknown")
                told(f"waiting for the run of process {pid} (state folder {folder}): it changes settings of this "
                     "machine, as this one does")  # fmt: skip
            waited = True
            time.sleep(_ASK_SECONDS)
    return False


def _holder(handle: int) -> tuple[int, str] | None:
    """Process and state folder of whoever has the lock, or had it and did not end in order."""
    try:
        said = json.loads(os.pread(handle, 10_000, 0))
        return int(said["pid"]), str(said["state"])
    except (ValueError, KeyError, TypeError):
        return None


def _say(handle: int, words: dict[str, object] | None) -> None:
    os.ftruncate(handle, 0)
    if words is not None:
        os.pwrite(handle, json.dumps(words).encode(), 0)


def _refuse_what_is_left(before: tuple[int, str] | None, state: StateDir) -> None:
    """Of our own folder undo has seen to it by now."""
    if before is None or before[1] == str(state.root) or not _has_left(*before):
        return
    pid, folder = before
    raise Fault(
        f"process {pid} was killed while it had changed settings of this machine, and they were not put back "
        f"(state folder {folder})",
        remedy=f"`PLIMSOLL_STATE={folder} ./plimsoll undo` first",
    )


def _has_left(pid: int, folder: str) -> bool:
    """Whether a journal of that process names what is not put back."""
    for path in Path(folder, "journal").glob("*.jsonl"):
        with contextlib.suppress(OSError, Fault, ValueError, KeyError):  # what undo there will tell of
            journal = Journal.load(path)
            if journal.owner["pid"] == pid and journal.remaining:
                return True
    return False
