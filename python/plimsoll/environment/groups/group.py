"""The target's group: memory limit with and without swap, CPU set, and the way into it.

The constraint: a page is charged to whoever touches it first. So the group is made first, the program
enters it before it is even executed, and every warm-up happens inside. Entering another way makes the limit a fiction.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from plimsoll.environment import cpus, kernel_files, processes
from plimsoll.environment.fault import Fault
from plimsoll.environment.groups import cgroups, freezer, group_access
from plimsoll.environment.groups.cgroups import PARENT, Hierarchy, Limits
from plimsoll.environment.journal.journal import Entry, Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.knob import Availability
from plimsoll.environment.memory import shared_memory

_ENTER = Path(__file__).with_name("enter.py")
_KILL_SECONDS = 10.0

Stream = int | IO[Any] | None


@dataclass(frozen=True)
class Group:
    """A group that exists. Made by GroupKnob.set; removed, with every process in it, by putting `entry` back."""

    name: str
    hierarchy: Hierarchy
    entry: Entry

    @property
    def version(self) -> int:
        return self.hierarchy.version

    @property
    def folder(self) -> Path:
        """The folder with the memory controller's files."""
        return self.hierarchy.folders(self.name)[0]

    @property
    def folders(self) -> list[Path]:
        """One in each hierarchy that it is in."""
        return self.hierarchy.folders(self.name)

    def for_agent(self) -> dict[str, Any]:
        """As the agent's interface wants it (schema/agent.md, `sample.group`)."""
        return {"version": self.version, "path": str(self.folder)}

    def limits(self) -> Limits:
        return self.hierarchy.limits(self.name)

    def lift(self) -> None:
        """Takes the limits on memory and swap away, for the rest of the group's life."""
        self.hierarchy.lift(self.name)

    def stats(self) -> dict[str, int]:
        """The columns of group.npy that this kernel has."""
        return self.hierarchy.stats(self.name)

    def oom_kills(self) -> int | None:
        return self.stats().get("oom_kills")

    def freeze(self) -> int:
        """Holds everything inside still; nanoseconds until it stood. Raises freezer.NotFrozen."""
        return freezer.freeze(self.folders)

    def thaw(self) -> int:
        """Lets it go on; nanoseconds that it took."""
        return freezer.thaw(self.folders)

    def is_frozen(self) -> bool:
        return freezer.is_frozen(self.folders)

    def pids(self) -> list[int]:
        return _pids(self.hierarchy.folders(self.name))

    def kill(self) -> None:
        _kill_all(self.hierarchy.folders(self.name))

    def exec_in(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        cpus: Sequence[int] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program that is inside from its first instruction. Returns when it is running there, or raises.

        It gets a session of its own, so that Ctrl-C on the terminal reaches us and not the server.
        """
        environment = dict(os.environ if env is None else env)
        program = shutil.which(argv[0], path=environment.get("PATH", os.defpath))
        if program is None:
            raise Fault(
                f"{argv[0]}: no such program", remedy="name it with its path; `plimsoll doctor` lists the servers"
            )
        told, tell = os.pipe2(os.O_CLOEXEC)
        request: dict[str, Any] = {
            "procs": [str(folder / "cgroup.procs") for folder in self.hierarchy.folders(self.name)],
            "cpus": list(cpus) if cpus is not None else None,
            "cwd": str(cwd) if cwd is not None else None,
            "program": os.path.abspath(program),  # noqa: PTH100 (keeps symbolic links: a program may look at its name)
            "argv": [os.fspath(word) for word in argv],
            "report": tell,
            "uid": None,
        }
        if user is not None:
            account = _account(user)
            request |= {"uid": account.pw_uid, "gid": account.pw_gid, "groups": os.getgrouplist(user, account.pw_gid)}
            if env is None:
                environment |= {"HOME": account.pw_dir, "USER": user, "LOGNAME": user}
        try:
            started = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_ENTER), json.dumps(request)],
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[tell],
                start_new_session=True,
            )
        finally:
            os.close(tell)
        with open(told, "rb") as pipe:  # noqa: PTH123 (a descriptor)
            trouble = pipe.read().decode(errors="replace")  # empty as soon as the exec has closed the other end
        if trouble:
            started.wait()
            remedy = "see `plimsoll doctor`; is the program there, and may the user reach it?"
            raise Fault(f"{argv[0]} in group {PARENT}/{self.name}: {trouble}", remedy=remedy)
        return started


class GroupKnob:
    name = "group"

    def __init__(self, group_name: str, hierarchy: Hierarchy | None = None) -> None:
        """`group_name`: unique on the machine, e.g. the run id; it becomes `plimsoll/<group_name>`."""
        self._group_name = group_name
        self._hierarchy: Hierarchy | None = hierarchy if hierarchy is not None else cgroups.detect()

    def available(self, limits: Limits | None = None) -> Availability:
        """Can a group be made here and, if these are given, have these limits?"""
        able = group_access.available(self._hierarchy)
        if not able.ok or limits is None or self._hierarchy is None:
            return able
        return self._hierarchy.lacks(limits)

    def show(self) -> dict[str, Any] | None:
        if self._hierarchy is None or not self._hierarchy.folders(self._group_name)[0].exists():
            return None
        return vars(self._hierarchy.limits(self._group_name))

    def set(self, value: Limits, journal: Journal) -> Entry:
        return self.make(value, journal).entry

    def make(self, limits: Limits, journal: Journal) -> Group:
        able = self.available(limits)
        hierarchy = self._hierarchy
        if not able.ok or hierarchy is None:
            raise Fault(able.reason, remedy=able.remedy)
        name = self._group_name
        if "/" in name or name.startswith("."):
            raise Fault(f"group {name!r}: not usable as a name", remedy="use the run id")
        folders = hierarchy.folders(name)
        if any(folder.exists() for folder in folders):
            raise Fault(f"group {PARENT}/{name}: exists already", remedy="run `plimsoll undo`")
        if limits.cpus is not None:
            cpus.check(limits.cpus)
        entry = journal.change(
            "group",
            lambda: hierarchy.make(name, limits),
            folders=[str(folder) for folder in folders],
            switched_on=hierarchy.switched_on(),
        )
        return Group(name, hierarchy, entry)


def _account(user: str) -> pwd.struct_passwd:
    try:
        account = pwd.getpwnam(user)
        grp.getgrgid(account.pw_gid)
        return account
    except KeyError:
        raise Fault(f"user {user}: no such user", remedy="run `./plimsoll setup`") from None


def _tree(folder: Path) -> list[Path]:
    """A group and the groups below it, deepest first."""
    below = [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
    return [deeper for entry in below for deeper in _tree(entry)] + ([folder] if folder.is_dir() else [])


def _pids(folders: Sequence[Path]) -> list[int]:
    pids = set()
    for folder in (deeper for each in folders for deeper in _tree(each)):
        pids |= {int(line) for line in (kernel_files.read(folder / "cgroup.procs") or "").split()}
    return sorted(pids)


def end_once(folders: Sequence[Path], estate: shared_memory.Estate | None = None) -> list[int]:
    """Thaws what is in the group and has it end, and does not wait; the processes that were there."""
    freezer.thaw(deeper for each in folders for deeper in _tree(each))
    pids = _pids(folders)
    if estate is not None:
        estate.see(pids)
    if pids and _kill_at_once(folders):
        return pids
    for pid in pids:
        # Looked up again with a pidfd in hand: the number may have been given to somebody else since.
        processes.signal_if(pid, signal.SIGKILL, lambda number: number in _pids(folders))
    return pids


def _kill_all(folders: Sequence[Path], estate: shared_memory.Estate | None = None) -> None:
    left = processes.wait_until_gone(lambda: end_once(folders, estate), _KILL_SECONDS)
    if left:
        remedy = "they are in uninterruptible sleep, probably on I/O; run `plimsoll undo` again later"
        raise Fault(f"{folders[0]}: processes {left} did not end after SIGKILL", remedy=remedy)


def _kill_at_once(folders: Sequence[Path]) -> bool:
    """Version 2 ends a group with all below it in one stroke, what is just being forked too; False where it cannot."""
    files = [folder / "cgroup.kill" for folder in folders]
    if not all(file.exists() for file in files):
        return False
    for file in files:
        with contextlib.suppress(Fault):  # the group has gone; who is left is seen in the next round
            kernel_files.write(file, "1")
    return True


def remove_folder(folder: Path) -> None:
    """Remove a group's folder; what is gone or has been taken into use by others is left."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def _remove_busy(folder: Path, folders: Sequence[Path]) -> None:
    """A program that was just being started by the killed run may still walk in; the kernel lags behind an exit too."""
    deadline = time.monotonic() + _KILL_SECONDS
    while True:
        try:
            return remove_folder(folder)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            _kill_all(folders)
            time.sleep(0.01)


@puts_back("group", survives_reboot=False)
def _put_back(args: Args) -> str:
    folders = [Path(folder) for folder in args["folders"]]
    if any(folder.parent.name != PARENT for folder in folders):
        raise Fault(f"{folders}: not a control group that Plimsoll made", remedy="inspect the journal")
    estate = shared_memory.Estate()
    _kill_all(folders, estate)
    estate.remove()
    step("after kill")
    for folder in folders:
        for deeper in _tree(folder):
            _remove_busy(deeper, folders)
        step("after group removed")
        with contextlib.suppress(OSError):  # another run's group may still be in it
            remove_folder(folder.parent)
    if not folders[0].parent.exists():  # else another group of ours needs them, and its entry names them too
        _switch_off([(Path(file), controller) for file, controller in args["switched_on"]])
    return f"group {PARENT}/{folders[0].name} removed"


def _switch_off(switched_on: Sequence[tuple[Path, str]]) -> None:
    """Raises ChangedSince where somebody else has come to use one."""
    left = []
    for file, controller in switched_on:
        if controller not in (kernel_files.read(file) or "").split():
            continue
        if (user := cgroups.used_by_others(file.parent, controller)) is not None:
            left.append((f"{file} has {controller}, which {user} has come to use", f"echo -{controller} > {file}"))
            continue
        try:
            kernel_files.write(file, f"-{controller}")
        except Fault as fault:
            left.append((fault.what, f"echo -{controller} > {file}"))
        step("after controller off")
    if left:
        raise ChangedSince(
            "; ".join(what for what, _ in left), f"once nobody does: `{'`, `'.join(how for _, how in left)}`"
        )
