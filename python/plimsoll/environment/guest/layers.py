"""A guest's kernel as places ask for it: what it has by its configuration and modules, before it is booted.

The constraint: of what the kernel itself would answer (mount options, queues) nothing is known without it. That the
guest's side asks, before the first trial.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.environment.guest.kernel import GuestKernel
from plimsoll.environment.places.machine import Machine

_OPTIONS = {
    "loop": "CONFIG_BLK_DEV_LOOP",
    "md_mod": "CONFIG_BLK_DEV_MD",
    "raid0": "CONFIG_MD_RAID0",
    "raid1": "CONFIG_MD_RAID1",
    "raid10": "CONFIG_MD_RAID10",
    "raid456": "CONFIG_MD_RAID456",
    "dm_mod": "CONFIG_BLK_DEV_DM",
    "dm_delay": "CONFIG_DM_DELAY",
    "dm_flakey": "CONFIG_DM_FLAKEY",
    "nfsd": "CONFIG_NFSD",
    "nfs": "CONFIG_NFS_FS",
    "nfsv3": "CONFIG_NFS_V3",
    "nfsv4": "CONFIG_NFS_V4",
}


class BeforeItsBoot(Machine):
    """The programs are the host's, which the guest runs, too; the kernel is the guest's."""

    def __init__(self, kernel: GuestKernel) -> None:
        self.kernel = kernel

    def has_module(self, *names: str) -> bool:
        """By the kernel's configuration, of the modules that places use."""
        wanted = [name.replace("-", "_") for name in names]
        return any(name in _OPTIONS and self._has(_OPTIONS[name], name) for name in wanted)

    def _has(self, option: str, module: str) -> bool:
        return self.kernel.has(option, module) or self.kernel.has(option, module.replace("_", "-"))

    def release(self) -> str:
        """Of the guest's kernel."""
        return f"guest, {self.kernel.version}"

    def queues_of_loops(self) -> list[Path]:
        """None is there yet."""
        return []

    def has_loops(self) -> bool:
        """By its module."""
        return self.has_module("loop")

    def has_file_system(self, name: str) -> bool:
        """The options of file systems are named alike; ext4 mounts ext2 and ext3."""
        names = (name, "ext4") if name in ("ext2", "ext3") else (name,)
        return any(self.kernel.has(f"CONFIG_{one.upper()}_FS", one) for one in names)

    def serves_nfs(self) -> str:
        """Nobody but us starts anything there."""
        return ""

    def has_taken(self, port: int) -> bool:
        """The same of its network."""
        del port
        return False

    def refused_option(self, fs: str, name: str, value: str | None) -> str | None:
        """Nobody can be asked yet."""
        del fs, name, value
        return None
