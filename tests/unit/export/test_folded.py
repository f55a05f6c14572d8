"""Collapsed stacks add up to the time of the transactions; the verb writes what was asked for and nothing over."""

import json
import re
import runpy
from pathlib import Path

import pytest

from plimsoll.cli.export import export
from plimsoll.export import ExportError
from plimsoll.export.folded import folded
from plimsoll.record import open_run

_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "breakdown_world.py"))
_HERE = runpy.run_path(str(Path(__file__).with_name("trace_world.py")))
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = _HERE["busy"](tmp_path_factory.mktemp("runs") / "run", 1000, 2, backends=10)
    return folder


def test_the_stacks_are_those_of_the_record(run: Path) -> None:
    # A transaction has 20 ms a round: 2 on a CPU, 1 queued, 2 of each wait; 1 µs in, 2 ms out; the rest is in no part.
    lines = list(folded(open_run(run), open_run(run).trials))
    assert lines == [
        "level, one;pay;cpu 2000000",
        "level, one;pay;lock;Lock:transactionid 2000000",
        "level, one;pay;run_queue 1000000",
        "level, one;pay;transport_in 1000",
        "level, one;pay;transport_out 2000000",
        "level, one;pay;wal_sync;IO:WALSync 2000000",
        "level, one;pay;wal_wait;LWLock:WALWrite 2000000",
    ]


def test_every_line_is_a_stack_and_a_number(tmp_path: Path) -> None:
    folder = _MAKER["make"](tmp_path / "run", _MAKER["SMALL"])
    _WORLD["add_to_run"](folder)
    found = open_run(folder)
    lines = list(folded(found, found.trials))
    assert all(re.fullmatch(r"[^;\n]+(;[^;\n]+){2,3} [1-9][0-9]*", line) for line in lines)
    labels = {one["label"] for one in found.plan["treatments"].values()}
    assert {line.split(";")[0] for line in lines} == labels
    one = list(folded(found, found.trials[:1]))
    assert len({line.split(";")[0] for line in one}) == 1


def test_the_verb_writes_each_format(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(run, "folded", None, None, None, None, False) == 0
    stacks = capsys.readouterr().out
    assert export(run, "folded", 1, None, None, tmp_path / "stacks", False) == 0
    assert (tmp_path / "stacks").read_text() == stacks
    capsys.readouterr()
    assert export(run, "parquet", None, None, None, tmp_path / "tables", True) == 0
    said = json.loads(capsys.readouterr().out)
    assert {"breakdown.parquet", "breakdown_waits.parquet", "series_host.parquet", "trials.parquet"} <= set(
        said["files"]
    )
    assert {path.name for path in (tmp_path / "tables").iterdir()} == set(said["files"])
    assert export(run, "perfetto", None, 1.0, 0.5, tmp_path / "trace", False) == 0
    assert " transactions of 10 backends" in capsys.readouterr().out
    assert not list(run.glob("*.parquet")), "an export leaves nothing in the record"


@pytest.mark.parametrize(
    ("form", "number", "begin", "seconds", "out", "said"),
    [
        ("svg", None, None, None, "x", "allowed: perfetto, folded, parquet"),
        ("folded", None, 1.0, None, "x", "choose a window of a trace"),
        ("parquet", 1, None, None, "x", "Parquet tables have all trials"),
        ("perfetto", None, None, None, None, "--out is missing: a file"),
        ("perfetto", None, -1.0, None, "x", "--from is a number"),
        ("perfetto", None, 0.0, 0.0, "x", "--for one above 0"),
        ("perfetto", 7, None, None, "x", "has no trial 7; it has 1 to 1"),
        ("folded", 7, None, None, "x", "has no trial 7"),
        ("perfetto", None, None, None, "there", "exists already"),
        ("perfetto", None, 99.0, None, "x", "begins there"),
    ],
)
def test_what_is_refused(
    run: Path,
    tmp_path: Path,
    form: str,
    number: int | None,
    begin: float | None,
    seconds: float | None,
    out: str | None,
    said: str,
) -> None:
    (tmp_path / "there").write_text("kept")
    with pytest.raises(ExportError, match=re.escape(said)):
        export(run, form, number, begin, seconds, tmp_path / out if out else None, False)
    assert [path.name for path in tmp_path.iterdir()] == ["there"], "nothing half is left"
    assert (tmp_path / "there").read_text() == "kept"


def test_a_run_without_a_breakdown_says_why(tmp_path: Path) -> None:
    found = open_run(_MAKER["make"](tmp_path / "run", _MAKER["SMALL"]))
    with pytest.raises(ExportError, match="has no breakdown to fold: trial 1: "):
        list(folded(found, found.trials))
