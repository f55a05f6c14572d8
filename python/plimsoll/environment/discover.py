"""Which PostgreSQL servers are installed: binaries only; running clusters are never looked at, let alone touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/postgresql*/bin")


@dataclass(frozen=True)
class PostgresInstall:
    version: str  # as experiments name it: "15"
    full_version: str  # "15.14 (Debian 15.14-0+deb12u1)"
    bin_dir: Path

    def as_json(self) -> dict[str, str]:
        return {"version": self.version, "full_version": self.full_version, "bin_dir": str(self.bin_dir)}


def servers(places: Iterable[str] = _PLACES) -> list[PostgresInstall]:
    """Oldest first. A version found twice is listed once, from the first place that has it."""
    folders: list[Path] = []
    for pattern in places:
        folders += sorted(Path("/").glob(pattern.lstrip("/")))
    on_path = shutil.which("postgres")
    if on_path is not None:
        folders.append(Path(os.path.realpath(on_path)).parent)
    installs: dict[str, PostgresInstall] = {}
    for folder in folders:
        install = _look(folder.resolve())
        if install is not None:
            installs.setdefault(install.full_version, install)
    return sorted(
        installs.values(), key=lambda install: [int(part) for part in re.findall(r"\d+", install.full_version)[:2]]
    )


def _look(folder: Path) -> PostgresInstall | None:
    if not all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb")):
        return None
    try:
        done = subprocess.run(
            [str(folder / "postgres"), "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\(PostgreSQL\) +((\d+)\S*.*)", done.stdout)
    return PostgresInstall(match[2], match[1].strip(), folder) if match else None


def client() -> str | None:
    """psql's version line, None where there is no psql."""
    program = shutil.which("psql")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
