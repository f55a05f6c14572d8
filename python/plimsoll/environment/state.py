"""The state folder: what Plimsoll keeps on a machine between runs (data sets, work folders, journals, A/A results).

The constraint: the database server runs as a dedicated user, never as root, and must be able to walk down into it. What
stands in the journals is carried out by `undo`, so they and their lock are closed to everybody else, and a folder that
somebody else owns is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment import processes
from plimsoll.environment.fault import Fault

OF_ROOT = Path("/var/lib/plimsoll")


def default_root() -> Path:
    named = os.environ.get("PLIMSOLL_STATE")
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return OF_ROOT
    return Path.home() / ".local/state/plimsoll"


def check_owner(path: Path, status: os.stat_result) -> None:
    """Refuses what the calling user does not own: what stands in it, another user may have written."""
    mine = os.geteuid()
    if status.st_uid == mine:
        return
    raise Fault(
        f"{path}: belongs to {name_of(status.st_uid)}, and Plimsoll runs as {name_of(mine)}",
        remedy=f"run it as {name_of(status.st_uid)}, or set PLIMSOLL_STATE to a folder of {name_of(mine)}",
    )


def name_of(uid: int) -> str:
    """A user's name, or that he has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _make(folder: Path, mode: int) -> None:
    """A new folder with that mode whatever the umask; none where one is there already, whose mode is its owner's."""
    if folder.is_dir():
        return
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    beside.mkdir(mode=0o700)
    beside.chmod(mode)
    try:
        beside.rename(folder)  # in place of an empty folder that somebody has made meanwhile, and of nothing else
    except OSError:
        beside.rmdir()
        if not folder.is_dir():
            raise


class StateDir:
    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root).absolute() if root is not None else default_root()
        self.datasets = self.root / "datasets"
        self.work = self.root / "work"
        self.journal = self.root / "journal"
        self.a_a = self.root / "a-a"

    def prepare(self) -> StateDir:
        """Make the folder and its sub-folders. What was there before keeps its mode, but for the journals.

        Raises Fault where one of them cannot be made, belongs to somebody else, or holds what is not Plimsoll's.
        """
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.root, self.datasets, self.work, self.journal, self.a_a):
                mode = 0o700 if folder == self.journal else 0o755
                _make(folder, mode)
                self.check_owned(folder)
            self._close_journals()
        except OSError as error:
            raise Fault(
                f"state folder {self.root}: {error.strerror} ({error.filename})",
                remedy="set PLIMSOLL_STATE to a folder you may write to, or run as root",
            ) from error
        return self

    def _close_journals(self) -> None:
        """Earlier versions left them open to others."""
        if stat.S_IMODE(self.journal.stat().st_mode) == 0o700:
            return
        strange = sorted(path.name for path in self.journal.iterdir() if ".jsonl" not in path.name)
        if strange or not (self.root / "lock").exists():
            found = f": it holds {strange[0]}" if strange else ""
            raise Fault(
                f"{self.journal}: was there before, and is not Plimsoll's{found}",
                remedy="set PLIMSOLL_STATE to a folder that is empty, or does not exist yet",
            )
        self.journal.chmod(0o700)

    def check_owned(self, folder: Path) -> None:
        """Raises Fault where the folder, or a symbolic link in its place, is not the calling user's."""
        if folder != self.root:
            check_owner(folder, folder.lstat())
        check_owner(folder, folder.stat())

    def check_traversable(self, user: str | None = None, what: str = "state folder") -> None:
        """Raise unless `user` (any user, if None) can reach the folder: each folder on the way needs its x bit."""
        account = None
        if user is not None:
            try:
                account = pwd.getpwnam(user)
            except KeyError:
                raise Fault(f"user {user}: no such user", remedy="run `./plimsoll setup`") from None
        groups = set(os.getgrouplist(user, account.pw_gid)) if account and user else set()
        for folder in [*reversed(self.root.parents), self.root]:
            status = folder.stat()
            if account and account.pw_uid == 0:
                continue
            if account and status.st_uid == account.pw_uid:
                allowed = status.st_mode & stat.S_IXUSR
            elif status.st_gid in groups:
                allowed = status.st_mode & stat.S_IXGRP
            else:
                allowed = status.st_mode & stat.S_IXOTH
            if not allowed:
                raise Fault(
                    f"{what} {self.root}: the server's user {user or '(not root)'} has no search permission on "
                    f"{folder} (mode {stat.S_IMODE(status.st_mode):04o})",
                    remedy=f"`chmod o+x {folder}`, or set PLIMSOLL_STATE to a folder under /var/lib",
                )

    @contextlib.contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Only one run or data-set build at a time. The kernel drops the lock when the holder dies, however it dies."""
        self.prepare()
        path = self.root / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            check_owner(path, os.fstat(descriptor))
            os.fchmod(descriptor, 0o600)  # whoever may open it may hold it
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 100).decode(errors="replace").strip() or "unknown"
                known = holder.isdigit() and processes.start_ticks(int(holder)) is not None
                raise Fault(
                    f"{path}: another run or data-set build is running (process {holder})",
                    remedy=f"wait for it, or end it with `kill -INT {holder}` and try again"
                    if known
                    else f"find the holder with `fuser {path}`, end it and try again",
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            try:
                yield
            finally:
                # The file stays: unlinking a lock file lets two holders lock two different files.
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    def is_unfinished(self) -> bool:
        """Whether a run is at work here, or was killed and nothing has put back what it left. Anybody may ask."""
        try:
            return (self.root / "lock").stat().st_size > 0
        except OSError:
            return False

    def note_put_back(self) -> None:
        """Nothing is left of a killed run: its number in the lock goes, unless another has it now."""
        try:
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)
