"""What the terminal says of a loading: rates over the last seconds, and what comes after the rows."""

import io
from typing import Any

import pytest
from rich.console import Console

from plimsoll.cli import progress
from plimsoll.cli.filling import Filling


def rows(seconds: float, done: int, size: int) -> dict[str, Any]:
    return {"event": "progress", "done": done, "total": 1000, "table": "lineitem", "bytes": size, "seconds": seconds}


def phase(name: str, seconds: float) -> dict[str, Any]:
    return {"event": "phase", "phase": name, "seconds": seconds}


def test_the_first_rate_counts_from_where_rows_were_waited_for() -> None:
    filling = Filling()
    assert filling.hear(phase("rows", 1.0)) == "waiting for the first rows"
    assert filling.hear(rows(3.0, 100, 40_000_000)) == "10% of 1,000 rows, lineitem, 50 rows/s, 20.0 MB/s"


def test_a_rate_is_of_the_last_seconds() -> None:
    filling = Filling()
    filling.hear(phase("rows", 0.0))
    said = [filling.hear(rows(float(second), 10 * second, 0)) for second in range(1, 11)]
    assert said[-1].endswith("10 rows/s, 0.0 MB/s")
    assert filling.hear(rows(20.0, 100, 0)).endswith("0 rows/s, 0.0 MB/s")
    assert filling.hear(rows(21.0, 700, 0)).endswith("55 rows/s, 0.0 MB/s"), "600 rows in the 11 s since the one before"


def test_phases_after_the_rows_have_words() -> None:
    filling = Filling()
    assert filling.hear(phase("vacuum", 9.0)) == "vacuuming and analysing"
    assert filling.hear(phase("indexes", 9.5)) == "creating the indexes"


def test_agents_that_tell_no_time_are_heard() -> None:
    assert Filling().hear({"event": "progress", "done": 500, "total": 1000}) == "50% of 1,000 rows"
    assert Filling().hear({"event": "populated"}) == ""


def test_the_terminal_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(progress, "console", lambda: Console(file=out))
    shown = progress.Progress(1, 60.0, lambda _number: "")
    shown.event("dataset", line=phase("rows", 0.0))
    shown.event("dataset", line=rows(2.0, 500, 4_000_000))
    line = shown._line()
    assert line.startswith("building the data set, 50% of 1,000 rows, lineitem, 250 rows/s, 2.0 MB/s  ["), line
