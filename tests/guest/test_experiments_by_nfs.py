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
    verdict = performed(laboratory, "pgbench-storage", *sets)
    print(json.dumps(verdict["storage"]))
    of_cell = {(one["database"], one["wal"]): name for name, one in levels(laboratory).items()}
    assert {f"database: {database}, WAL: {wal}" for database, wal in of_cell} == {
        one["cell"] for one in verdict["storage"]["cells"]
    }
    for (database, wal), name in of_cell.items():
        mine = verdict["nfs_calls"]["treatments"].get(name, {"classes": [], "accounts": []})
        assert all(account["is_explained"] for account in mine["accounts"])
        calls = {(one["file_class"], one["name"]): one["calls"] for one in mine["classes"]}
        print(database, wal, calls)
        # Whose calls there are follows from what lies on NFS; the tables were read before the trial, the log is synced.
        assert (("wal", "COMMIT") in calls) == (wal == "NFS")
        assert any(kind in ("data", "global") for kind, _ in calls) == (database == "NFS")
    page = write_report(laboratory.out).read_text()
    assert all(f"database: {database}, WAL: {wal}" in page for database, wal in of_cell)


def test_noac_asks_for_attributes_and_the_page_says_by_how_much(laboratory: Laboratory) -> None:
    sets = ("environment.places.filer.nfs.version=3", 'files="all by NFS"', "workload.clients=1")
    verdict = performed(laboratory, "nfs-options", *sets, 'size=["8 KiB", "1 KiB"]')["nfs_calls"]
    treatments = {tuple(levels(laboratory)[name].values()): mine for name, mine in verdict["treatments"].items()}
    assert all(account["is_explained"] for mine in treatments.values() for account in mine["accounts"])
    effects = {(one["factor"], one["level"], one["what"]): one for one in verdict["effects"]}
    print(json.dumps({" ".join(key): [one["first"], one["second"]] for key, one in effects.items()}))
    getattr_calls = {
        level: effects["attribute caching", level, "getattr"]["difference"]["value"]
        for level in ("actimeo=0", "sync", "noac")
    }
    # noac is actimeo=0 and sync: the first of the two is what asks.
    assert getattr_calls["noac"] > 1 and getattr_calls["actimeo=0"] > 1
    assert abs(getattr_calls["sync"]) < 0.5 * getattr_calls["noac"]
    read = effects["rsize = wsize", "1 KiB", "read"]
    assert read["ratio"]["value"] == pytest.approx(8, rel=0.02)
    page = write_report(laboratory.out).read_text()
    assert "GETATTR calls a transaction, attribute caching noac against default: " in page


def test_the_type_of_query_decides_its_calls(laboratory: Laboratory) -> None:
    verdict = performed(laboratory, "nfs-queries", "workload.scale=1")["nfs_calls"]
    of_query = {levels(laboratory)[name]["query"]: mine for name, mine in verdict["treatments"].items()}
    print(json.dumps({name: [mine["groups"], mine["moved"], mine["kinds"]] for name, mine in of_query.items()}))
    assert set(of_query) == {"scan", "join", "index, clustered", "index, unclustered"}
    for mine in of_query.values():
        assert mine["transactions"] and all(account["is_explained"] for account in mine["accounts"])
        assert mine["moved"]["asked_read"]["value"] > 0
    asked = {name: mine["moved"]["asked_read"]["value"] for name, mine in of_query.items()}
    # As many rows each, which lie together by the one index and on a page each by the other.
    assert asked["index, unclustered"] > 5 * asked["index, clustered"]
    assert asked["join"] > asked["scan"] > asked["index, clustered"]


def test_each_request_of_a_page_asks_for_its_file_s_attributes(laboratory: Laboratory) -> None:
    verdict = performed(laboratory, "web-files-nfs", "measure.seconds=5", "workload.clients=4")
    found = verdict["nfs_calls"]["treatments"]
    calls_of = {}
    for name, level in levels(laboratory).items():
        mine = found.get(name, {"classes": [], "accounts": [], "transactions": 0})
        assert all(account["is_explained"] for account in mine["accounts"])
        calls = {(one["file_class"], one["name"]): one["calls"] for one in mine["classes"]}
        calls_of[level["files"], level["workload.mix"]] = calls, mine["transactions"]
        print(level, calls, mine["transactions"])
    assert len(calls_of) == 6
    for (files, mix), (calls, requests) in calls_of.items():
        # Whose calls there are follows from where the files lie, and those of the program's log from the mix.
        assert (("data", "READ") in calls) == (files != "local disk")
        assert any(kind == "other" for kind, _ in calls) == (files != "local disk" and mix == "whole")
        if (files, mix) == ("NFS 3", "static"):
            # nginx opens each file that is asked for, and opening asks for attributes (close-to-open consistency).
            assert calls["data", "GETATTR"] == pytest.approx(requests, rel=0.02)
    page = write_report(laboratory.out).read_text()
    assert "NFS calls a request" in page and "Web serving" in page
