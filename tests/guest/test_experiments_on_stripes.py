"""pgbench-storage's cells of RAID-0 in a guest, which has md wherever it runs: the chunk is varied where a part lies.

What it shows is how requests are divided; how fast the cells are says nothing here, and nothing is asked of it.
"""

import json

import pytest
from test_experiments_by_nfs import levels, performed
from test_run_on_a_guest import Laboratory, laboratory

from plimsoll.record import open_run
from plimsoll.report.page import write_report

pytestmark = pytest.mark.long
__all__ = ["laboratory"]  # the fixture
CHUNK = "environment.places.stripe.raid.chunk"
SECTORS_WRITTEN = 6  # of a line of /sys/block/*/stat


def test_a_database_and_its_log_on_a_stripe_or_beside_it(laboratory: Laboratory) -> None:
    chosen = ('database=["one disk", "RAID-0"]', 'wal=["second disk", "RAID-0"]', "workload.clients=1")
    reserved = [f'environment.places.{name}.image_blocks="reserved"' for name in ("first", "second", "stripe")]
    verdict = performed(laboratory, "pgbench-storage", *chosen, "measure.transactions_per_client=50", *reserved)
    run, of_cell = open_run(laboratory.out), levels(laboratory)
    cells = [one["cell"] for one in verdict["storage"]["cells"]]
    assert cells == [
        "database: one disk, WAL: second disk",
        *(f"database: one disk, WAL: RAID-0, chunk: {chunk}" for chunk in ("8 KiB", "512 KiB")),
        *(f"database: RAID-0, WAL: second disk, chunk: {chunk}" for chunk in ("8 KiB", "512 KiB")),
        *(f"database: RAID-0, WAL: RAID-0, chunk: {chunk}" for chunk in ("8 KiB", "512 KiB")),
    ]
    for trial in run.trials:
        mine, layout = of_cell[trial.data["treatment"]], trial.data["layout"]
        on_stripe = {part for part, place in layout["parts"].items() if place == "stripe"}
        assert on_stripe == {part for part, key in (("data", "database"), ("wal", "wal")) if mine[key] == "RAID-0"}
        if not on_stripe:
            assert "stripe" not in layout["places"]
            continue
        stripe = layout["places"]["stripe"]
        assert (stripe["raid"]["level"], stripe["raid"]["chunk"] >> 10) == (0, int(mine[CHUNK].removesuffix(" KiB")))
        counted = trial.data["member_counters"]
        written = [
            counted["after"][one["name"]][SECTORS_WRITTEN] - counted["before"][one["name"]][SECTORS_WRITTEN]
            for one in stripe["devices"]
        ]
        print(json.dumps([mine, written]))
        # A log is written page after page, so that a chunk of a page is the other member's each time.
        if "wal" in on_stripe and mine[CHUNK] == "8 KiB":
            assert len(written) == 2 and min(written) > 0
    page = write_report(laboratory.out).read_text()
    assert all(cell in page for cell in cells) and "RAID-0" in page
