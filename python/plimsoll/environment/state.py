"""The state folder: what Plimsoll keeps on a machine between runs (data sets, work folders, journals, A/A results).

The constraint: the database server runs as a dedicated user, never as root, and must be able to walk down into it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from . import processes
from .fault import Fault


def default_root() -> Path:
    named = os.environ.get("PLIMSOLL_STATE")
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/plimsoll")
    return Path.home() / ".local/state/plimsoll"


class StateDir:
    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root).absolute() if root is not None else default_root()
        self.datasets = self.root / "datasets"
        self.work = self.root / "work"
        self.journal = self.root / "journal"
        self.a_a = self.root / "a-a"

    def prepare(self) -> StateDir:
        """Make the folder and its sub-folders. Everything but the way down to it is ours, so modes are set."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for folder in (self.root, self.datasets, self.work, self.journal, self.a_a):
                folder.mkdir(exist_ok=True)
                if stat.S_IMODE(folder.stat().st_mode) != 0o755:
                    folder.chmod(0o755)
        except OSError as error:
            raise Fault(
                f"state folder {self.root}: {error.strerror} ({error.filename})",
                remedy="set PLIMSOLL_STATE to a folder you may write, or run as root",
            ) from error
        return self

    def check_traversable(self, user: str | None = None, what: str = "state folder") -> None:
        """Raise unless `user` (any user, if None) can reach the folder: each folder on the way needs its x bit."""
        account = None
        if user is not None:
            try:
                account = pwd.getpwnam(user)
            except KeyError:
                raise Fault(f"user {user}: there is none of that name", remedy="run `./plimsoll setup`") from None
        groups = set(os.getgrouplist(user, account.pw_gid)) if account and user else set()
        for folder in [*reversed(self.root.parents), self.root]:
            found = folder.stat()
            if account and account.pw_uid == 0:
                continue
            if account and found.st_uid == account.pw_uid:
                allowed = found.st_mode & stat.S_IXUSR
            elif found.st_gid in groups:
                allowed = found.st_mode & stat.S_IXGRP
            else:
                allowed = found.st_mode & stat.S_IXOTH
            if not allowed:
                raise Fault(
                    f"{what} {self.root}: the server's user {user or '(not root)'} may not pass {folder} "
                    f"(mode {stat.S_IMODE(found.st_mode):04o})",
                    remedy=f"`chmod o+x {folder}`, or set PLIMSOLL_STATE to a folder under /var/lib",
                )

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Only one run or data-set build at a time. The kernel drops the lock when the holder dies, however it dies."""
        self.prepare()
        path = self.root / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 100).decode(errors="replace").strip() or "unknown"
                known = holder.isdigit() and processes.start_ticks(int(holder)) is not None
                raise Fault(
                    f"{path}: another run or data-set build is at work (process {holder})",
                    remedy=f"wait for it, or end it with `kill -INT {holder}` and call again"
                    if known
                    else f"find the holder with `fuser {path}`, end it and call again",
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
            # The file stays: unlinking a lock file lets two holders lock two different files.
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
