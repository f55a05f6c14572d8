"""What this machine can do for an experiment, and what would mend what it cannot. Data only; the front draws it.

The constraint: looking must not change the machine lastingly, and must work for anybody, root or not. Where a feature
can be tried without a trace it is tried, since permissions and versions tell only what ought to work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import pwd
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plimsoll.environment import cpus, devices, discover, kernel_files, smart, web_servers
from plimsoll.environment.fault import Fault
from plimsoll.environment.fingerprint import memory_kib
from plimsoll.environment.folders import others
from plimsoll.environment.groups import cgroups, group_access
from plimsoll.environment.guest import kernel as guest_kernel
from plimsoll.environment.guest import qemu
from plimsoll.environment.memory import damon, page_cache, swap
from plimsoll.environment.places import able
from plimsoll.environment.readahead import ReadAhead
from plimsoll.environment.scheduler import Preemption
from plimsoll.environment.state import StateDir

SERVER_USER = "plimsoll"
_libc = ctypes.CDLL(None, use_errno=True)
_CAPABILITIES = {
    "SYS_ADMIN": 21,
    "SYS_RESOURCE": 24,
    "NET_ADMIN": 12,
    "PERFMON": 38,
    "BPF": 39,
    "CHECKPOINT_RESTORE": 40,
}
_BPF_CALL = {"x86_64": 321, "aarch64": 280}
_ENOUGH_DISK, _ENOUGH_MEMORY_KIB = 8 << 30, 2 << 20


@dataclass(frozen=True)
class Check:
    """ok: True there, False missing, None works, but the reader should know. `remedy` is "" where there is none."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def diagnose(state: StateDir | None = None) -> list[Check]:
    """Every check, in a fixed order. A check that fails to run is a finding too, not the end of the others."""
    where = state or StateDir()
    checks: list[Callable[[StateDir], Check]] = [
        _privileges, _kernel, _bpf, _cgroup, _cpuset, _freezer, _swap_file, _other_swap, _file_systems, _loop,
        _places, _layers, _nfs, _postgres, _web, _user, _state_folder, _disk, _smart, _memory, _residency, _psi, _damon,
        _read_ahead, _cpus, _preemption, _load, _guest, _kernels,
    ]  # fmt: skip
    results = []
    for check in checks:
        try:
            results.append(check(where))
        except (OSError, Fault, ValueError) as error:
            results.append(Check(check.__name__.strip("_").replace("_", " "), False, f"could not be examined: {error}"))
    return results


def capabilities() -> set[str]:
    """Those of _CAPABILITIES that this process has in effect."""
    for line in (kernel_files.read(Path("/proc/self/status")) or "").splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return {name for name, bit in _CAPABILITIES.items() if mask >> bit & 1}
    return set()


def _privileges(_: StateDir) -> Check:
    held = capabilities()
    if os.geteuid() == 0 and "SYS_ADMIN" in held:
        return Check("privileges", True, "root")
    who = "root without CAP_SYS_ADMIN (a container?)" if os.geteuid() == 0 else f"user {os.geteuid()}, not root"
    return Check("privileges", False, who, "run as root for groups, swap, sysctls and BPF; the rest works without")


def _kernel(_: StateDir) -> Check:
    release = os.uname().release
    number = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    return Check("kernel", number >= (5, 15), release, "" if number >= (5, 15) else "use Linux 5.15 or later")


def _bpf(_: StateDir) -> Check:
    missing, remedy = [], ""
    if not Path("/sys/kernel/btf/vmlinux").exists():
        missing.append("no type information (/sys/kernel/btf/vmlinux)")
        remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"
    held = capabilities()
    if not ("SYS_ADMIN" in held or {"BPF", "PERFMON"} <= held):
        missing.append("neither root nor CAP_BPF with CAP_PERFMON")
        remedy = remedy or "run as root"
    lockdown = kernel_files.selected(kernel_files.read(Path("/sys/kernel/security/lockdown")) or "")
    if lockdown == "confidentiality":
        missing.append("the kernel is locked down (confidentiality)")
        remedy = remedy or "boot without lockdown=confidentiality"
    if not missing and (number := _try_bpf()):
        missing.append(f"bpf(2) is refused: {os.strerror(number)}")
        remedy = "allow bpf(2): a container or a seccomp filter forbids it"
    unprivileged = kernel_files.read(Path("/proc/sys/kernel/unprivileged_bpf_disabled"))
    note = f", unprivileged_bpf_disabled = {unprivileged}" if unprivileged is not None else ""
    return Check("BPF", not missing, ("; ".join(missing) or "tp_btf programs can be loaded") + note, remedy)


def _try_bpf() -> int:
    """errno of making a one-entry map, which is gone when its descriptor is closed; 0 where it works."""
    call = _BPF_CALL.get(platform.machine())
    if call is None:
        return 0
    # struct for BPF_MAP_CREATE (command 0): type ARRAY = 2, key 4 bytes, value 4 bytes, one entry; the rest is zero.
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)
    descriptor = _libc.syscall(call, 0, ctypes.byref(attributes), ctypes.sizeof(attributes))
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0


def _cgroup(_: StateDir) -> Check:
    hierarchy = cgroups.detect()
    able = group_access.available(hierarchy)
    if hierarchy is None or not able.ok:
        return Check("memory groups", False, able.reason, able.remedy)
    root = hierarchy.folders("x")[0].parent.parent
    trial = root / f"plimsoll-doctor-{os.getpid()}"
    described = f"version {hierarchy.version} at {root}"
    try:
        trial.mkdir()
        # Only a group shows whether version 2 accounts swap, and only where the controller is passed on already.
        unaccounted = (trial / "memory.max").exists() and not (trial / "memory.swap.max").exists()
        trial.rmdir()
    except OSError as error:
        return Check("memory groups", False, f"{described}: {trial}: {error.strerror}", group_access.PRIVILEGED)
    described += ", a group could be made and removed"
    if later := [controller for _, controller in hierarchy.switched_on()]:
        described += f"; {' and '.join(later)} would be switched on for as long as a run lasts"
    if unaccounted or not hierarchy.lacks(cgroups.Limits(swap_bytes=0)).ok:
        return Check("memory groups", None, f"{described}; swap is not accounted", "boot with swapaccount=1")
    return Check("memory groups", True, described)


def _cpuset(_: StateDir) -> Check:
    hierarchy = cgroups.detect()
    able = hierarchy.lacks(cgroups.Limits(cpus="0")) if hierarchy is not None else group_access.available(None)
    if able.ok:
        return Check("CPU sets", True, "available")
    return Check("CPU sets", False, able.reason, f"{able.remedy}; without it the target's CPUs cannot be a factor")


def _freezer(_: StateDir) -> Check:
    hierarchy = cgroups.detect()
    able = group_access.available(hierarchy)
    if able.ok and hierarchy is not None:
        able = hierarchy.can_freeze()
    if able.ok:
        return Check("freezer", True, "groups can be frozen")
    return Check("freezer", False, able.reason, f"{able.remedy}; without it windows fall back to trials")


def _swap_file(state: StateDir) -> Check:
    able = swap.SwapFile(state, "doctor").available()
    fs = devices.mount_of(state.root).fs
    return Check("swap file", able.ok, able.reason or f"can be made on {fs} under {state.root}", able.remedy)


def _other_swap(_: StateDir) -> Check:
    areas = swap.areas()
    if not areas:
        return Check("other swap", True, "none")
    listed = ", ".join(f"{area.path} ({area.size_bytes >> 20} MiB)" for area in areas)
    return Check(
        "other swap", None, listed, "the group's swap limit keeps the server off it; the fingerprint records it"
    )


def _file_systems(_: StateDir) -> Check:
    known = {line.split()[-1] for line in (kernel_files.read(Path("/proc/filesystems")) or "").splitlines() if line}
    modules = Path("/lib/modules") / os.uname().release / "kernel/fs"
    wanted = ("ext4", "xfs", "btrfs")
    there = [fs for fs in wanted if fs in known or (modules / fs).is_dir()]
    missing = [fs for fs in wanted if fs not in there]
    remedy = f"for {', '.join(missing)}: use a kernel with it" if missing else ""
    return Check("file systems", not missing, ", ".join(there) or "none of ext4, xfs, btrfs", remedy)


def _loop(_: StateDir) -> Check:
    there = Path("/dev/loop-control").exists()
    remedy = "" if there else "`modprobe loop`; without it a file system cannot be a factor on one disk"
    return Check("loop devices", there, "/dev/loop-control" if there else "none", remedy)


def _places(_: StateDir) -> Check:
    return Check("programs for places", *able.programs())


def _layers(_: StateDir) -> Check:
    return Check("layers of places", *able.layers())


def _nfs(_: StateDir) -> Check:
    return Check("NFS", *able.nfs())


def _postgres(_: StateDir) -> Check:
    servers = discover.servers()
    remedy = "" if servers else "run `./plimsoll setup`, or install the package postgresql (no cluster is needed)"
    listed = ", ".join(f"{install.version} in {install.bin_dir}" for install in servers)
    return Check("PostgreSQL", bool(servers), listed or "no server found", remedy)


def _web(_: StateDir) -> Check:
    """Nobody needs one who does not ask for it."""
    found = {"nginx": web_servers.nginx(), "Apache": web_servers.apache()}
    listed = ", ".join(f"{name} {one.version} in {one.program.parent}" for name, one in found.items() if one)
    missing = [name for name, one in found.items() if one is None]
    remedy = f"for {' and '.join(missing)}: `./plimsoll setup --web`; for web serving alone" if missing else ""
    return Check("web servers", None if missing else True, listed or "none found", remedy)


def _user(_: StateDir) -> Check:
    if os.geteuid() != 0:
        return Check(
            "server's user", None, f"servers would run as user {os.geteuid()}, because Plimsoll does not run as root"
        )
    try:
        return Check("server's user", True, f"{SERVER_USER} ({pwd.getpwnam(SERVER_USER).pw_uid})")
    except KeyError:
        return Check("server's user", False, f"no user {SERVER_USER}", "run `./plimsoll setup`")


def _state_folder(state: StateDir) -> Check:
    if not state.root.is_dir():
        remedy = "the first run makes it"
        return Check("state folder", None, f"{state.root} is not there yet", remedy)
    if not os.access(state.root, os.W_OK):
        return Check("state folder", False, f"{state.root} is not writable", "run as root, or set PLIMSOLL_STATE")
    try:
        state.check_owned(state.root)
        state.check_traversable()
    except Fault as fault:
        return Check("state folder", False, fault.what, fault.remedy)
    if why := others.others_may_change(state.root):
        return Check("state folder", None, f"{state.root}: {why}", f"set PLIMSOLL_STATE: {others.remedy()}")
    return Check("state folder", True, str(state.root))


def _disk(state: StateDir) -> Check:
    free = page_cache.free_bytes(devices.existing(state.root))
    ok = True if free >= _ENOUGH_DISK else None
    remedy = "" if ok else f"free some, or set PLIMSOLL_STATE; the demo needs about {_ENOUGH_DISK >> 30} GiB"
    return Check("free disk", ok, f"{free / 2**30:.1f} GiB under {state.root}", remedy)


def _smart(state: StateDir) -> Check:
    """A note where it cannot be read: only soaks look at it."""
    if not smart.tools():
        return Check("disk health (SMART)", None, "not read", "apt-get install smartmontools; soaks record it")
    below = {each.name for top in devices.devices_of(state.root) for each in top.walk()}
    told = {name: smart.read(name) for name in sorted(below)}
    passed = {name: found.passed for name, found in told.items() if not isinstance(found, str)}
    bad = [name for name, one in passed.items() if one is False]
    if bad:
        return Check("disk health (SMART)", False, f"{', '.join(bad)}: failing, by its own account", "replace it")
    if passed and all(passed.values()):  # layers above the disks tell nothing
        return Check("disk health (SMART)", True, ", ".join(passed))
    words = {True: "healthy, by its own account", None: "does not say whether it is healthy"}
    said = [f"{name}: {words[one]}" for name, one in passed.items()]
    why = "; ".join(said or [str(found) for found in told.values()]) or "no device found"
    return Check("disk health (SMART)", None, why, "nothing to do: disks of virtual machines tell nothing")


def _memory(_: StateDir) -> Check:
    available, total = (memory_kib().get(name, 0) for name in ("MemAvailable", "MemTotal"))
    ok = True if available >= _ENOUGH_MEMORY_KIB else None
    remedy = "" if ok else f"stop what uses it; the demo needs about {_ENOUGH_MEMORY_KIB >> 20} GiB"
    return Check("free memory", ok, f"{available / 2**20:.1f} of {total / 2**20:.1f} GiB", remedy)


def _residency(_: StateDir) -> Check:
    works = page_cache.cachestat_works()
    return Check(
        "page cache residency", True, "cachestat(2)" if works else "mincore(2); cachestat(2) came with Linux 6.5"
    )


def _guest(_: StateDir) -> Check:
    """Nobody needs one who does not ask for it."""
    able, found = guest_kernel.available(), guest_kernel.installed()
    if not able.ok or found is None:
        remedy = f'{able.remedy}; for environment.kernel = "guest" alone'
        return Check("guest kernel", None, able.reason, remedy)
    missing = [name for name, has in found.features().items() if not has]
    without = f", without {', '.join(missing)}" if missing else ""
    text = f"{guest_kernel.KIND} {found.version}{without}"
    if not found.loads_modules:
        remedy = "`./plimsoll setup --guest` (package kmod): without modprobe it loads no modules"
        return Check("guest kernel", None, text, remedy)
    return Check("guest kernel", True, text)


def _kernels(_: StateDir) -> Check:
    """What kernels can be compared in; nobody needs it who does not ask for it."""
    able = qemu.available()
    if not able.ok:
        return Check("guests of QEMU", None, able.reason, f'{able.remedy}; for environment.boot.by = "qemu" alone')
    if qemu.has_kvm():
        return Check("guests of QEMU", True, "with KVM: results of kernels that are compared in them count")
    return Check("guests of QEMU", None, "without KVM: emulated, for mechanism and not for speed")


def _psi(_: StateDir) -> Check:
    there = kernel_files.read(Path("/proc/pressure/memory")) is not None
    remedy = "" if there else "boot with psi=1; without it the pressure columns are absent"
    return Check("pressure (PSI)", there, "/proc/pressure" if there else "not enabled", remedy)


def _damon(_: StateDir) -> Check:
    active = damon.active_schemes()
    if not active:
        return Check("DAMON schemes", True, "none active")
    remedy = "nothing to do: they are recorded, left alone, and unexplained loss of cache is flagged in each trial"
    return Check("DAMON schemes", None, ", ".join(active), remedy)


def _read_ahead(state: StateDir) -> Check:
    sizes = ReadAhead(state.root).show()
    listed = ", ".join(f"{name} {size} KiB" for name, size in sizes.items())
    large = any(size is not None and size > 1024 for size in sizes.values())
    remedy = "random reads load much more than they ask for; set environment.read_ahead in experiments" if large else ""
    return Check("read-ahead", None if large or not sizes else True, listed or "no device found", remedy)


def _cpus(_: StateDir) -> Check:
    usable = cpus.usable()
    ok = True if len(usable) >= 2 else None
    remedy = "" if ok else "load generator and server share one CPU; use a machine with two or more"
    return Check("CPUs", ok, f"{len(usable)} ({cpus.show(usable)})", remedy)


def _preemption(_: StateDir) -> Check:
    """A note where it cannot be changed: nobody needs that who does not ask for it."""
    model = Preemption()
    able = model.available()
    if not able.ok:
        return Check("preemption", None, able.reason, able.remedy)
    return Check("preemption", True, f"{model.show()}, of {', '.join(model.choices())}")


def _load(_: StateDir) -> Check:
    def ticks() -> list[int]:
        return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]

    before = ticks()
    time.sleep(0.2)
    passed = [now - then for now, then in zip(ticks(), before, strict=True)]
    steal = 100 * passed[7] / max(sum(passed), 1)
    load = os.getloadavg()[0]
    busy = load > 0.5 * len(cpus.usable()) or steal > 2
    remedy = "other programs are busy on this machine; results will scatter" if busy else ""
    return Check("other load", None if busy else True, f"load average {load:.2f}, steal {steal:.1f} %", remedy)
