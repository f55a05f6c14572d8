"""The shipped experiments on NFS, at a size for a guest that is emulated: each ends, with its tables on the page.

Counts are a kernel's anywhere; how fast the cells are says nothing here, and nothing is asked of it.
"""

import json
from typing import Any

import pytest
from test_run_on_a_guest import Laboratory, ended, laboratory

from plimsoll.record import open_run
from plimsoll.report.page import write_report

pytestmark = pytest.mark.long
__all__ = ["laboratory"]  # the fixture
SECONDS_MAX = 1800
RESERVED = [f'environment.places.{name}.image_blocks="reserved"' for name in ("first", "second", "served")]


def performed(laboratory: Laboratory, name: str, *sets: str) -> dict[str, Any]:
    """The verdict of an experiment in a guest, one block of it; every trial has ended well."""
    words = [word for one in ('environment.kernel="guest"', "design.duplicate=false", *sets) for word in ("--set", one)]
    front = laboratory.call("run", name, "--quick", "--blocks", "1", "--no-page", "--out", "out", *words)
    code, said = ended(front, SECONDS_MAX)
    assert code == 0, said
    assert laboratory.is_clean()
    for trial in open_run(laboratory.out).trials:
        assert trial.status == "finished", trial.data
    found: dict[str, Any] = json.loads((laboratory.out / "verdict.json").read_text())
    return found


def levels(laboratory: Laboratory) -> dict[str, dict[str, str]]:
    """Of each treatment."""
    run = open_run(laboratory.out)
    return {name: treatment["levels"] for name, treatment in run.plan["treatments"].items()}


def test_the_four_cells_of_database_and_log(laboratory: Laboratory) -> None:
    chosen = ('database=["one disk", "NFS"]', 'wal=["second disk", "NFS"]', "workload.clients=1")
    sets = (*chosen, "measure.transactions_per_client=50", *RESERVED)
    performed(laboratory, "pgbench-storage", *sets)
    of_cell = {}
    for trial in open_run(laboratory.out).trials:
        cell = levels(laboratory)[trial.treatment]
        probe = trial.measure.probes["nfs_calls"]
        told = json.loads((laboratory.out / f"trials/{trial.number:04d}/measure/nfs.json").read_text())
        of_cell[cell["database"], cell["wal"]] = (probe, {one["class"] for one in told["named_files"]}, trial)
        print(cell, json.dumps(probe)[:400])
    assert len(of_cell) == 4
    page = write_report(laboratory.out).read_text()
    for database, wal in of_cell:
        assert f"database: {database}, WAL: {wal}" in page
