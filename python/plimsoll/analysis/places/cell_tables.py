"""The cells of study S2 as the tables that a reader looks for: the database's storage by the log's.

The constraint: what varies beside these two, such as a stripe's chunk, is varied only where something lies on its
place. So there is a table for each level of it, and a cell without it stands in every one.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.places.document import CellTable, CellTableRow
from plimsoll.analysis.places.layout import factors_of_places, storage_of

Json = dict[str, Any]
Key = tuple[str | None, str, str | None]  # the levels beside, of the row, of the column
_LOG: Final = "target.files.wal"


def cell_tables(plan: Json, scale: float, cells: list[str]) -> list[CellTable]:
    """The tables of one scale; `cells`: those that it has, in the order of its `cells` in verdict.json."""
    factors = factors_of_places(plan)
    if not factors:
        return []
    rows, columns = _rows_and_columns(factors)
    beside = [factor for factor in factors if factor is not rows and factor is not columns]
    keys: dict[Key, int] = {}
    for name in plan["treatments"]:
        if (cell := storage_of(plan, name)) in cells:
            keys.setdefault(_key(plan["treatments"][name], rows, columns, beside), cells.index(cell))
    wheres: list[str | None] = list(dict.fromkeys(where for where, _, _ in keys if where is not None))
    return [_table(scale, where, rows, columns, keys) for where in wheres or [None]]


def _rows_and_columns(factors: list[Json]) -> tuple[Json, Json | None]:
    """What the database lies on by rows, and the log by columns; of one factor alone there are only rows."""
    of_log = next((factor for factor in factors if set(factor.get("paths") or ()) == {_LOG}), None)
    rows = next((factor for factor in factors if factor is not of_log), None)
    return (of_log or factors[0], None) if rows is None else (rows, of_log)


def _key(treatment: Json, rows: Json, columns: Json | None, beside: list[Json]) -> Key:
    levels, without = treatment["levels"], treatment.get("without") or ()
    there = [f"{one['label']}: {levels[one['path']]}" for one in beside if one["path"] not in without]
    return ", ".join(there) or None, levels[rows["path"]], None if columns is None else levels[columns["path"]]


def _table(scale: float, where: str | None, rows: Json, columns: Json | None, keys: dict[Key, int]) -> CellTable:
    mine = {(row, column): index for (at, row, column), index in keys.items() if at in (where, None)}
    heads = list(dict.fromkeys(column for _, column in mine if column is not None))
    every: list[str | None] = [*heads] if columns is not None else [None]
    found: list[CellTableRow] = [
        {"level": row, "cells": [mine.get((row, head)) for head in every]}
        for row in dict.fromkeys(row for row, _ in mine)
    ]
    label = None if columns is None else str(columns["label"])
    return {"scale": scale, "at": where, "rows_label": str(rows["label"]), "columns_label": label, "columns": heads,
            "rows": found}  # fmt: skip
