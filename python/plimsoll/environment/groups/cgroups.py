"""The two versions of control groups behind one interface: where a group's folders are, its limits and its counters.

The constraint: version 1 has a hierarchy for each controller and limits memory + swap together, so the order in which
two limits are written matters; version 2 has one tree, limits swap apart, and a group that passes controllers on may
hold no process. Groups are made under `plimsoll/` at the root of the hierarchy, not below our own group, whose limits
would be in force too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from plimsoll.environment import kernel_files
from plimsoll.environment.devices import mounts
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import step
from plimsoll.environment.knob import AVAILABLE, Availability

PARENT = "plimsoll"
_MARK = "trusted.plimsoll.switched_on"
# What a new group of version 2 has by each controller.
_UNSET = {
    "memory": {**dict.fromkeys(("memory.max", "memory.high", "memory.swap.max", "memory.swap.high"), "max"),
               **dict.fromkeys(("memory.min", "memory.low"), "0")},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": "", "cpuset.cpus.partition": "member"},
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """None: no limit of our own. `swap_bytes` is swap alone, 0 for none. `swappiness` None: as vm.swappiness is now."""

    memory_bytes: int | None = None
    swap_bytes: int | None = None
    cpus: str | None = None
    swappiness: int | None = None


class Hierarchy(Protocol):
    @property
    def version(self) -> int: ...

    def folders(self, name: str) -> list[Path]:
        """The group's folders, the memory controller's first."""
        ...

    def switched_on(self) -> list[tuple[str, str]]:
        """(file, controller) that making a group would switch on in groups above ours, or another of ours has."""
        ...

    def lacks(self, limits: Limits) -> Availability:
        """What of these limits no group here can have, before one is made; whether they fit each other is not asked."""
        ...

    def make(self, name: str, limits: Limits) -> None: ...
    def lift(self, name: str) -> None:
        """Takes the limits on memory and swap away."""
        ...

    def limits(self, name: str) -> Limits: ...
    def can_freeze(self) -> Availability:
        """Whether what is in a group can be held still for a while (freezer.py)."""
        ...

    def stats(self, name: str) -> dict[str, int]: ...


def _number(path: Path) -> int:
    text = kernel_files.read(path)
    if text is None:
        raise Fault(f"{path}: cannot be read", remedy="the group is gone; run `plimsoll undo`")
    return -1 if text == "max" else int(text)


def _set_bytes(path: Path, wanted: int) -> None:
    kernel_files.write(path, str(wanted))
    in_force = _number(path)
    if abs(in_force - wanted) >= os.sysconf("SC_PAGE_SIZE"):
        raise Fault(
            f"{path}: {wanted} was written and {in_force} is in force",
            remedy="choose a limit that the kernel accepts as it is",
        )


def make_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def _with_parent(make: Callable[[Path], None], folder: Path) -> None:
    """Make a group and the one it is in. A run that ends may take the empty parent away just before; then again."""
    for _ in range(10):
        if folder.parent.name == PARENT:
            make(folder.parent)
        with contextlib.suppress(FileNotFoundError):
            make(folder)
            return
    raise Fault(f"{folder}: could not be made", remedy="see `plimsoll doctor`")


@dataclass(frozen=True)
class Version1:
    memory: Path  # where the controller is mounted
    cpuset: Path | None
    proc: Path = Path("/proc")
    make_folder: Callable[[Path], None] = make_folder
    version: int = 1
    freezer: Path | None = None

    def folders(self, name: str) -> list[Path]:
        return [root / PARENT / name for root in (self.memory, self.cpuset, self.freezer) if root is not None]

    def switched_on(self) -> list[tuple[str, str]]:
        return []

    def lacks(self, limits: Limits) -> Availability:
        if limits.cpus is not None and self.cpuset is None:
            return Availability(
                False, "cgroup v1: no cpuset controller is mounted", "mount it, or leave the CPU set out"
            )
        if limits.swap_bytes is not None and not (self.memory / "memory.memsw.limit_in_bytes").exists():
            remedy = "boot with swapaccount=1, or leave the swap limit out"
            return Availability(False, f"{self.memory}: the kernel does not account swap", remedy)
        if limits.swappiness is not None and limits.swappiness > 100:
            return Availability(False, "memory.swappiness: cgroup v1 allows 0 to 100", "choose a value in that range")
        return AVAILABLE

    def can_freeze(self) -> Availability:
        if self.freezer is None:
            remedy = "`mkdir -p /run/cgroup-freezer && mount -t cgroup -o freezer cgroup /run/cgroup-freezer`"
            return Availability(False, "cgroup v1: no freezer controller is mounted", remedy)
        return AVAILABLE

    def make(self, name: str, limits: Limits) -> None:
        folder = self.memory / PARENT / name
        _with_parent(self.make_folder, folder)
        step("after memory group")
        if limits.memory_bytes is not None:
            _set_bytes(folder / "memory.limit_in_bytes", limits.memory_bytes)
            step("after memory limit")
        if limits.swap_bytes is not None:
            self._limit_swap(folder, limits)
        # vm.swappiness does not reach a group: it took its parent's value when it was made.
        swappiness = limits.swappiness
        if swappiness is None:
            swappiness = kernel_files.read_int(self.proc / "sys/vm/swappiness")
        if swappiness is not None:
            kernel_files.write(folder / "memory.swappiness", str(swappiness), remedy="use 0 to 100 with cgroup v1")
        if self.cpuset is not None:
            self._make_cpuset(self.cpuset, name, limits.cpus)
        if self.freezer is not None:
            _with_parent(self.make_folder, self.freezer / PARENT / name)
            step("after freezer group")

    def lift(self, name: str) -> None:
        folder = self.memory / PARENT / name
        # Memory and swap together may not be less than memory.
        for file in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes"):
            if (folder / file).exists():
                kernel_files.write(folder / file, "-1")

    def _limit_swap(self, folder: Path, limits: Limits) -> None:
        file = folder / "memory.memsw.limit_in_bytes"
        if limits.memory_bytes is None or limits.swap_bytes is None:
            raise Fault(f"{file}: cgroup v1 limits swap only together with memory", remedy="set a memory limit too")
        # A new group has no limit on memory + swap, so the memory limit was below it and could be written first.
        _set_bytes(file, limits.memory_bytes + limits.swap_bytes)
        step("after swap limit")

    def _make_cpuset(self, root: Path, name: str, cpus: str | None) -> None:
        # A version 1 cpuset takes no process before its CPUs and memory nodes are set, its parent's included.
        source = root
        for folder in (root / PARENT, root / PARENT / name):
            _with_parent(self.make_folder, folder)
            for file in ("cpuset.mems", "cpuset.cpus"):
                if not kernel_files.read(folder / file):
                    kernel_files.write(folder / file, kernel_files.read(source / file) or "0")
            source = folder
            step("after cpuset group")
        if cpus is not None:
            kernel_files.write(source / "cpuset.cpus", cpus, remedy="choose CPUs that are online")

    def limits(self, name: str) -> Limits:
        folder = self.memory / PARENT / name
        memory = _number(folder / "memory.limit_in_bytes")
        both = kernel_files.read_int(folder / "memory.memsw.limit_in_bytes")
        endless = 1 << 62
        cpus = kernel_files.read(self.cpuset / PARENT / name / "cpuset.cpus") if self.cpuset else None
        return Limits(
            memory if memory < endless else None,
            both - memory if both is not None and both < endless else None,
            cpus or None,
            kernel_files.read_int(folder / "memory.swappiness"),
        )

    def stats(self, name: str) -> dict[str, int]:
        folder = self.memory / PARENT / name
        stat = kernel_files.pairs(kernel_files.read(folder / "memory.stat") or "")
        events = kernel_files.pairs(kernel_files.read(folder / "memory.oom_control") or "")
        names = {
            "swap_bytes": "swap",
            "anon_bytes": "rss",
            "file_bytes": "cache",
            "shmem_bytes": "shmem",
            "mapped_bytes": "mapped_file",
            "dirty_bytes": "dirty",
            "writeback_bytes": "writeback",
            "pgfault": "pgfault",
            "pgmajfault": "pgmajfault",
        }
        counters = {"usage_bytes": _number(folder / "memory.usage_in_bytes")}
        counters |= {ours: stat[f"total_{theirs}"] for ours, theirs in names.items() if f"total_{theirs}" in stat}
        # With a swap limit of 0 both limits are equal, the sum is charged first, and its failures were not counted by
        # either file (kernel 6.18): a 0 that means nothing is left out.
        if self.limits(name).swap_bytes != 0:
            counters["limit_hits"] = _number(folder / "memory.failcnt")
        if "oom_kill" in events:
            counters["oom_kills"] = events["oom_kill"]
        return counters


def _marked(parent: Path) -> list[str]:
    """The controllers that groups of ours have switched on above: the last group that goes switches them off again."""
    try:
        return os.getxattr(parent, _MARK).decode().split()
    except OSError:
        return []  # no group of ours is there, or the kernel keeps no such marks


def _mark(parent: Path, controllers: list[str]) -> None:
    with contextlib.suppress(OSError):
        os.setxattr(parent, _MARK, " ".join(controllers).encode())


def used_by_others(root: Path, controller: str) -> Path | None:
    """A group of somebody else's that has a limit by a controller, which goes with that."""
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and path.name != PARENT):
        for file, unset in _UNSET[controller].items():
            if (text := kernel_files.read(folder / file)) is not None and text != unset:
                return folder
    return None


@dataclass(frozen=True)
class Version2:
    root: Path
    make_folder: Callable[[Path], None] = make_folder
    version: int = 2

    def folders(self, name: str) -> list[Path]:
        return [self.root / PARENT / name]

    def _wanted(self) -> list[str]:
        offered = (kernel_files.read(self.root / "cgroup.controllers") or "").split()
        return [controller for controller in ("memory", "cpuset") if controller in offered]

    def switched_on(self) -> list[tuple[str, str]]:
        file = self.root / "cgroup.subtree_control"
        there, ours = (kernel_files.read(file) or "").split(), _marked(self.root / PARENT)
        wanted = self._wanted()
        return [(str(file), controller) for controller in wanted if controller not in there or controller in ours]

    def lacks(self, limits: Limits) -> Availability:
        if limits.swappiness is not None:
            remedy = "set environment.sysctl vm.swappiness instead"
            return Availability(False, "memory.swappiness: cgroup v2 has no swappiness per group", remedy)
        if limits.cpus is not None and "cpuset" not in self._wanted():
            reason = f"{self.root}: cgroup v2 has no cpuset controller here"
            return Availability(False, reason, "leave the CPU set out, or use a kernel with CONFIG_CPUSETS")
        return AVAILABLE

    def can_freeze(self) -> Availability:
        return AVAILABLE  # every group of Linux 5.2 and later has cgroup.freeze

    def make(self, name: str, limits: Limits) -> None:
        folder = self.root / PARENT / name
        _with_parent(self._make_with_controllers, folder)
        step("after memory group")
        if limits.memory_bytes is not None:
            _set_bytes(folder / "memory.max", limits.memory_bytes)
        if limits.swap_bytes is not None:
            file_swap = folder / "memory.swap.max"
            if not file_swap.exists():  # only a group shows it, so nobody could know before
                raise Fault(f"{file_swap}: the kernel does not account swap", remedy="boot with swapaccount=1")
            _set_bytes(file_swap, limits.swap_bytes)
            step("after swap limit")
        if limits.cpus is not None:
            kernel_files.write(folder / "cpuset.cpus", limits.cpus, remedy="choose CPUs that are online")

    def _make_with_controllers(self, folder: Path) -> None:
        """A parent that somebody took away and is made again has to pass the controllers on again, too."""
        ours = self.switched_on() if folder.name == PARENT else []
        self.make_folder(folder)
        if folder.name != PARENT:
            return
        step("after parent group")
        _mark(folder, [controller for _, controller in ours])
        for file, controller in ours:
            kernel_files.write(Path(file), f"+{controller}")
            step("after controller")
        for controller in self._wanted():
            kernel_files.write(folder / "cgroup.subtree_control", f"+{controller}")

    def lift(self, name: str) -> None:
        folder = self.root / PARENT / name
        for file in ("memory.max", "memory.swap.max"):
            if (folder / file).exists():
                kernel_files.write(folder / file, "max")

    def limits(self, name: str) -> Limits:
        folder = self.root / PARENT / name
        memory = _number(folder / "memory.max")
        swap = kernel_files.read(folder / "memory.swap.max")
        cpus = kernel_files.read(folder / "cpuset.cpus")
        return Limits(
            None if memory < 0 else memory,
            int(swap) if swap is not None and swap != "max" else None,
            cpus or None,
            None,
        )

    def stats(self, name: str) -> dict[str, int]:
        folder = self.root / PARENT / name
        stat = kernel_files.pairs(kernel_files.read(folder / "memory.stat") or "")
        events = kernel_files.pairs(kernel_files.read(folder / "memory.events") or "")
        names = {
            "anon_bytes": "anon",
            "file_bytes": "file",
            "shmem_bytes": "shmem",
            "mapped_bytes": "file_mapped",
            "dirty_bytes": "file_dirty",
            "writeback_bytes": "file_writeback",
            "pgfault": "pgfault",
            "pgmajfault": "pgmajfault",
        }
        counters = {"usage_bytes": _number(folder / "memory.current")}
        swap = kernel_files.read_int(folder / "memory.swap.current")
        if swap is not None:
            counters["swap_bytes"] = swap
        counters |= {ours: stat[theirs] for ours, theirs in names.items() if theirs in stat}
        counters |= {
            ours: events[theirs]
            for ours, theirs in (("limit_hits", "max"), ("oom_kills", "oom_kill"))
            if theirs in events
        }
        return counters


def detect(mountinfo: str | None = None) -> Version1 | Version2 | None:
    """The hierarchy that has the memory controller; a machine may have both versions mounted."""
    cpuset: Path | None = None
    memory: Path | None = None
    freezer: Path | None = None
    for mount in mounts(mountinfo):
        if (
            mount.fs == "cgroup2"
            and "memory" in (kernel_files.read(Path(mount.point) / "cgroup.controllers") or "").split()
        ):
            return Version2(Path(mount.point))
        if mount.fs == "cgroup" and "memory" in mount.options:
            memory = Path(mount.point)
        if mount.fs == "cgroup" and "cpuset" in mount.options:
            cpuset = Path(mount.point)
        if mount.fs == "cgroup" and "freezer" in mount.options:
            freezer = Path(mount.point)
    return Version1(memory, cpuset, freezer=freezer) if memory is not None else None
