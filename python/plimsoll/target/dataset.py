"""Data sets: built once for each (workload, size or scale, seed, set-up file, server version), kept, cloned a trial.

A kept data set is a stopped cluster. It is renamed into place when it is whole and synced, so a folder under datasets/
is either complete or not there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1

# While loading nothing has to survive a crash: a data set that was not finished is thrown away.
BUILD_SETTINGS: dict[str, bool | int | float | str] = {
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "fsync": False,
    "full_page_writes": False,
    "synchronous_commit": False,
    "autovacuum": False,
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_parallel_maintenance_workers": 2,
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
}


@dataclass(frozen=True)
class Dataset:
    """One kept data set. `bytes` is what the workload's tables with their indexes take."""

    key: str
    path: Path
    workload: str
    size_bytes: int
    seed: int
    server: str
    bytes: int
    rows: dict[str, int]
    build_seconds: float
    built_epoch_ns: int

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.path / "data"


def key_of(
    data: dict[str, Any] | None,
    description: dict[str, Any] | None,
    setup: str | None,
    server_version: str,
    server: str = "pg",
) -> str:
    """The fingerprint of a data set: what it is made from, and the tables it is made into.

    `data`: what decides the rows, as the workload that fills it says, if one does; `description`: that workload as the
    agent knows it; `setup`: SQL run after it;
    `server`: what goes before the version in its name ("pg", "duckdb").
    """
    parts: dict[str, Any] = {"format": FORMAT, "server": server_version}
    if server != "pg":
        parts["kind"] = server
    name = "script"
    if data is not None and description is not None:
        name = "-".join(filter(None, (data["name"], _extent(data))))
        parts |= {
            "workload": data,
            "tables": description["tables"],
            "ddl": description["ddl"],
            "data_version": description.get("data_version"),
        }
    if setup is not None:
        parts["setup"] = setup
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
    return f"{name}-{server}{server_version}-{digest}"


def _extent(data: dict[str, Any]) -> str:
    """How large a workload's data are, in its own terms; empty where it has no such number."""
    if "size_bytes" in data:
        return f"{data['size_bytes'] >> 20}MiB"
    if "scale_factor" in data:
        return f"sf{data['scale_factor']:g}"
    return str(next((data[name] for name in ("scale", "warehouses", "directories") if name in data), ""))


def kept(folder: Path) -> list[Dataset]:
    """Every complete data set below `folder`."""
    datasets = []
    for path in sorted(folder.glob("*/dataset.json")):
        try:
            stored = json.loads(path.read_text())
            datasets.append(Dataset(**{**stored, "path": path.parent}))
        except (OSError, ValueError, TypeError):
            continue  # not ours to judge: `cache` lists and removes folders, not only readable ones
    return datasets


def find(folder: Path, key: str) -> Dataset | None:
    """The data set of this fingerprint, when it is kept."""
    return next((dataset for dataset in kept(folder) if dataset.key == key), None)


def keep(folder: Path, built: Path, dataset: Dataset) -> Dataset:
    """Moves a finished cluster into the cache; complete or not at all."""
    stored = {**asdict(dataset), "path": ""}
    (built / "dataset.json").write_text(json.dumps(stored, indent=1) + "\n")
    place = folder / dataset.key
    if place.exists():
        shutil.rmtree(place)
    built.rename(place)
    return Dataset(**{**asdict(dataset), "path": place})


def describe_new(
    key: str,
    data: dict[str, Any] | None,
    size_bytes: int,
    server: str,
    result: dict[str, Any],
    build_seconds: float,
) -> Dataset:
    """The description of a data set just built; `result`: the agent's, empty where only SQL filled it."""
    return Dataset(
        key=key,
        path=Path(),
        workload=data["name"] if data else "script",
        size_bytes=size_bytes,
        seed=int((data or {}).get("seed", 0)),
        server=server,
        bytes=int(result.get("bytes", 0)),
        rows=dict(result.get("tables", {})),
        build_seconds=build_seconds,
        built_epoch_ns=time.time_ns(),
    )
