"""Whether control groups can be made and limited here, and the one command that makes it possible where they cannot.

The constraint: the kernel reports only an errno for what has several reasons (a container's read-only tree, a
controller that is bound to the other version, a group that holds processes itself), and each has a remedy of its own.
So the mounts and the tree are read, nothing is tried, and nothing is changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.devices import Mount, mount_of, mounts
from plimsoll.environment.groups.cgroups import Hierarchy, Version2
from plimsoll.environment.knob import AVAILABLE, Availability

MOUNT_1 = "mkdir -p /run/cgroup-memory && mount -t cgroup -o memory cgroup /run/cgroup-memory"
MOUNT_2 = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"
PRIVILEGED = "start the container with --privileged"


def available(hierarchy: Hierarchy | None, mountinfo: str | None = None, proc: Path = Path("/proc")) -> Availability:
    """Can groups with a memory limit be made by this process? `hierarchy`: as cgroups.detect found it."""
    if hierarchy is None:
        return _nowhere(mounts(mountinfo), proc)
    root = hierarchy.folders("x")[0].parent.parent
    if os.geteuid() != 0:
        return Availability(
            False, f"{root}: only root may create control groups here", "run as root (sudo ./plimsoll ...)"
        )
    if "ro" in (mount_of(root) if mountinfo is None else _at(root, mounts(mountinfo))).options:
        return Availability(
            False, f"{root}: mounted read-only (a container?)", f"`mount -o remount,bind,rw {root}`, or {PRIVILEGED}"
        )
    if isinstance(hierarchy, Version2) and _holds_processes(hierarchy):
        # Moving them is the owner's business: the names that the container's own tools know would change.
        move = f"mkdir -p {root}/init; xargs -rn1 <{root}/cgroup.procs >{root}/init/cgroup.procs"
        return Availability(
            False,
            f"{root}: the group of a container, with processes in it: it cannot delegate its memory controller",
            f"`{move}`, or start the container with --cgroupns=host",
        )
    if not os.access(root, os.W_OK):
        return Availability(False, f"{root}: no control group may be created here", PRIVILEGED)
    return AVAILABLE


def _at(point: Path, known: list[Mount]) -> Mount:
    return [mount for mount in known if Path(mount.point) == point][-1]


def _holds_processes(tree: Version2) -> bool:
    """Is the mounted tree's top an ordinary group (only the machine's own root has no type) that has to switch a
    controller on for its children, and holds processes? The kernel refuses that with EBUSY."""
    if not (tree.root / "cgroup.type").exists() or not tree.switched_on():
        return False
    return bool(kernel_files.read(tree.root / "cgroup.procs"))


def _nowhere(known: list[Mount], proc: Path) -> Availability:
    """No hierarchy has the memory controller: why."""
    rows = [line.split() for line in (kernel_files.read(proc / "cgroups") or "").splitlines()]
    # subsys_name, hierarchy (0: version 2's), num_cgroups, enabled. Kernels may leave out what only version 2 has.
    memory = next((row for row in rows if row[0] == "memory"), None)
    if memory is not None and memory[3] == "0":
        remedy = "boot with cgroup_enable=memory, and without cgroup_disable=memory"
        return Availability(False, "the kernel's memory controller is switched off", remedy)
    for mount in known:
        if mount.fs == "cgroup2" and (Path(mount.point) / "cgroup.type").exists():
            reason = f"{mount.point}: the group of a container or service, which is not given the memory controller"
            return Availability(
                False, reason, "start the container with --cgroupns=host, or the service with Delegate=yes"
            )
    if memory is not None and memory[1] != "0":
        return Availability(False, "the memory controller is bound to cgroup v1 and not mounted", f"`{MOUNT_1}`")
    if any(mount.fs == "cgroup2" for mount in known):
        return Availability(False, "this kernel's cgroup v2 has no memory controller", "use a kernel with CONFIG_MEMCG")
    return Availability(False, "no control groups are mounted", f"`{MOUNT_2}`")
