"""What a guest is, whatever runs it: a kernel that is booted as a process in a folder, and spoken to by lines.

The fact that constrains it: what is measured in a guest is worth what its kind is worth. So each kind says itself
whether its times are times, and a kind that emulates never claims that they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from plimsoll.environment.guest.kernel import KIND, PRELOADED, TOOLS, GuestKernel
from plimsoll.environment.guest.machine import CONTAINED, DISK, Guest, GuestFolder


@dataclass(frozen=True)
class Bootable(ABC):
    """A kernel with what runs it."""

    kernel: GuestKernel

    @property
    @abstractmethod
    def kind(self) -> str:
        """For people and the fingerprint."""

    @property
    def accelerator(self) -> str | None:
        """Of QEMU: kvm or tcg; None of any other."""
        return None

    @property
    def cpus(self) -> int:
        return 1  # user-mode-linux is built for one

    @property
    def boot_seconds_max(self) -> float:
        """From its start to its first word."""
        return 120.0

    def prepare(self, place: GuestFolder) -> None:
        """What its folder needs beside what every guest's has: nothing."""
        del place

    @abstractmethod
    def boot(self, place: GuestFolder, memory_bytes: int, parameters: str) -> Guest:
        """Starts it."""


@dataclass(frozen=True)
class UserModeLinux(Bootable):
    """Debian's package of it."""

    @property
    def kind(self) -> str:
        return KIND

    def boot(self, place: GuestFolder, memory_bytes: int, parameters: str) -> Guest:
        env = {**TOOLS, "LD_PRELOAD": str(place.path / PRELOADED.name)}  # a list, whose paths have no blanks
        return Guest(place, lambda channel: self.command(place, memory_bytes, parameters, channel), env)

    def command(self, place: GuestFolder, memory_bytes: int, parameters: str, channel: int) -> list[str]:
        """What boots it. Of `parameters` none is one of ours (experiment/guest/table.py)."""
        argv = [str(self.kernel.program), f"mem={memory_bytes >> 20}M", f"ubda={DISK}"]
        # Read-only: what the guest does to files of the host, it does to none but those of the record.
        argv += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={place.path}/init"]
        argv += [f"uml_dir={place.path}/", "con=null", "con0=null,fd:1", f"con1=fd:{channel},fd:{channel}"]
        argv += parameters.split()
        return [*CONTAINED, *argv, "loglevel=4", "panic=-1", f"PLIMSOLL_GUEST={place.path}"]
