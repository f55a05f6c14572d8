"""Files on a place by NFS, client and server in one guest kernel: what was asked for is in force, and every call of the
client's own account is a row of the probe's. On a host that has no NFS this is where it is seen."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_run_on_a_guest import Laboratory, ended, laboratory

from plimsoll.record import open_run, read_table
from plimsoll.report.page import write_report

pytestmark = pytest.mark.long
__all__ = ["laboratory"]  # the fixture

EXPERIMENT = """format = 1
name = "reads-by-nfs"
title = "How many calls does a read of a given size make?"

[environment]
kernel = "guest"
guest = { memory = "768 MiB" }

[environment.places.disk]
image = "128 MiB"

[environment.places.filer]
nfs = { on = "disk", version = "VERSION" }
mount = { rsize = 8192, wsize = 8192 }
read_ahead = 0

[target]
server = "files"
files = { data = "filer" }

[workload]
name = "files"
count = 2
file_size = "4 MiB"
direct = true
mix = [
    { operation = "read", bytes = "64 KiB", weight = 3 },
    { operation = "write", bytes = "16 KiB", weight = 1 },
]

[probes]
page_cache = false
breakdown = false
double_caching = false
nfs_calls = true

[[factors]]
path = "environment.places.filer.mount.rsize"
levels = [1024, 8192]

[warmup]
until = "none"

[measure]
transactions_per_client = 60

[design]
blocks = 1
seed = 5
"""


def calls_of(folder: Path) -> Counter[str]:
    """Rows of the probe by the operation's name."""
    table, names = read_table(folder / "nfs_calls.npy"), json.loads((folder / "nfs.json").read_text())
    assert table is not None
    return Counter(names["operations"][number]["name"] for number in table["operation"].tolist())


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_each_call_of_the_clients_own_account_is_a_row(laboratory: Laboratory, version: str) -> None:
    (laboratory.place / "experiment.toml").write_text(EXPERIMENT.replace("VERSION", version))
    code, said = ended(laboratory.run("--no-page"))
    assert code == 0, said
    assert laboratory.is_clean()
    run = open_run(laboratory.out)
    reads = {}
    for trial, rsize in zip(sorted(run.trials, key=lambda one: one.treatment), (1024, 8192), strict=True):
        assert trial.status == "finished", trial.data
        summary: Any = trial.measure.summary
        assert summary["identity"]["done"] == summary["identity"]["planned"] == 60
        probe = summary["probes"]["nfs_calls"]
        print(json.dumps(probe)[:2000])
        assert not any(probe["lost"].values())
        (mount,) = (one for one in probe["mounts"] if one["is_targets"])
        assert f"rsize={rsize}" in mount["options"].split(",") and f"vers={version}" in mount["options"].split(",")
        found = calls_of(laboratory.out / f"trials/{trial.number:04d}/measure")
        print(trial.number, rsize, found)
        reads[rsize] = found["READ"] / summary["totals"]["bytes_read"]
        # Direct reads of 64 KiB are cut into what one call may carry, and nothing else reads.
        assert found["READ"] * rsize == summary["totals"]["bytes_read"]
        assert found["WRITE"] * 8192 == summary["totals"]["bytes_written"]
    assert reads[1024] == pytest.approx(8 * reads[8192], rel=0.02)
    verdict = json.loads((laboratory.out / "verdict.json").read_text())["nfs_calls"]
    for one in verdict["treatments"].values():
        assert one["accounts"] and not one["lost"], one
        assert {"READ", "WRITE"} <= {account["operation"] for account in one["accounts"]}
        assert all(account["is_explained"] for account in one["accounts"]), one["accounts"]
    page = write_report(laboratory.out).read_text()
    assert "calls a transaction" in page
