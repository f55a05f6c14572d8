"""Folders as the command line takes and shows them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NoReturn

from plimsoll.environment.devices import existing


def folder_for(name: str, out: Path | None) -> Path:
    """Where the record goes; a folder that holds something is refused."""
    if out is None:
        return Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return checked(out)


def checked(out: Path) -> Path:
    """Where a record is to go; a folder that holds something is refused."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        _refuse(out, "exists already and is not an empty folder", "a new or empty folder")
    above = existing(out)
    if not above.is_dir() or not os.access(above, os.W_OK):
        _refuse(out, f"{above} is not writable", "a folder you may write to")
    return out


def _refuse(out: Path, what: str, allowed: str) -> NoReturn:
    from plimsoll.experiment import ExperimentError, Problem  # dear to load, and seldom needed

    raise ExperimentError([Problem(f"--out {out}", "--out", what, allowed)])


def shown(path: Path) -> str:
    """A path as the user would type it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
