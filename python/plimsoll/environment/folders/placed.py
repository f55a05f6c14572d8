"""A folder of ours at a place that the user names, such as another disk: made for one trial and removed after it.

The constraint: a removal that follows a wrong path destroys data. Only a folder that lies directly in the named place
and whose name begins with `plimsoll-` is ever made or removed, and no symbolic link is followed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.folders.others import refuse_others
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.network_mounts import answers, network_mount_of

PREFIX = "plimsoll-"


def folder_of(place: Path, name: str) -> Path:
    """Where the folder `name` lies in a place."""
    return place / f"{PREFIX}{name}"


def make(folder: Path, *, uid: int = -1, gid: int = -1, mode: int = 0o700, journal: Journal | None) -> None:
    """Makes the folder, with this mode and owner. With a journal it is new and goes away when that is put back; without
    one it may be there already and stays until `remove`. Raises Fault where others could put something in its place."""
    _check(folder)
    refuse_others(folder.parent, str(folder))
    if journal is not None:
        if folder.exists():
            raise Fault(f"{folder}: exists already", remedy="run `plimsoll undo`, or remove it if you know what it is")
        journal.record("placed_dir", path=str(folder))
    folder.mkdir(mode=0o700, exist_ok=journal is None)
    # What is there already may have been put there by somebody else.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(handle, uid, gid)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def remove(folder: Path) -> bool:
    """Removes the folder with everything in it; False if there was none."""
    _check(folder)
    if folder.is_symlink() or not folder.is_dir():
        return False
    shutil.rmtree(folder)
    return True


def _check(folder: Path) -> None:
    if not folder.is_absolute() or ".." in folder.parts or not folder.name.startswith(PREFIX):
        raise Fault(f"{folder}: not a folder named {PREFIX}...", remedy="name its place by an absolute path")


@puts_back("placed_dir", survives_reboot=True)
def _put_back(args: Args) -> str:
    folder = Path(args["path"])
    mount = network_mount_of(folder)
    if mount is not None and not answers(Path(mount.point)):
        what = f"{folder}: its server ({mount.source}) does not answer, and what the run has made there is left"
        raise ChangedSince(what, f"when it answers again, remove {folder.name} there yourself")
    return f"{folder} removed" if remove(folder) else f"{folder} was not there"
