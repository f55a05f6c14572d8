"""Study S2's table of cells: what each layout of database and log carried, over clients and transactions per client.

Loads are taken together within the block first, as the logarithm of the throughput: the block is the unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from plimsoll.analysis.comparing.compare import word
from plimsoll.analysis.part import Context, Part, is_named
from plimsoll.analysis.places.cell_tables import cell_tables
from plimsoll.analysis.places.document import Cell, CellRow, Cells, CellTable
from plimsoll.analysis.places.layout import storage_of
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, half_width, over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
METRIC = "throughput_per_second"
LOAD = ("workload.scale", "workload.clients", "measure.transactions_per_client")
Load = tuple[float, float, float]
Values = dict[tuple[int, str, Load], float]  # by block, cell and load


def cells(plan: Json, experiment: Json, used: Used) -> Cells | None:
    """The `storage` of verdict.json; None where the run has one layout."""
    values: Values = {}
    found: dict[tuple[str, float], set[str]] = {}  # treatments by cell and scale
    for (block, treatment), entry in used.items():
        levels = plan["treatments"][treatment]["levels"]
        value = entry["metrics"].get(METRIC)
        if value:
            load = _load(levels, plan.get("factors") or [], experiment)
            cell = storage_of(plan, treatment)
            values[block, cell, load] = value
            found.setdefault((cell, load[0]), set()).add(treatment)
    names = list(dict.fromkeys(cell for _, cell, _ in values))
    order = _in_order(names, plan)
    if len(order) < 2:
        return None
    loads = sorted({load for _, _, load in values})
    rows = [row for cell in order for load in loads if (row := _row(cell, load, values)) is not None]
    scales = sorted({load[0] for load in loads})
    each = [one for scale in scales for one in _at_scale(scale, order, values)]
    for one in each:
        one["treatments"] = [name for name in plan["treatments"] if name in found[one["cell"], one["scale"]]]
    tables = [table for scale in scales for table in _tables(plan, scale, each)]
    return {"rows": rows, "cells": each, "tables": tables}


def _tables(plan: Json, scale: float, each: list[Cell]) -> list[CellTable]:
    before = next(place for place, one in enumerate(each) if one["scale"] == scale)
    tables = cell_tables(plan, scale, [one["cell"] for one in each if one["scale"] == scale])
    for row in (row for table in tables for row in table["rows"]):
        row["cells"] = [None if place is None else before + place for place in row["cells"]]
    return tables


def _in_order(names: list[str], plan: Json) -> list[str]:
    """Those that were measured, in the plan's order."""
    planned = dict.fromkeys(storage_of(plan, treatment) for treatment in plan["treatments"])
    return [cell for cell in planned if cell in names]


def _load(levels: Mapping[str, str], factors: Iterable[Json], experiment: Json) -> Load:
    found = []
    for path in LOAD:
        table, key = path.split(".")
        value = (experiment.get(table) or {}).get(key)
        for factor in factors:
            for level in factor["levels"] if factor["path"] == path else []:
                if level["label"] == levels[path]:
                    value = level["value"]
        found.append(float(value or 0))
    return (found[0], found[1], found[2])


def _row(cell: str, load: Load, values: Values) -> CellRow | None:
    points = [value for (_, one, other), value in sorted(values.items()) if (one, other) == (cell, load)]
    mean = as_mean(over_blocks(points, True))
    if mean is None:
        return None
    scale, clients, each = load
    return {"cell": cell, "scale": scale, "clients": clients, "transactions_per_client": each or None, **mean}


def _at_scale(scale: float, order: list[str], values: Values) -> list[Cell]:
    found: list[Cell] = []
    there = [cell for cell in order if any(one == cell and load[0] == scale for _, one, load in values)]
    for cell in there:
        rate = _over(_logs(cell, scale, values))
        if rate is None:
            continue
        if cell == there[0]:
            found.append({"cell": cell, "scale": scale, "treatments": [], "rate": rate, "ratio": None, "verdict": None})
            continue
        logs = _differences(cell, there[0], scale, values)
        said = _said(logs, len(there) - 1)
        found.append(
            {"cell": cell, "scale": scale, "treatments": [], "rate": rate, "ratio": _over(logs), "verdict": said}
        )
    return found


def _said(logs: Mapping[int, list[float]], ratios: int) -> str:
    """On the ratio of a cell to the first, one of so many of which none is to be wrong (Bonferroni)."""
    each = np.array([float(np.mean(logs[block])) for block in sorted(logs)])
    if len(each) < BLOCKS_MIN:
        return "cannot tell"
    half = half_width(each.std(ddof=1), np.array(len(each)), 1 - (1 - CONFIDENCE) / ratios)
    return word(float(each.mean()), float(half))


def _logs(cell: str, scale: float, values: Values) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for (block, one, load), value in values.items():
        if one == cell and load[0] == scale:
            found.setdefault(block, []).append(math.log(value))
    return found


def _differences(cell: str, first: str, scale: float, values: Values) -> dict[int, list[float]]:
    """Within the block and the load."""
    found: dict[int, list[float]] = {}
    for (block, one, load), value in values.items():
        base = values.get((block, first, load))
        if one == cell and load[0] == scale and base:
            found.setdefault(block, []).append(math.log(value / base))
    return found


def _over(logs: Mapping[int, list[float]]) -> Mean | None:
    """The mean of each block, over blocks."""
    return as_mean(over_blocks([math.exp(float(np.mean(logs[block]))) for block in sorted(logs)], True))


def _judge(context: Context) -> Cells | None:
    if not is_named(context.run, "storage") or "sections" not in context.run.experiment:
        return None
    return cells(context.run.plan, context.run.experiment, context.used)


PART = Part("storage", _judge)
