"""`report RUN --promised RAW` on the command line: what it writes into the run's record, and what it refuses."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import records
from plimsoll.experiment import ExperimentError
from plimsoll.record import open_run

_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "files_world.py"))
PHASES = ("putc", "rewrite", "write", "getc", "read", "seeks")
STORAGE = {"path": "storage", "paths": ["environment.places.disk.raid.level"], "label": "storage"}


def of_storages(
    folder: Path, *, labels: tuple[str, str] = ("one disk", "stripe"), workload: str = "raw_storage"
) -> Path:
    """A record whose two treatments are storages; the second takes twice as long for everything."""
    out: Path = _WORLD["make"](folder, {"name": workload}, PHASES)
    plan = json.loads((out / "plan.json").read_text())
    plan["factors"] = [STORAGE | {"levels": [{"label": label, "value": label} for label in labels]}]
    for one, label in zip(plan["treatments"].values(), labels, strict=True):
        one["levels"] = {"storage": label}
    (out / "plan.json").write_text(json.dumps(plan))
    return out


def said(run: Path, other: Path) -> str:
    with pytest.raises(ExperimentError) as refused:
        records._keep_promised(open_run(run), open_run(other))
    assert not (run / "promised.json").exists()
    return str(refused.value)


def test_it_is_kept_in_the_record(tmp_path: Path) -> None:
    run, other = of_storages(tmp_path / "run"), of_storages(tmp_path / "raw")
    records._keep_promised(open_run(run), open_run(other))
    found: Any = open_run(run).promised
    assert [one["storage"] for one in found["storages"]] == ["storage: one disk", "storage: stripe"]
    ratio = found["storages"][1]["phases"]["write"]["ratio"]
    assert found["run"] == "raw" and 0.45 < ratio["low"] <= ratio["value"] <= ratio["high"] < 0.55
    assert open_run(other).promised is None, "the other record stays as it is"


def test_what_is_refused(tmp_path: Path) -> None:
    run = of_storages(tmp_path / "run")
    memory = _WORLD["make"](tmp_path / "memory", {"name": "raw_storage"}, PHASES)
    assert "it compared no storages by raw_storage; allowed: a run that did" in said(run, memory)
    assert "it compared no storages" in said(run, of_storages(tmp_path / "other", workload="sequential_io"))
    labels = of_storages(tmp_path / "labels", labels=("one disk", "8 KiB"))
    assert "fewer than two storages in common; allowed: a run whose levels have the same labels" in said(run, labels)
