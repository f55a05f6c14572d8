"""One guest: its disk made, its kernel booted as a process, spoken to by lines, and ended, whatever becomes of us.

The constraint: SIGKILL of the front must leave no process of the guest. Those of user-mode-linux are traced by its
kernel, and one whose tracer is gone would go on as a process of the host. So a guest is the first process of a PID
namespace of its own: with that one all end, and it ends with us. For the moment before that is arranged the journal
knows the guest's folder, in which all of its processes are.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import plimsoll
from plimsoll.environment import processes
from plimsoll.environment.devices import existing
from plimsoll.environment.fault import Fault
from plimsoll.environment.folders import work_dir
from plimsoll.environment.guest.kernel import PRELOADED, TOOLS
from plimsoll.environment.journal.journal import Journal, handed_on, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.memory import page_cache
from plimsoll.environment.state import StateDir

DISK, CONSOLE = "disk", "console"
CONTAINED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL")
_PROGRAMS = ("linux.uml", "unshare", "setpriv", "qemu-system-x86_64", "virtiofsd")
_KILL_SECONDS = 10.0
_CONSOLE_MAX = 256 << 10
_PANIC, _NOT_PASSED_ON, _TAIL = "Kernel panic", "unshare: ", 200


@dataclass(frozen=True)
class GuestFolder:
    """The folder of a guest on the host: its disk, its console, and what it is told by."""

    path: Path

    @property
    def disk(self) -> Path:
        """The image."""
        return self.path / DISK

    def make(self, state: StateDir, journal: Journal, disk_bytes: int, record: Path) -> None:
        """Journalled, with a new ext4 in the image; `record`: the one folder of the host that the guest may write."""
        work_dir.make(state, journal, self.path, mode=0o755)
        journal.record("guest", folder=str(self.path))  # after it, and so ended before the folder goes
        # The kernel's command line knows no blank in a path, and a checkout's may have one.
        (self.path / "packages").symlink_to(Path(plimsoll.__file__).resolve().parents[1])
        (self.path / PRELOADED.name).symlink_to(PRELOADED)
        (self.path / "venv").symlink_to(sys.prefix)  # the folder: a python finds its environment by its own path
        (self.path / "python").write_text(f"{self.path}/venv/bin/{Path(sys.executable).name}\n")
        (self.path / "record").write_text(f"{record}\n")
        init = self.path / "init"
        init.write_bytes(Path(__file__).with_name("init").read_bytes())
        init.chmod(0o755)
        self.disk.touch(mode=0o600)
        os.truncate(self.disk, disk_bytes)
        argv = ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", str(self.disk)]
        done = subprocess.run(argv, capture_output=True, text=True, env=TOOLS, check=False)
        if done.returncode != 0:
            raise Fault(
                f"{self.disk}: mkfs.ext4 failed: {done.stderr.strip()}", remedy="free some disk space, then try again"
            )
        step("made guest's disk")

    def console(self) -> str:
        """The end of what the guest's kernel and its programs have printed."""
        try:
            data = (self.path / CONSOLE).read_bytes()
        except OSError:
            return ""
        return data[-_CONSOLE_MAX:].decode(errors="replace")


class Guest:
    """A guest that was booted. Lines go both ways by a console of its own, which carries nothing else."""

    def __init__(self, place: GuestFolder, command: Callable[[int], Sequence[str]], env: Mapping[str, str]) -> None:
        """`command`: what boots it, told the descriptor that the lines go over."""
        ours, theirs = socket.socketpair()
        self._socket, self._heard, self._lines = ours, b"", list[str]()
        try:
            # With the journals' lock, since undo could look before the guest is in its folder: so it waits for that.
            with (place.path / CONSOLE).open("wb") as console, handed_on() as journals:
                self.process = subprocess.Popen(
                    command(theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    env=env,
                    cwd=place.path,
                    start_new_session=True,  # a Ctrl-C at our terminal reaches the front alone
                    pass_fds=[theirs.fileno(), *journals],
                )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)

    def said(self, seconds: float) -> str | None:
        """The next line; empty where there is none yet. None once the guest has gone and all was heard."""
        if not self._lines and not self._read(seconds):
            return None
        return self._lines.pop(0) if self._lines else ""

    def _read(self, seconds: float) -> bool:
        """Waits for something to be said; false at the end."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return True
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return True
        except ConnectionError:
            data = b""
        *whole, self._heard = (self._heard + data).split(b"\n")
        self._lines += [line.decode(errors="replace") for line in whole if line]
        return bool(data) or bool(self._lines)

    def tell(self, line: str) -> None:
        """A line to the guest; one that has gone hears nothing."""
        with suppress(OSError):
            self._socket.sendall(f"{line}\n".encode())

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None where it has not ended by then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> int:
        """Ends it at once, and everything in it; its exit code."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self._socket.close()
        return code


def how_it_ended(code: int, console: str) -> str:
    """In words, of a guest that has not said itself how."""
    if panic := next((line.strip() for line in console.splitlines() if _PANIC in line), None):
        return f"ended by itself: {panic}"
    # unshare passes on what its child ended by, but cannot set SIGKILL to its default first, and says so.
    if code == 1 and _NOT_PASSED_ON in console[-_TAIL:]:
        return f"was ended by {signal.SIGKILL.name}"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def processes_of(folder: Path) -> list[int]:
    """Every process of the guest of this folder."""
    real = os.path.realpath(folder)
    return [pid for pid in processes.all_pids() if _is_ours(pid, real)]


def _is_ours(pid: int, real: str) -> bool:
    if processes.link(pid, "cwd") != real or processes.start_ticks(pid) is None:
        return False
    return Path(processes.link(pid, "exe") or "").name in _PROGRAMS


@puts_back("guest", survives_reboot=False)
def _put_back(args: Args) -> str:
    folder = Path(args["folder"])
    real, seen = os.path.realpath(folder), set[int]()

    def remaining() -> list[int]:
        left = processes_of(folder)
        for pid in left:
            processes.signal_if(pid, signal.SIGKILL, lambda number: _is_ours(number, real))
        seen.update(left)
        return left

    if left := processes.wait_until_gone(remaining, _KILL_SECONDS):
        raise Fault(
            f"{folder}: processes {left} of a guest kernel did not end after SIGKILL",
            remedy="they are in uninterruptible sleep, probably on I/O; run `plimsoll undo` again later",
        )
    return f"guest kernel of {folder} {'ended' if seen else 'was not running'}"


def free_for(folder: Path, memory: Path) -> tuple[int, int]:
    """What is free for a guest's disk and for its memory."""
    return page_cache.free_bytes(existing(folder)), page_cache.free_bytes(memory) if memory.is_dir() else 0
