"""PostgreSQL with its data on NFS, and its log on NFS or on a disk beside, in one guest kernel: every trial ends, the
answers and the tables are right, and whose calls there are follows from where the files lie."""

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
SECONDS_MAX = 900
TRANSACTIONS = 60

EXPERIMENT = f"""format = 1
name = "database-by-nfs"
title = "Which calls does a transaction make with the log on NFS, and with the log on a disk?"

[environment]
kernel = "guest"
guest = {{ memory = "1 GiB" }}

[environment.places.disk]
image = "192 MiB"
image_blocks = "reserved"

[environment.places.log]
image = "192 MiB"
image_blocks = "reserved"

[environment.places.filer]
nfs = {{ on = "disk", version = "VERSION" }}
mount = {{ rsize = 8192, wsize = 8192 }}

[target]
server = "postgresql"
files = {{ data = "filer" }}

[target.settings]
shared_buffers = "16 MiB"
autovacuum = false
max_wal_size = "64MB"
min_wal_size = "32MB"
huge_pages = "off"

[workload]
name = "bank"
scale = 1
transaction = "tpcb_like"
clients = 1

[probes]
page_cache = false
breakdown = false
double_caching = false
nfs_calls = true

[[factors]]
path = "target.files.wal"
levels = ["log", "filer"]

[warmup]
until = "none"

[measure]
transactions_per_client = {TRANSACTIONS}

[design]
blocks = 1
seed = 5
"""


def calls_of(folder: Path) -> Counter[tuple[str, str]]:
    """Rows of the probe by the class of the file and the operation's name."""
    table, told = read_table(folder / "nfs_calls.npy"), json.loads((folder / "nfs.json").read_text())
    assert table is not None
    classes = {one["file"]: one["class"] for one in told["named_files"]}
    return Counter(
        (classes.get(file, "unknown"), told["operations"][operation]["name"])
        for file, operation in zip(table["file"].tolist(), table["operation"].tolist(), strict=True)
    )


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_where_the_log_lies_decides_whose_calls_there_are(laboratory: Laboratory, version: str) -> None:
    (laboratory.place / "experiment.toml").write_text(EXPERIMENT.replace("VERSION", version))
    code, said = ended(laboratory.run("--no-page"), SECONDS_MAX)
    assert code == 0, said
    assert laboratory.is_clean()
    run, found = open_run(laboratory.out), {}
    for trial in run.trials:
        assert trial.status == "finished", trial.data
        summary: Any = trial.measure.summary
        assert summary["identity"]["done"] == summary["identity"]["planned"] == TRANSACTIONS
        assert summary["verification"]["checked"] == TRANSACTIONS and not summary["verification"]["wrong"]
        assert trial.data["checks"] and all(check["ok"] for check in trial.data["checks"])
        probe = summary["probes"]["nfs_calls"]
        assert not any(probe["lost"].values())
        wal = trial.data["layout"]["parts"]["wal"]
        found[wal] = calls_of(laboratory.out / f"trials/{trial.number:04d}/measure")
        print(version, wal, found[wal])
    of_log = {
        wal: {name: count for (kind, name), count in mine.items() if kind == "wal"} for wal, mine in found.items()
    }
    assert not of_log["log"], "the log is on a disk: no call is about it"
    # Each commit waits for its log: the pages are sent, and the server is asked to have them on its disk.
    assert of_log["filer"]["WRITE"] >= 0.9 * TRANSACTIONS and of_log["filer"]["COMMIT"] >= 0.9 * TRANSACTIONS
    for mine in found.values():
        assert mine["data", "READ"] > 0
    assert "calls a transaction" in write_report(laboratory.out).read_text()
