"""The verb `query`: an answer as a table for people, or as JSON for machines. Prints; computes nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.text import Text

from plimsoll.cli import show
from plimsoll.export.query import Answer, ask, what_there_is
from plimsoll.export.sources import find_runs

RUNS = Path("runs")
_CELL_MAX = 60
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL")


def query(sql: str | None, places: Sequence[Path], as_json: bool) -> int:
    """Asks all runs in the folder of runs, or those named; without a question tells what can be asked."""
    runs = find_runs(places or [RUNS])
    if sql is None:
        tables = what_there_is(runs)
        if as_json:
            print(json.dumps({"runs": list(runs), "tables": tables}))
        else:
            _print_tables(list(runs), tables)
        return 0
    answer = ask(runs, sql)
    if as_json:
        print(json.dumps(as_document(answer), allow_nan=False))
    else:
        _print(answer)
    return 0


def as_document(answer: Answer) -> dict[str, Any]:
    """Columns by name and type, rows as lists: names may occur twice."""
    columns = [{"name": name, "type": kind} for name, kind in zip(answer.columns, answer.types, strict=True)]
    return {"columns": columns, "rows": [[_plain(value) for value in row] for row in answer.rows]}


def _plain(value: Any) -> Any:
    """A value as JSON has it; what is no number (NaN, infinity) is null."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(_plain(value)).split())
    return text if len(text) <= _CELL_MAX else text[: _CELL_MAX - 1] + "…"


def _print(answer: Answer) -> None:
    """Lines as wide as they are, which a pager or another program can cut; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(answer.columns, *cells, strict=True)]
    right = [any(word in kind for word in _NUMBERS) for kind in answer.types]
    for row in [answer.columns, *cells]:
        found = zip(row, widths, right, strict=True)
        print("  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in found).rstrip())
    print(f"{len(cells):,} {'row' if len(cells) == 1 else 'rows'}")


def _print_tables(runs: Sequence[str], tables: dict[str, dict[str, str]]) -> None:
    out = show.console()
    count = f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}"
    out.print(f"{count}; query a table with: ./plimsoll query 'select ... from TABLE'")
    table = show.plain_table("table", "columns")
    for name, columns in tables.items():
        table.add_row(f'"{name}"' if name == "group" else name, Text(" ".join(columns)))
    out.print(table)
