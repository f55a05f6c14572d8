"""The page on queries: every example of it runs, and every answer shown has the columns that its question gives."""

import os
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import polars
import pytest
from numpy.lib import recfunctions

from plimsoll.analysis import analyse
from plimsoll.cli.query import RUNS
from plimsoll.export.query import ask, what_there_is
from plimsoll.export.sources import find_runs
from plimsoll.record import compact, open_run, writer

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs/query.md").read_text()
BLOCKS = [re.sub(r"^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", TEXT, flags=re.M)]
QUERIES = [block for block in BLOCKS if block.startswith("./plimsoll query")]
DUCKDB = [block for block in BLOCKS if block.startswith("duckdb -c")]
PYTHON = [block for block in BLOCKS if block.startswith("import ")]
_MAKER = runpy.run_path(str(ROOT / "tests/golden/make_synthetic.py"))
_WORLD = runpy.run_path(str(ROOT / "tests/unit/analysis/breakdown_world.py"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder of runs, which have the names that the page has."""
    place = tmp_path_factory.mktemp("place")
    for name in ("commit-1", "commit-2"):
        folder = _MAKER["make"](place / RUNS / name, _MAKER["Shape"](caches=(64, 1024), measure_seconds=3))
        _WORLD["add_to_run"](folder)
        _complete(folder)
        writer.write_json(folder / "verdict.json", analyse(open_run(folder)))
        compact(folder)
    return place


def _complete(folder: Path) -> None:
    """What today's records have and the synthetic one has not."""
    row = [("second", "<u4"), ("kind", "u1"), ("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")]
    for path in folder.glob("trials/*/measure"):
        np.save(path / "latency_seconds.npy", np.array([(0, 0, 1, 2, 7), (1, 0, 1, 2, 8)], dtype=row))
        for table, column in (("host", "dirty_kib"), ("device", "weighted_io_ms")):
            rows = np.load(path / f"{table}.npy")
            values = np.arange(len(rows)) * 2048
            np.save(path / f"{table}.npy", recfunctions.append_fields(rows, column, values, usemask=False))


@pytest.fixture(autouse=True)
def _there(place: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(place)
    yield
    os.chdir(before)


def test_the_page_has_examples_of_each_sort() -> None:
    assert (len(QUERIES) >= 6, len(DUCKDB) >= 3, len(PYTHON) >= 1) == (True, True, True)


@pytest.mark.parametrize("block", QUERIES)
def test_a_query_runs(block: str) -> None:
    _, _, sql, *named = shlex.split(block.split(" asks every run")[0])
    answer = ask(find_runs([Path(name) for name in named] or [RUNS]), sql)
    assert answer.rows, "an example that answers nothing shows nothing"
    after = BLOCKS[BLOCKS.index(block) + 1]
    if not after.startswith(("./plimsoll", "duckdb")):
        assert after.split("\n", 1)[0].split() == answer.columns


@pytest.mark.parametrize("block", DUCKDB)
def test_duckdb_answers_by_itself(block: str) -> None:
    _, _, sql = shlex.split(block)
    assert duckdb.connect(":memory:").execute(sql).fetchall()


@pytest.mark.parametrize("block", PYTHON)
def test_polars_does_too(block: str) -> None:
    lines = block.strip().split("\n")
    exec("\n".join(lines[:-1]), names := {})  # the page's own lines
    found = eval(lines[-1], names)
    assert isinstance(found, polars.DataFrame)
    assert found["len"].sum() > 0


def test_the_tables_it_names_are_there() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", TEXT, flags=re.M)
    named = {name.strip('"') for row in rows for name in re.findall(r"`([^`]+)`", row)}
    # Of a machine whose kernel was asked; the synthetic record has no such series.
    assert named - set(what_there_is(find_runs([RUNS]))) == {"page_cache"}
