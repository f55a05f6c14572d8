"""Operations on files: what they moved and cost, and how often each was performed and how long it took."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.files.document import Kind, Mix, Operations
from plimsoll.analysis.files.operations import PERCENTILES
from plimsoll.analysis.percentiles import PERCENTILE_NAMES
from plimsoll.report.drawing.tables import interval, number
from plimsoll.report.files.cells import MB, MS, US, cache_words, in_unit
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.files import operation_lines

Json = dict[str, Any]
_MEAN = "mean"


def operations_part(page: Page) -> Json:
    """What the template draws."""
    part: Operations = page.verdict["operations"]
    labels = treatment_labels(page.verdict)
    return {
        "like": part["like"],
        "rule": part["rule"],
        "rows": [_row(labels.get(name, name), entry) for name, entry in part["treatments"].items()],
        "columns": [_MEAN, *(PERCENTILE_NAMES.get(name, name) for name in PERCENTILES)],
        "tables": [
            {"label": labels.get(name, name), "rows": [_kind(kind) for kind in entry["kinds"]]}
            for name, entry in part["treatments"].items()
        ],
    }


def _row(label: str, entry: Mix) -> Json:
    return {
        "label": label,
        "operations": in_unit(entry["operations_per_second"], 1.0),
        "bytes": in_unit(entry["bytes_per_second"], MB),
        "cost": interval(entry["machine_ns_per_mb"], ",.3f", MS),
        "load": interval(entry["load_ns_per_mb"], ",.3f", MS),
        "calls": interval(entry["system_calls_per_operation"], ",.2f"),
        "cache": cache_words(entry),
    }


def _kind(kind: Kind) -> Json:
    return {
        "kind": kind["kind"],
        "done": number(kind["done"], ",.0f"),
        "failed": number(kind["failed"], ",.0f"),
        "cells": [in_unit(kind["latency_ns"][name], US) for name in (_MEAN, *PERCENTILES)],
    }


SECTION = Section(
    key="operations",
    title="Operations",
    template="files/operations.html.j2",
    applies=lambda page: bool(page.verdict.get("operations")),
    context=lambda page: {"operations": operations_part(page)},
    evidence=lambda page: [f"{line}." for line in operation_lines(page.verdict)],
)
