"""Who beside us could change what a folder's path leads to.

The constraint: files are made, attached and removed by path, some hours apart, as root. Whoever owns a folder on the
way, or may write to one, can put a symbolic link or another folder in the place of the next. So nothing is laid into a
folder that somebody else has in his hands; `/tmp` and the like (sticky) hold what root makes as safely as any.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.state import name_of

REMEDY = "name a folder that belongs to {me}, in folders of root's or {me}'s that nobody else may write to"


def others_may_change(folder: Path) -> str | None:
    """Why, in words; None where nobody but root and we may. `folder` has to be there."""
    return next(_reasons(folder.resolve()), None)


def refuse_others(folder: Path, what: str) -> None:
    """Raises Fault where others may change what lies in the folder."""
    if why := others_may_change(folder):
        raise Fault(f"{what}: {why}, who could put other files in the place of ours", remedy=remedy())


def remedy() -> str:
    """What to do about it."""
    return REMEDY.format(me=name_of(os.geteuid()))


def _reasons(folder: Path) -> Iterator[str]:
    for each in (folder, *folder.parents):
        status = each.stat()
        if status.st_uid not in (0, os.geteuid()):
            yield f"{each} belongs to {name_of(status.st_uid)}"
        if status.st_mode & stat.S_ISVTX:
            continue
        if status.st_mode & stat.S_IWOTH:
            yield f"{each} may be written by everybody (mode {stat.S_IMODE(status.st_mode):04o})"
        if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid()):
            yield f"{each} may be written by the group {status.st_gid} (mode {stat.S_IMODE(status.st_mode):04o})"
