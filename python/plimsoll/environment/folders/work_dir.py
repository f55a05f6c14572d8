"""A work folder that goes away: recorded before it is made, removed with everything in it.

The constraint: a removal that follows a wrong path destroys data. Only a folder strictly inside the state folder's
`work` or `datasets` is ever removed, and no symbolic link is followed.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.state import StateDir

_TRIES = 6


def make(state: StateDir, journal: Journal, path: Path, *, uid: int = -1, gid: int = -1, mode: int = 0o700) -> Entry:
    """Make a new folder (its parent must exist). PostgreSQL wants its own to be 0700 and owned by its user."""
    _check(state.root, path)
    if path.exists():
        raise Fault(f"{path}: exists already", remedy="run `plimsoll undo`, or remove it if you know what it is")

    def act() -> None:
        path.mkdir(mode=0o700)
        os.chown(path, uid, gid)
        path.chmod(mode)

    return journal.change("work_dir", act, path=str(path), root=str(state.root))


def claim(state: StateDir, journal: Journal, path: Path) -> Entry:
    """Record a folder that someone else (initdb, clone_tree) will make, so that it is removed in any case."""
    _check(state.root, path)
    return journal.record("work_dir", path=str(path), root=str(state.root))


def _check(root: Path, path: Path) -> None:
    allowed = [root / "work", root / "datasets"]
    if ".." in path.parts or not any(folder in path.parents for folder in allowed):
        raise Fault(f"{path}: not inside {allowed[0]} or {allowed[1]}", remedy="work folders belong there")


def _remove_tree(path: Path) -> None:
    """A process that is just ending may still make or remove a file in it."""
    for attempt in range(_TRIES):
        try:
            return shutil.rmtree(path)
        except FileNotFoundError:
            if not path.exists():
                return None
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt == _TRIES - 1:
                raise
        time.sleep(0.05 * 2**attempt)
    raise Fault(f"{path}: something keeps changing it", remedy=f"`fuser -v {path}` names it; then run `plimsoll undo`")


@puts_back("work_dir", survives_reboot=True)
def _put_back(args: Args) -> str:
    path = Path(args["path"])
    _check(Path(args["root"]), path)
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        _remove_tree(path)
    return f"{path} removed"
