"""The machine that a run is on, as far as it is reached for processes, files of the kernel, CPUs and memory.

The fact that constrains it: a guest kernel or a remote machine has processes, a /proc and control groups of its own.
Whatever is asked of "the machine" in a trial is asked of a `Host`, so that another one can answer. What is made so that
it can be put back (groups, sysctls, swap) is the business of environment's knobs, which are this machine's.
"""

from __future__ import annotations

import os
import pwd
import resource
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.devices import Device, devices_of

SERVER_USER = "plimsoll"


class Host(ABC):
    """A machine that trials run on."""

    @abstractmethod
    def read(self, path: str) -> str:
        """The text of a file of its kernel, such as /proc/vmstat. Raises OSError."""

    @abstractmethod
    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program as we are, in a session of its own; `options` as subprocess.Popen has them."""

    @abstractmethod
    def start_as(self, argv: list[str], *, user: str, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program as `user`; dropping the rights needs root, being that user does not."""

    @abstractmethod
    def start_led(self, argv: list[str], cpus: set[int] | None) -> subprocess.Popen[str]:
        """Starts a program that is told what to do: pipes to all its ends, as many open files as it may have.

        `cpus`: those that it may run on; None: all. A Ctrl-C at our terminal does not reach it.
        """

    @abstractmethod
    def account(self, user: str) -> tuple[int, int]:
        """User and group number of a user."""

    @abstractmethod
    def has_user(self, user: str) -> bool:
        """Whether there is such a user."""

    @abstractmethod
    def server_user(self) -> str:
        """Who owns private servers."""

    @abstractmethod
    def cpus(self) -> list[int]:
        """Those that may be used."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """All of its memory."""

    @abstractmethod
    def available_bytes(self) -> int:
        """What of its memory can be had without swapping."""

    @abstractmethod
    def devices(self, *paths: Path) -> list[str]:
        """The devices that serve any of `paths`, by their names in /proc/diskstats."""

    def device_counters(self, names: list[str]) -> dict[str, list[int]]:
        """The columns of /proc/diskstats of these devices, in the kernel's order."""
        rows = (line.split() for line in self.read("/proc/diskstats").splitlines())
        return {row[2]: [int(value) for value in row[3:]] for row in rows if row[2] in names}

    def cpu_ns(self, pid: int) -> int | None:
        """What a process has used of a CPU so far, to the kernel's tick; None where it is gone."""
        try:
            fields = self.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def reclaimed_bytes(self) -> int:
        """File pages the kernel's reclaim has taken since boot, whole host."""
        for line in self.read("/proc/vmstat").splitlines():
            if line.startswith("pgsteal_file "):
                return int(line.split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0


class ThisMachine(Host):
    """The one that Plimsoll itself runs on."""

    def read(self, path: str) -> str:
        return Path(path).read_text()

    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, start_new_session=True, cwd="/", **options)

    def start_as(self, argv: list[str], *, user: str, **options: Any) -> subprocess.Popen[bytes]:
        account = pwd.getpwnam(user)
        if account.pw_uid != os.geteuid():
            options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            argv,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "HOME": account.pw_dir, "USER": user},
            **options,
        )

    def start_led(self, argv: list[str], cpus: set[int] | None) -> subprocess.Popen[str]:
        def place() -> None:
            # A Ctrl-C at the terminal reaches the front only; the front then tells the program to stop.
            os.setpgid(0, 0)
            # A descriptor a connection: as many as we may have, not as many as shells are given.
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            if cpus:
                os.sched_setaffinity(0, cpus)

        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=place
        )

    def account(self, user: str) -> tuple[int, int]:
        entry = pwd.getpwnam(user)
        return entry.pw_uid, entry.pw_gid

    def has_user(self, user: str) -> bool:
        return user in {account.pw_name for account in pwd.getpwall()}

    def server_user(self) -> str:
        """The dedicated user, or the caller when that is not root."""
        if os.geteuid() == 0:
            return SERVER_USER
        return pwd.getpwuid(os.geteuid()).pw_name

    def cpus(self) -> list[int]:
        return cpu_lists.usable()

    def memory_bytes(self) -> int:
        """MemTotal."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def available_bytes(self) -> int:
        """MemAvailable."""
        for line in self.read("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return self.memory_bytes()

    def devices(self, *paths: Path) -> list[str]:
        listed = {line.split()[2] for line in self.read("/proc/diskstats").splitlines()}

        def topmost(devices: Iterable[Device]) -> Iterator[str]:
            for device in devices:
                if device.name in listed:
                    yield device.name
                else:  # btrfs has one that stands for its disks, of which the kernel counts no requests
                    yield from topmost(device.under)

        return list(dict.fromkeys(name for path in paths for name in topmost(devices_of(path))))


HERE: Host = ThisMachine()
