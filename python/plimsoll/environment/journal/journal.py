"""The write-ahead journal: every change to the machine is on disk before it is made, and marked when it was put back.

The constraint: the process may be killed, or the machine lose power, between any two instructions. Therefore an entry
means "this may have been changed, this is how it was found, and this is what was set"; nothing depends on whether it
really was. What others have set in the meantime is theirs: a value is put back only while ours is in force.

Whoever owns it is known by process and start time, and holds a lock on the file for as long as he lives: that tells
where processes cannot be asked, of a container's or of a machine that shares the folder.

One file a run, `journal/<run id>.jsonl`. First the owner; then `{"n", "kind", "by", "args"}` for each change, "by"
naming the module that can put it back, and `{"n", "undone": true}` for each put-back. A line cut short by a crash was
never acted upon and is dropped.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from plimsoll.environment import processes
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal import registry
from plimsoll.environment.state import StateDir, check_owner

FORMAT = 1

#: For tests: called with the step's name and its number (from 1, in this process) before and after each durable step
#: and before and after each action. A test kills the process in it.
step_hook: Callable[[str, int], None] | None = None
_steps = 0

_held: set[int] = set()  # descriptors of all journals of this process
_held_guard = threading.RLock()  # a journal may be collected, and so released, while it is held


def step(name: str) -> None:
    """A point at which being killed must do no harm. Knobs with several actions call it between them."""
    global _steps
    if step_hook is not None:
        _steps += 1
        step_hook(name, _steps)


@dataclass
class Entry:
    number: int
    kind: str
    args: dict[str, Any]
    by: str = ""
    undone: bool = False


@dataclass(frozen=True)
class Undone:
    """What became of one entry. `remedy` is empty when it was put back; one that is ok and has a remedy was left as it
    is, because somebody else has changed it since, and is done with."""

    run_id: str
    kind: str
    ok: bool
    what: str
    remedy: str = ""

    @property
    def is_left(self) -> bool:
        """Whether it was left as others have made it."""
        return self.ok and self.remedy != ""


class PutBackFailed(Fault):
    """Some entries could not be put back; all the others were tried."""

    def __init__(self, failures: list[Undone]) -> None:
        self.failures = failures
        lines = "\n".join(f"  {failure.kind}: {failure.what}; {failure.remedy}" for failure in failures)
        super().__init__(
            f"{len(failures)} changes could not be put back:\n{lines}\n", remedy="then run `plimsoll undo`"
        )


@dataclass
class Journal:
    path: Path
    run_id: str
    owner: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)
    damage: str = ""  # an unreadable line in the middle
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _held: int | None = field(default=None, repr=False)  # of the owner: the descriptor that has the file's lock

    @classmethod
    def create(cls, state: StateDir, run_id: str) -> Journal:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", run_id):
            raise Fault(
                f"run id {run_id!r}: not usable as a name", remedy="use letters, digits, dots, dashes, underscores"
            )
        state.prepare()
        path = state.journal / f"{run_id}.jsonl"
        if path.exists():
            raise Fault(f"{path}: this run left changes behind", remedy="run `plimsoll undo` first")
        pid = os.getpid()
        owner = {
            "journal": FORMAT,
            "run_id": run_id,
            "pid": pid,
            "start_ticks": processes.start_ticks(pid),
            "pid_namespace": processes.pid_namespace(),
            "boot_id": processes.boot_id(),
            "epoch_ns": time.time_ns(),
        }
        # Written aside and renamed, so that a journal that can be seen always says who owns it.
        temporary = path.with_name(f"{run_id}.jsonl.{pid}.tmp")
        step("before journal")
        held = os.open(temporary, os.O_RDONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            _append(temporary, owner)
            step("written journal")
            temporary.rename(path)
            _sync_folder(path.parent)
        except BaseException:
            os.close(held)
            raise
        step("after journal")
        with _held_guard:
            _held.add(held)
        return cls(path, run_id, owner, _held=held)

    @classmethod
    def load(cls, path: Path) -> Journal:
        """Read a journal without changing it (its owner may live); a torn last line is left out.

        Raises Fault where another user owns the file, since whoever wrote it decides what is put back.
        """
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            check_owner(path, os.fstat(file.fileno()))
            data = file.read()
        lines = data[: data.rfind(b"\n") + 1].splitlines()
        owner = json.loads(lines[0]) if lines else {}
        if owner.get("journal") != FORMAT:
            raise Fault(
                f"{path}: not a journal of format {FORMAT}",
                remedy="run undo with the version that wrote it, or inspect it and delete it",
            )
        journal = cls(path, owner["run_id"], owner)
        by_number: dict[int, Entry] = {}
        for position, line in enumerate(lines[1:], start=2):
            try:
                stored = json.loads(line)
                if stored.get("undone"):
                    by_number[stored["n"]].undone = True
                else:
                    by_number[stored["n"]] = Entry(stored["n"], stored["kind"], stored["args"], stored["by"])
            except (ValueError, KeyError, TypeError, AttributeError):
                journal.damage = f"{path}, line {position}: not readable"
        journal.entries = list(by_number.values())
        return journal

    def owner_is_alive(self) -> bool:
        here = processes.pid_namespace()
        if (self.owner["boot_id"], self.owner.get("pid_namespace", here)) == (processes.boot_id(), here):
            return processes.is_alive(self.owner["pid"], self.owner["start_ticks"], self.owner["boot_id"])
        return is_held(self.path)

    @property
    def remaining(self) -> list[Entry]:
        """What is not put back yet, newest first: the order of putting back."""
        return [entry for entry in reversed(self.entries) if not entry.undone]

    def record(self, kind: str, /, **args: Any) -> Entry:
        """Make an intended change durable. Returns only when it is on disk; the caller may act then."""
        by = registry.find(kind).action.__module__  # a change that nobody can put back is refused before it is made
        with self._lock:
            entry = Entry(len(self.entries) + 1, kind, json.loads(json.dumps(args)), by)
            step(f"before record {kind}")
            _append(self.path, {"n": entry.number, "kind": kind, "by": by, "args": entry.args})
            self.entries.append(entry)
        step(f"after record {kind}")
        return entry

    def change(self, kind: str, action: Callable[[], object], /, **args: Any) -> Entry:
        """Record, then act. If the action fails the entry stays, since part of the change may have been made."""
        entry = self.record(kind, **args)
        action()
        step(f"after {kind}")
        return entry

    def put_back(self, entry: Entry) -> Undone:
        """Put one entry back and mark it. Never raises for a put-back that fails: the others have to go on."""
        remedy = ""
        try:
            how = registry.find(entry.kind, entry.by)
            if how.survives_reboot or self.owner["boot_id"] == processes.boot_id():
                step(f"before put back {entry.kind}")
                what, remedy = _act(how, entry)
            else:
                what = "gone with the reboot"
            step(f"after put back {entry.kind}")
            with self._lock:
                if not entry.undone:
                    _append(self.path, {"n": entry.number, "undone": True})
                    entry.undone = True
            step(f"after mark {entry.kind}")
        except Fault as fault:
            return Undone(self.run_id, entry.kind, False, fault.what, fault.remedy)
        except Exception as error:
            item = json.dumps(entry.args)
            return Undone(
                self.run_id, entry.kind, False, f"{error} ({item})", "fix the cause, then run `plimsoll undo`"
            )
        return Undone(self.run_id, entry.kind, True, what, remedy)

    def put_back_all(self) -> list[Undone]:
        """Everything that is left, newest first; then the journal goes. Raises PutBackFailed after all were tried."""
        results = self.put_back_each()
        failures = [result for result in results if not result.ok]
        if failures:
            raise PutBackFailed(failures)
        return results

    def put_back_each(self) -> list[Undone]:
        results = [self.put_back(entry) for entry in self.remaining]
        if self.damage:
            remedy = f"read it, put back by hand what it names, then delete {self.path}"
            results.append(Undone(self.run_id, "journal", False, self.damage, remedy))
        elif not self.remaining:
            self.path.unlink(missing_ok=True)
            step("removed journal")
            _sync_folder(self.path.parent)
            self.release()
        return results

    def release(self) -> None:
        """Lets the lock go, as the end of the process would."""
        with _held_guard:
            if self._held is not None:
                _held.discard(self._held)
                os.close(self._held)
                self._held = None

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.put_back_all()


@contextmanager
def handed_on() -> Iterator[tuple[int, ...]]:
    """For a program that changes the machine, to be inherited by it: `undo` waits for whoever has them.

    It is killed with us, and yet what it is just asking of the kernel may be done after that.
    """
    with _held_guard:
        copies = tuple(os.dup(one) for one in [*_held])
    try:
        yield copies
    finally:
        for one in copies:
            os.close(one)


def is_held(path: Path) -> bool:
    """Whether somebody who lives has the lock of a journal."""
    try:
        asked = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(asked)
    return False


def _act(how: registry.PutBack, entry: Entry) -> tuple[str, str]:
    """What was done, and the remedy where it was left as others have made it."""
    try:
        return how.action(entry.args), ""
    except registry.ChangedSince as changed:
        return changed.what, changed.remedy


def _append(path: Path, line: dict[str, Any]) -> None:
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        length = os.fstat(descriptor).st_size
        if length and os.pread(descriptor, 1, length - 1) != b"\n":
            # The owner died inside a line. Cut it, or the line that comes next would be lost with it.
            length = path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(descriptor, length)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(28, "No space left on device")
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, length)  # half a line must not swallow the next one
            raise Fault(f"{path}: could not be written: {error.strerror}", remedy="free some disk space") from error
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
