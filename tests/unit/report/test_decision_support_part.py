"""The page's part on decision support: DBT-3's names, what is absent, drift beside the study's, and every figure."""

import itertools
import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.record import compact, open_run
from plimsoll.report import write_report
from plimsoll.report.decision_support.drift_figure import drift_figure
from plimsoll.report.decision_support.figures import parts_figure, timeline_figure

_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
svg, section = _FIGURES["svg"], _FIGURES["section"]
_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "decision_support_world.py"))
World, make = _WORLD["World"], _WORLD["make"]
FIGURES = ("drift", "queries", "query-changes", "streams", "vmstat", "tests-judged")


def noisy(treatment: str, block: int, test: str, stream: int, name: str) -> float:
    """Q18 takes thrice as long in the second treatment."""
    del test, stream
    slow = 3.0 if treatment == "t2" and name == "Q18" else 1.0
    return 4.0 * slow * math.exp(0.01 * math.sin(sum(map(ord, treatment + name)) * (block + 3)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    failing = (((1, "throughput-2", 2, "Q21"), "timed out"),)
    world = World(seconds=noisy, blocks=3, repeats=2, explain=True, failing=failing)
    run = make(tmp_path_factory.mktemp("runs") / "run", world)
    return run, write_report(run).read_text()


def test_the_figures_stand_under_dbt_3s_names_and_are_no_published_ones(page: tuple[Path, str]) -> None:
    _, text = page
    part = section(text, "decision-support")
    table = part[: part.index("</table>")]
    assert [name in table for name in ("load test", "power", "throughput", "composite")] == [True] * 4
    assert "not comparable to published results" in part[: part.index("<table")]
    assert "OSDL, 2003" in part
    assert "work_mem 16 MiB" in table and "82.0 [" in table  # the load test: 81, 82 and 83 s


def test_every_figure_is_drawn(page: tuple[Path, str]) -> None:
    run, text = page
    for name in FIGURES:
        assert f'data-figure="{name}"' in text, name
        assert svg(run / "report" / "index.html", name)


def test_without_a_breakdown_the_page_says_so(page: tuple[Path, str]) -> None:
    run, text = page
    assert "there is no breakdown by query" in text
    assert parts_figure(analyse(open_run(run))).spec is None


def test_a_test_from_which_something_is_missing_drifts_nowhere(page: tuple[Path, str]) -> None:
    _, text = page
    part = text[text.index("Throughput from test to test") :]
    part = part[: part.index("</table>")]
    assert "27.34" in part and "-0.58 %" in part  # the study's


def test_the_drift_is_drawn_beside_the_studys(page: tuple[Path, str]) -> None:
    run, _ = page
    figure = drift_figure(analyse(open_run(run)))
    assert figure is not None and figure.spec is not None
    rows = [row for data in figure.spec["datasets"].values() for row in data] if "datasets" in figure.spec else []
    rows += [row for layer in figure.spec["layer"] for row in (layer.get("data") or {}).get("values") or []]
    study = {row["test"]: row["change"] for row in rows if row["series"] == "study S3"}
    assert study == {1: 0.0, 2: pytest.approx(-0.0058, abs=5e-5)}  # no more tests than the run has
    mine = {(row["series"], row["test"]) for row in rows if row["series"] != "study S3"}
    assert ("work_mem 16 MiB", 1) in mine and ("work_mem 16 MiB", 2) in mine


def test_plans_that_differ_can_be_read(page: tuple[Path, str]) -> None:
    _, text = page
    assert "Plans that differ" in text
    assert "Aggregate, Hashed\n  Seq Scan, lineitem" in text


def test_the_query_that_changed_is_in_the_table(page: tuple[Path, str]) -> None:
    _, text = page
    table = text[text.index("queries that changed") :]
    assert "Q18" in table[: table.index("</table>")]


def test_bars_of_a_stream_do_not_overlap_and_fill_it(page: tuple[Path, str]) -> None:
    run, _ = page
    rows: list[dict[str, Any]] = []
    spec = timeline_figure(analyse(open_run(run))).spec
    assert spec is not None
    rows = (
        next(iter(layer["data"]["values"] for layer in spec["layer"])) if "data" not in spec else spec["data"]["values"]
    )
    mine = sorted(
        (row for row in rows if row["shown"].endswith("block 1: power") and "16 MiB" in row["shown"]),
        key=lambda row: row["from"],
    )
    assert len(mine) == 24
    for before, after in itertools.pairwise(mine):
        assert after["from"] == pytest.approx(before["to"], abs=1e-3)


def test_the_tests_are_segments_of_the_compacted_record(page: tuple[Path, str]) -> None:
    import polars as pl

    run, _ = page
    compact(run)
    segments = pl.read_parquet(run / "transactions.parquet")["segment"].unique().to_list()
    assert sorted(segments) == ["plans", "power", "throughput-1", "throughput-2"]


def test_another_run_has_no_such_part(tmp_path: Path) -> None:
    maker = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_open.py"))
    run = Path(maker["make"](tmp_path / "run", maker["Shape"](rates=(20.0, 30.0), seconds=8)))
    text = write_report(run).read_text()
    assert 'id="decision-support"' not in text
    assert "decision_support" not in json.loads((run / "verdict.json").read_text())
