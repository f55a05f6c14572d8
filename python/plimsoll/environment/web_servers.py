"""Which web servers are installed: programs only; running ones and their configuration are never looked at.

Set-up puts nginx's program into a folder of Plimsoll's own: Debian's package of it would start a service.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

UNPACKED: Final = Path(__file__).resolve().parents[3] / ".plimsoll/unpacked"
_SYSTEM: Final = ("/usr/sbin", "/usr/local/sbin", "/sbin")
_VERSION: Final = re.compile(r"(?:nginx|Apache)/(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class WebInstall:
    """A web server's program; `modules`: where those lie that it loads, of one that has them."""

    version: str
    program: Path
    modules: Path | None = None


@functools.cache
def nginx() -> WebInstall | None:
    """The first that is found: of the system, or of Plimsoll's own folder."""
    return _first(("nginx",), (), ("-v",))


@functools.cache
def apache() -> WebInstall | None:
    """The first that is found, with its modules."""
    return _first(("apache2", "httpd"), ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"), ("-v",))


def _first(names: Sequence[str], modules: Sequence[str], asks: Sequence[str]) -> WebInstall | None:
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM, str(UNPACKED / "usr/sbin")))
    for name in names:
        program = shutil.which(name, path=folders)
        if program is None or (version := _version(program, asks)) is None:
            continue
        there = next((Path(folder) for folder in modules if Path(folder).is_dir()), None)
        if there is not None or not modules:
            return WebInstall(version, Path(program).resolve(), there)
    return None


def _version(program: str, asks: Sequence[str]) -> str | None:
    try:
        done = subprocess.run([program, *asks], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout + done.stderr)  # nginx tells it on standard error
    return found[1] if found else None
