"""The guest kernel that is installed: its version, and what it has, by its own configuration; nothing is booted.

The constraint: Debian names the package's kernel by the day, and builds much of it as modules that may not be there. So
the program is asked for its version and configuration, and a module counts only where its file is.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plimsoll.environment.knob import AVAILABLE, Availability

KIND = "user-mode-linux"
PROGRAM = "linux.uml"
PACKAGE = "user-mode-linux"
MODULES = Path("/usr/lib/uml/modules")
# Root's tools may be missing from the path of somebody who is not root.
TOOLS = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}
NEEDED = {"mkfs.ext4": "e2fsprogs", "setpriv": "util-linux", "unshare": "util-linux"}
MEMORY_FOLDER = Path("/dev/shm")  # the guest's memory is a file there
# Preloaded, since this kernel panics on CPUs with AMX without it (crates/xstate).
PRELOADED = Path(__file__).resolve().parents[4] / "target/release/libplimsoll_xstate.so"

#: What is worth knowing of a guest: names for people, the option of the configuration, and the module where it is one.
FEATURES: tuple[tuple[str, str, str], ...] = (
    ("memory control groups (version 2)", "CONFIG_MEMCG", ""),
    ("ext4", "CONFIG_EXT4_FS", "ext4"),
    ("XFS", "CONFIG_XFS_FS", "xfs"),
    ("btrfs", "CONFIG_BTRFS_FS", "btrfs"),
    ("loop devices", "CONFIG_BLK_DEV_LOOP", "loop"),
    ("md RAID 0", "CONFIG_MD_RAID0", "raid0"),
    ("md RAID 1", "CONFIG_MD_RAID1", "raid1"),
    ("md RAID 10", "CONFIG_MD_RAID10", "raid10"),
    ("md RAID 4/5/6", "CONFIG_MD_RAID456", "raid456"),
    ("device-mapper", "CONFIG_BLK_DEV_DM", "dm-mod"),
    ("dm-delay", "CONFIG_DM_DELAY", "dm-delay"),
    ("dm-flakey", "CONFIG_DM_FLAKEY", "dm-flakey"),
    ("NFS client", "CONFIG_NFS_FS", "nfs"),
    ("NFS server", "CONFIG_NFSD", "nfsd"),
    ("netem", "CONFIG_NET_SCH_NETEM", "sch_netem"),
    ("CPU sets", "CONFIG_CPUSETS", ""),
    ("pressure (PSI)", "CONFIG_PSI", ""),
    ("tracing", "CONFIG_FTRACE", ""),
    ("BPF type information", "CONFIG_DEBUG_INFO_BTF", ""),
)


@dataclass(frozen=True)
class GuestKernel:
    """One that is installed. `config`: option to value, of those that are set; `loads_modules`: whether modprobe is
    there, the host's, which the guest calls."""

    program: Path
    version: str
    config: Mapping[str, str]
    modules: Path
    loads_modules: bool

    def has(self, option: str, module: str) -> bool:
        """Whether an option is built in, or is a module whose file is there and can be loaded."""
        built = self.config.get(option)
        if built == "m":
            return self.loads_modules and any(self.modules.rglob(f"{module}.ko*"))
        return built == "y"

    def features(self) -> dict[str, bool]:
        """What of FEATURES it has."""
        return {name: self.has(option, module) for name, option, module in FEATURES}

    @property
    def hz(self) -> int | None:
        """Ticks a second, to which its delays round."""
        told = self.config.get("CONFIG_HZ", "")
        return int(told) if told.isdigit() else None

    @property
    def is_traced(self) -> bool:
        """Whether BPF programs of the probes could be loaded into it."""
        return self.has("CONFIG_DEBUG_INFO_BTF", "") and self.has("CONFIG_FTRACE", "")


@functools.cache
def installed() -> GuestKernel | None:
    """The installed one; None where there is none, or it does not say what it is."""
    program = shutil.which(PROGRAM, path=TOOLS["PATH"])
    if program is None:
        return None
    try:
        version, config = (_told(program, option) for option in ("--version", "--showconfig"))
    except (OSError, subprocess.SubprocessError):
        return None
    loads_modules = shutil.which("modprobe", path=TOOLS["PATH"]) is not None
    return GuestKernel(Path(program), version.strip(), parse(config), MODULES / version.strip(), loads_modules)


def _told(program: str, option: str) -> str:
    done = subprocess.run([program, option], capture_output=True, text=True, timeout=10, check=True, env=TOOLS)
    return done.stdout


def parse(config: str) -> dict[str, str]:
    """The options of a kernel's configuration that are set."""
    pairs = (line.partition("=") for line in config.splitlines() if line.startswith("CONFIG_"))
    return {name: value.strip('"') for name, _, value in pairs}


def available() -> Availability:
    """Whether a guest can be had here, and the one thing to do where it cannot."""
    if platform.machine() != "x86_64":
        return Availability(False, f"{KIND} is built for x86-64 only, and this is {platform.machine()}", "use the host")
    install = f"`./plimsoll setup --guest` (package {PACKAGE})"
    if shutil.which(PROGRAM, path=TOOLS["PATH"]) is None:
        return Availability(False, f"{KIND} is not installed", install)
    for tool, package in NEEDED.items():
        if shutil.which(tool, path=TOOLS["PATH"]) is None:
            return Availability(False, f"{tool} is not installed", f"`./plimsoll setup --guest` (package {package})")
    if installed() is None:
        return Availability(False, f"{PROGRAM} does not tell its version and configuration", install)
    if os.geteuid() != 0:
        return Availability(False, "a guest needs root, whose server's user it keeps", "run as root")
    return AVAILABLE
