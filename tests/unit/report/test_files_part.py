"""The page's sections on files: Bonnie's table with the study's beside it, passes with their cost, operations."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.report.original_studies import BONNIE, S2_BONNIE
from plimsoll.words.places import PROMISE

_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
section = _FIGURES["section"]
_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "files_world.py"))
make = _WORLD["make"]


def page(folder: Path, workload: dict[str, Any], phases: tuple[str, ...] = ()) -> str:
    return write_report(make(folder / "run", workload, phases)).read_text()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("runs")
    return page(folder, {"name": "raw_storage"}, ("putc", "rewrite", "write", "getc", "read", "seeks"))


def test_bonnies_table_has_the_studys_rows_below_ours(raw: str) -> None:
    table = section(raw, "phases")
    table = table[: table.index("</table>")]
    assert table.count("<tr") == 1 + 2 + len(S2_BONNIE)
    assert "memory 256 MiB" in table and "the study, SCSI ext2" in table
    # K/s and the share of one CPU: 400 MB in 4.02 s, three quarters.
    assert "97,171 [" in table and "(75.0)" in table and "249 [" in table
    assert "12,804 (98.9)" in table and "374.3 (2.4)" in table


def test_the_studys_table_is_that_of_its_page() -> None:
    """Six storages, six columns; a few cells as studies.md has them."""
    assert len(S2_BONNIE) == 6 and {len(row) for row in S2_BONNIE.values()} == {len(BONNIE)}
    assert S2_BONNIE["NFS filer"][BONNIE.index("read")] == (12041, 6.0)
    assert S2_BONNIE["RAID-0 128k, stride"][BONNIE.index("rewrite")] == (19429, 14.8)


def test_the_phases_are_in_the_order_in_which_bonnie_prints_them(raw: str) -> None:
    part = section(raw, "phases")
    below = part[part.index("<h3>") :]
    below = below[: below.index("</table>")]
    rows = [below.index(f"<td>{phase}</td>") for phase in BONNIE]
    assert rows == sorted(rows), "in the table of what Bonnie does not print, too"
    assert part.index("putc ") < part.index("write ") < part.index("rewrite ")


def test_each_phase_says_what_the_page_cache_did(raw: str) -> None:
    part = section(raw, "phases")
    assert "read from memory: it never left it" in part
    assert "written: 50% to the device, the rest still in memory" in part
    assert "Never left memory in any trial: read." in part
    assert 'id="passes"' not in raw and 'id="operations"' not in raw


def test_phases_that_do_not_verify_say_so_on_the_page(raw: str, tmp_path: Path) -> None:
    assert "Not verified" not in raw
    folder = make(tmp_path / "run", {"name": "sequential_io", "processes": 2}, ("write", "reread"))
    for place in folder.glob("trials/*/reread/summary.json"):
        told = json.loads(place.read_text())
        told["facts"]["verified"] = False
        place.write_text(json.dumps(told))
    part = section(write_report(folder).read_text(), "passes")
    assert "Not verified, for what was read was not compared with what was written: reread." in part


def test_passes_pair_throughput_with_its_cost(tmp_path: Path) -> None:
    text = page(tmp_path, {"name": "sequential_io", "processes": 2}, ("write", "reread"))
    part = section(text, "passes")
    assert "<h3>Write</h3>" in part and "<h3>Reread</h3>" in part
    assert "99.5" in part and "10.0" in part  # MB/s, and ms of CPU a MB
    assert "50 [50, 50]" in part, "the smallest transfer of a process, of its file"
    assert 'id="phases"' not in text


def test_operations_have_counts_and_times(tmp_path: Path) -> None:
    part = section(page(tmp_path, {"name": "file_serving"}), "operations")
    assert "not comparable to published results" in part
    assert "3,000" in part and "1,000" in part  # how many, and microseconds
    assert "3.00" in part, "system calls an operation"


def test_what_was_promised_and_what_arrived_stand_in_one_section(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", {"name": "raw_storage"}, ("write", "read"))
    run = open_run(folder)
    rate = {"value": 5e7, "low": 4e7, "high": 6e7, "blocks": 3}
    ratio = {"value": 2.0, "low": 1.8, "high": 2.2, "blocks": 3}
    got = {"value": 1.02, "low": 0.99, "high": 1.05, "blocks": 3}
    one = {"storage": "storage: one disk", "phases": {"write": {"rate": rate, "ratio": None}}, "ratio": None}
    two = {"storage": "storage: stripe", "phases": {"write": {"rate": rate, "ratio": ratio}}, "ratio": got}
    rows = [one | {"rate": rate, "verdict": None}, two | {"rate": rate, "verdict": "did not arrive"}]
    promise = {"run": "raw-1", "at": "", "judged": "write", "phases": ["write"], "rows": rows}
    verdict = analyse(run) | {"promise": promise | {"missing": ["storage: x"], "differences": []}}
    (folder / "verdict.json").write_text(json.dumps(verdict))
    (lead,) = PROMISE.leads(verdict)
    assert lead.endswith("against storage: one disk: it did not arrive at the database (1 of 1)")
    text = section(write_report(folder).read_text(), "promise")
    assert "run raw-1)" in text and "50.0 (2.00 x [1.80, 2.20])" in text and "did not arrive" in text
    assert "Not in this run: storage: x." in text and "pgbench did not improve" in text
    assert "the database&#39;s transactions 1.02 x [0.99, 1.05]: it did not arrive at the database" in text
