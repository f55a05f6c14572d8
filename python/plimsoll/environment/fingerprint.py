"""What a result was measured on: everything around the server that could decide it (schema/fingerprint.md).

The constraint: nothing is guessed. What this machine cannot tell is absent; an empty value would compare as equal.
Taken before any knob is turned, so that two runs of one experiment have the same.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plimsoll.environment import cpus, devices, discover, kernel_files, scheduler
from plimsoll.environment.groups import cgroups
from plimsoll.environment.memory import damon, huge_pages, swap, sysctl

FORMAT = 1

#: What must be equal for two runs to be compared, as paths into the fingerprint. A prefix stands for all below it.
CHECKED = (
    "machine.cpu_model", "machine.architecture", "machine.cpus_online", "machine.cpus_usable", "machine.sockets",
    "machine.threads_per_core", "machine.memory_kib", "machine.numa_nodes", "machine.virtualisation",
    "machine.cpu_governor",
    "kernel.release", "kernel.version", "kernel.boot_parameters", "kernel.clock_source", "kernel.mitigations",
    "kernel.preemption", "kernel.base_slice_ns",
    "mounts", "devices", "place_devices", "damon", "huge_pages", "swap", "vm", "cgroup.version",
    "versions.glibc", "versions.python", "versions.agent", "versions.postgres",
    # Of a guest kernel: which kind, and the host's part.
    "kernel.kind", "host.machine.cpu_model", "host.machine.cpus_usable", "host.machine.memory_kib",
    "host.machine.virtualisation", "host.kernel.release", "host.kernel.version", "host.mounts",
)  # fmt: skip

#: Below checked prefixes, yet different from boot to boot or place to place without deciding anything.
_UNCHECKED = re.compile(
    r"^devices\.\d+(\.under\.\d+)*\.size_sectors$|^(host\.)?mounts\.\d+\.(path|point|source|root)$|^swap\.\d+\.used_bytes$"
    r"|^place_devices\.\d+\.(path|name)$|^place_devices\.\d+(\.under\.\d+)+\.(size_sectors|name)$|^huge_pages\.explicit\.\d+\.(free|resv|surplus)_hugepages$"
)

#: Of a run that boots several kernels each has a part of its own (run/own_fingerprints.py), checked alike.
_OF_A_KERNEL = re.compile(r"^kernels\.[a-z0-9-]+\.")

#: What only root can read, and earlier versions did not ask for: compared where both tell it.
_WHERE_TOLD = ("kernel.preemption", "kernel.base_slice_ns")

#: Memory differs by some pages between boots of one machine, and so does what the kernel sets by what is free then.
_TOLERANCE = {
    "machine.memory_kib": 0.01,
    "host.machine.memory_kib": 0.01,
    "vm.min_free_kbytes": 0.02,
    "vm.user_reserve_kbytes": 0.02,
    "vm.admin_reserve_kbytes": 0.02,
}


def fingerprint(paths: Sequence[Path], *, agent: Path | None = None, blocks: Sequence[Path] = ()) -> dict[str, Any]:
    """`paths`: folders whose file systems matter (data, WAL, state). `agent`: the agent's binary, for its version.

    `blocks`: block devices that places are made on.
    """
    parts: dict[str, Any] = {
        "format": FORMAT,
        "machine": _machine(),
        "kernel": _kernel(),
        "mounts": [{"path": str(path), **_mount(path)} for path in paths],
        "devices": _devices(paths),
        "place_devices": [told for path in blocks if (told := devices.described_block(path)) is not None] or None,
        "damon": damon.state(),
        "huge_pages": {"explicit": huge_pages.explicit(), "transparent": huge_pages.transparent()},
        "swap": [vars(area) for area in swap.of_the_machine()],
        "vm": sysctl.all_vm(),
        "cgroup": _cgroup(),
        "psi": Path("/proc/pressure/memory").exists(),
        "versions": _versions(agent),
    }
    return {name: _without_none(part) for name, part in parts.items() if part is not None}


def comparable(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    """Differences in checked keys: [{"key", "a", "b"}], a missing value as None. Empty: the runs may be compared."""
    left, right = _flat(a), _flat(b)
    differences = []
    for key in sorted(left.keys() | right.keys()):
        name = _OF_A_KERNEL.sub("", key)
        if not any(name == checked or name.startswith(f"{checked}.") for checked in CHECKED) or _UNCHECKED.match(name):
            continue
        first, second = left.get(key), right.get(key)
        if name in _WHERE_TOLD and None in (first, second):
            continue
        if first != second and not _is_within(_TOLERANCE.get(name), first, second):
            differences.append({"key": key, "a": first, "b": second})
    return differences


def _is_within(tolerance: float | None, first: Any, second: Any) -> bool:
    """Whether two numbers, or texts of numbers, differ by no more than this share; False of anything else."""
    if tolerance is None or not (str(first).isdecimal() and str(second).isdecimal()):
        return False
    return abs(int(first) - int(second)) <= tolerance * max(int(first), int(second))


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves by path. List items by position: a fingerprint's lists are in the order of the paths given.

    A name that begins with its parent's, as "vm.swappiness" in "vm", is the path as it is.
    """
    if isinstance(value, dict) and value:
        items = value.items()
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        items = ((str(position), item) for position, item in enumerate(value))  # type: ignore[assignment]
    else:
        return {prefix: value}
    return {key: leaf for name, item in items for key, leaf in _flat(item, _below(prefix, str(name))).items()}


def _below(prefix: str, name: str) -> str:
    parent = prefix.rpartition(".")[2]
    return f"{prefix}.{name.removeprefix(f'{parent}.')}" if prefix else name


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def _machine() -> dict[str, Any]:
    first: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        first[name.strip()] = value.strip()
    topology = Path("/sys/devices/system/cpu/cpu0/topology")
    siblings = kernel_files.read(topology / "thread_siblings_list")
    packages = {
        kernel_files.read(file)
        for file in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/physical_package_id")
    }
    dmi = Path("/sys/class/dmi/id")
    return {
        "vendor": kernel_files.read(dmi / "sys_vendor"),
        "product": kernel_files.read(dmi / "product_name"),
        "architecture": platform.machine(),
        # ARM's cpuinfo has no model name; its part number is what tells.
        "cpu_model": first.get("model name") or first.get("CPU part"),
        "cpu_microcode": first.get("microcode"),
        "cpus_online": cpus.show(cpus.online()),
        "cpus_usable": cpus.show(cpus.usable()),
        "sockets": len(packages) or None,
        "threads_per_core": len(cpus.parse(siblings)) if siblings else None,
        "cpu_caches": _caches(),
        "cpu_governor": kernel_files.read(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "memory_kib": memory_kib().get("MemTotal"),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "virtualisation": virtualisation(first.get("flags", "")),
    }


def _caches() -> dict[str, str]:
    sizes = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (kernel_files.read(folder / name) for name in ("level", "type", "size"))
        if level and kind and size:
            sizes[f"L{level} {kind.lower()}"] = size
    return sizes


def memory_kib() -> dict[str, int]:
    """/proc/meminfo's lines in KiB."""
    lines = (line.partition(":") for line in (kernel_files.read(Path("/proc/meminfo")) or "").splitlines())
    return {name: int(value.split()[0]) for name, _, value in lines if value.split()[:1]}


def virtualisation(flags: str = "") -> str:
    """systemd's name for it where systemd is; else whether the CPU says that a hypervisor is under it."""
    program = shutil.which("systemd-detect-virt")
    if program is not None:
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        if done.stdout.strip():
            return done.stdout.strip()
    return "unknown hypervisor" if "hypervisor" in flags.split() else "none seen"


def _kernel() -> dict[str, Any]:
    uname = os.uname()
    vulnerabilities = Path("/sys/devices/system/cpu/vulnerabilities")
    return {
        "sysname": uname.sysname,
        "release": uname.release,
        "version": uname.version,
        "banner": kernel_files.read(Path("/proc/version")),
        "boot_parameters": kernel_files.read(Path("/proc/cmdline")),
        "clock_source": kernel_files.read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "mitigations": {file.name: kernel_files.read(file) for file in sorted(vulnerabilities.glob("*"))},
        **scheduler.state(),
    }


def _mount(path: Path) -> dict[str, Any]:
    mount = devices.mount_of(path)
    described = mount.as_json()
    if mount.fs in ("ext3", "ext4") and mount.source.startswith("/dev/"):
        # A file system without a journal syncs with fewer flushes; the mount options do not say so.
        name = Path(os.path.realpath(mount.source)).name
        if Path("/proc/fs/ext4", name).exists():
            described["journal"] = any(Path("/proc/fs/jbd2").glob(f"{name}-*"))
        full = kernel_files.read(Path("/proc/fs/ext4", name, "options"))
        if full:
            described["all_options"] = sorted(full.split())
    return described


def _devices(paths: Sequence[Path]) -> list[dict[str, Any]]:
    described: dict[str, dict[str, Any]] = {}
    for path in paths:
        for device in devices.devices_of(path):
            described.setdefault(device.name, devices.describe(device))
    return list(described.values())


def _cgroup() -> dict[str, Any]:
    hierarchy = cgroups.detect()
    controllers = [
        line.split()[0]
        for line in (kernel_files.read(Path("/proc/cgroups")) or "").splitlines()
        if not line.startswith("#") and line.split()[-1:] == ["1"]
    ]
    return {"version": hierarchy.version if hierarchy else None, "controllers": sorted(controllers)}


def _versions(agent: Path | None) -> dict[str, Any]:
    agent_version = None
    if agent is not None:
        try:
            done = subprocess.run([str(agent), "--version"], capture_output=True, text=True, timeout=10, check=False)
            agent_version = done.stdout.strip() or None
        except (OSError, subprocess.TimeoutExpired):
            agent_version = None
    return {
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
        "agent": agent_version,
        "psql": discover.client(),
        "postgres": [install.as_json() for install in discover.servers()],
        "glibc": " ".join(platform.libc_ver()).strip() or None,
        "os": _os_name(),
    }


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
