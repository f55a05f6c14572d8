"""What a cluster's folder has of folders, without a server."""

from __future__ import annotations

from pathlib import Path


def make_cluster(folder: Path) -> Path:
    for name in ("base/5", "global", "pg_wal"):
        (folder / name).mkdir(parents=True)
    (folder / "PG_VERSION").write_text("15\n")
    return folder
