"""A folder of ours beside a server of another user's: its log, its configuration, the folder of its socket.

The constraint: whoever may run SQL in a server may run programs as its user (`COPY ... TO PROGRAM`), and those can put
symbolic links wherever that user may write. So what root writes or reads for a server lies in a folder that only root
may write, every file is opened beside a handle of that folder, and no symbolic link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plimsoll.environment.fault import Fault

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in a file's place is refused and not waited for


class OwnFolder:
    """The folder `path`, which is there already. Every call raises Fault where it, or the file, is somebody else's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _handle(self) -> Iterator[int]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise Fault(f"{self.path}: {error.strerror}", remedy="run `plimsoll undo`, then try again") from error
        try:
            status = os.fstat(handle)
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise Fault(
                    f"{self.path}: users other than {os.geteuid()} may write to it "
                    f"(owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o})",
                    remedy="the folder of a server's log and configuration has to be its owner's alone: mode 0700",
                )
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _file(self, name: str, flags: int) -> Iterator[BinaryIO]:
        with self._handle() as handle:
            try:
                opened = os.open(name, flags | _FLAGS, 0o600, dir_fd=handle)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise _odd(self.path / name, error.strerror or str(error)) from error
        with os.fdopen(opened, "rb" if flags == os.O_RDONLY else "wb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise _odd(self.path / name, "it is not a file that Plimsoll made")
            yield file

    def write(self, name: str, text: str, group: int) -> None:
        """The file `name` with this text, which its `group` may read as well."""
        with self._file(name, os.O_WRONLY | os.O_CREAT) as file:
            os.fchown(file.fileno(), -1, group)
            os.fchmod(file.fileno(), 0o640)
            file.truncate(0)
            file.write(text.encode())

    @contextmanager
    def append(self, name: str) -> Iterator[BinaryIO]:
        """The file `name`, closed to others, open at its end: its handle may be given to a program of another user."""
        with self._file(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            yield file

    def tail(self, name: str, size_max: int) -> str:
        """The last `size_max` bytes of a file; empty where there is none, or no folder."""
        if not self.path.is_dir():
            return ""
        try:
            with self._file(name, os.O_RDONLY) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - size_max))
                return file.read(size_max).decode(errors="replace").strip()
        except FileNotFoundError:
            return ""

    def make_folder(self, name: str, uid: int, gid: int) -> None:
        """The folder `name` in it, of the server's user alone; it may be there already."""
        with self._handle() as handle:
            try:
                os.mkdir(name, 0o700, dir_fd=handle)
            except FileExistsError:
                if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    raise _odd(self.path / name, "it is not a folder") from None
            os.chown(name, uid, gid, dir_fd=handle, follow_symlinks=False)


def read_theirs(folder: Path, name: str, uid: int, size_max: int = 1 << 20) -> str:
    """A file in a folder of the server's user, who must own it: no link, no second name of somebody else's file.

    Raises Fault; what it holds is the server's word and no more.
    """
    path = folder / name
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            opened = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _odd(path, error.strerror or str(error)) from error
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != uid or status.st_nlink != 1:
            raise _odd(path, f"it is not a file of the server's user ({uid}) alone")
        return file.read(size_max).decode(errors="replace")


def _odd(path: Path, why: str) -> Fault:
    remedy = "find out what created it (a program that an SQL script started?), and remove it"
    return Fault(f"{path}: refused: {why}", remedy=remedy)
