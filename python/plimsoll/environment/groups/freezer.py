"""Holding everything in a group still, and letting it go on: the freezer of both versions of control groups.

The constraint: a process that version 1 has frozen does not even die of SIGKILL before it is thawed. So whatever ends
the processes of a group thaws it first, whether or not it knows of a freeze.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import step

FREEZE_SECONDS_MAX = 10.0
_PAUSE_SECONDS = 0.0002
# The file that is written, its two values; and the file and the line that tell when all have come to a stand.
_VERSION_1 = ("freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN")
_VERSION_2 = ("cgroup.freeze", "1", "0", "cgroup.events", "frozen 1")


class NotFrozen(Fault):
    """What is in the group did not come to a stand: something in it waits in the kernel, probably for a device."""


def freeze(folders: Sequence[Path]) -> int:
    """Holds what is in a group still. Returns once all of it stands: nanoseconds that it took.

    Raises NotFrozen (the group is thawed then) after FREEZE_SECONDS_MAX, Fault where the group has no freezer.
    """
    began = time.monotonic_ns()
    for folder in folders:
        if (files := _files(folder)) is None:
            continue
        switch, frozen, _, tells, said = files
        kernel_files.write(folder / switch, frozen)
        step("after freeze asked for")
        while said not in (kernel_files.read(folder / tells) or "").splitlines():
            if time.monotonic_ns() - began > FREEZE_SECONDS_MAX * 1e9:
                thaw(folders)
                what = f"{folder}: not frozen in {FREEZE_SECONDS_MAX:.0f} s"
                raise NotFrozen(what, remedy="a process in it is in uninterruptible sleep, probably on I/O; see dmesg")
            time.sleep(_PAUSE_SECONDS)
        step("after freeze")
        return time.monotonic_ns() - began
    raise Fault(f"{folders[0]}: this group has no freezer", remedy="see `plimsoll doctor`")


def thaw(folders: Iterable[Path]) -> int:
    """Lets what is in the group go on; harmless where it was not frozen, or is gone. Returns nanoseconds."""
    began = time.monotonic_ns()
    for folder in folders:
        if (files := _files(folder)) is not None:
            with contextlib.suppress(Fault):  # gone meanwhile
                kernel_files.write(folder / files[0], files[2])
    return time.monotonic_ns() - began


def is_frozen(folders: Iterable[Path]) -> bool:
    """Whether the group is, or is about to be, frozen."""
    for folder in folders:
        if (files := _files(folder)) is not None:
            return kernel_files.read(folder / files[0]) != files[2]
    return False


def _files(folder: Path) -> tuple[str, str, str, str, str] | None:
    return next((files for files in (_VERSION_1, _VERSION_2) if (folder / files[0]).exists()), None)
