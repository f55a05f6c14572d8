"""Where an operation's time goes: the mean of each part by kind and treatment, of all operations and of the slowest."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.files.document import FileWaits, OperationTimes, TimesOfTreatment, WaitPlace
from plimsoll.analysis.files.times import COMPLETION
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.report.files.cells import US, in_unit
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.files import PART_NAMES, wait_lines

Json = dict[str, Any]


def waits_part(page: Page) -> Json:
    """What the template draws: a table a treatment, a row a kind, a column a part."""
    found: FileWaits = page.verdict["file_waits"]
    labels = treatment_labels(page.verdict)
    return {
        "slowest": number(found["slowest_share"], ".0f", 100),
        "tables": [_table(labels.get(name, name), mine) for name, mine in found["treatments"].items()],
    }


def _table(label: str, mine: TimesOfTreatment) -> Json:
    names = [name for name in PART_NAMES if any(_has(one, name) for one in mine["operations"])]
    rows = [row for one in mine["operations"] for row in _rows(one, names)]
    return {
        "label": label,
        "columns": [PART_NAMES[name] for name in names],
        "rows": rows,
        "is_watched": COMPLETION not in names,
        "missed": number(mine["missed"], ",.0f"),
        "lost": mine["lost"],
        "straddling": mine["straddling"],
        "places": [_place(place) for place in mine["places"]],
    }


def _has(one: OperationTimes, name: str) -> bool:
    return name in one["parts_ns"] or name in one["slowest_parts_ns"]


def _rows(one: OperationTimes, names: list[str]) -> list[Json]:
    rows = [_row(one["kind"], number(one["operations"], ",.0f"), one["latency_ns"], one["parts_ns"], names)]
    if one["slowest_ns"]:
        rows.append(_row(f"{one['kind']}, the slowest", "", one["slowest_ns"], one["slowest_parts_ns"], names))
    return rows


def _row(kind: str, count: str, latency: Mean | None, parts: dict[str, Mean], names: list[str]) -> Json:
    cells = [in_unit(parts[name], US) if name in parts else NONE for name in names]
    return {"kind": kind, "count": count, "latency": in_unit(latency, US), "cells": cells}


def _place(place: WaitPlace) -> Json:
    bucket = place["bucket"]
    return {
        "what": PART_NAMES.get(bucket, bucket),
        "function": place["function"],
        "count": number(place["count"], ",.0f"),
        "ms": number(place["ns"], ",.1f", 1e-6),
    }


SECTION = Section(
    key="file_waits",
    title="Where an operation's time goes",
    template="files/file_waits.html.j2",
    applies=lambda page: bool(page.verdict.get("file_waits")),
    context=lambda page: {"waits": waits_part(page)},
    evidence=lambda page: [f"{line}." for line in wait_lines(page.verdict)],
)
