"""Where a request's time goes: what the server's processes did for one, and each process's own time."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.web.document import RequestTimes, WebWorkers, WorkerTimes
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing.tables import NONE, interval, number, short_form
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.files import PART_NAMES
from plimsoll.words.workloads.web import US, has_lines, worker_lines

Json = dict[str, Any]
_ROLES: Final = {"server": "the server's", "program": "of the program behind it"}


def workers_part(page: Page) -> Json:
    """What the template draws: a table of requests, a row a treatment; and one of processes for each treatment."""
    found: WebWorkers = page.verdict["web_workers"]
    labels = treatment_labels(page.verdict)
    every = [name for name in PART_NAMES if any(name in one["parts_ns"] for one in found["treatments"].values())]
    return {
        "columns": [PART_NAMES[name] for name in every],
        "has_lines": has_lines(page.verdict),
        "rows": [
            {
                "label": labels.get(name, name),
                "requests": number(one["requests"], ",.0f"),
                "latency": _us(one["latency_ns"]),
                "cells": [_us(one["parts_ns"].get(part)) for part in every],
            }
            for name, one in found["treatments"].items()
        ],
        "tables": [_table(labels.get(name, name), one) for name, one in found["treatments"].items()],
    }


def _table(label: str, mine: RequestTimes) -> Json:
    names = [name for name in PART_NAMES if any(name in one["shares"] for one in mine["workers"])]
    return {
        "label": label,
        "columns": [PART_NAMES[name] for name in names],
        "rows": [_row(one, names) for one in mine["workers"]],
        "missed": number(mine["missed"], ",.0f"),
        "lost": number(mine["lost"], ",.0f"),
    }


def _row(one: WorkerTimes, names: list[str]) -> Json:
    who = one["name"] or "not named"
    which = "the others" if one["number"] is None else f"{one['number']}"
    return {
        "who": f"{who} {which}, {_ROLES.get(one['role'], one['role'])}",
        "processes": "" if not one["processes"] else number(one["processes"]["value"], ",.0f"),
        "threads": "" if not one["threads"] else number(one["threads"]["value"], ",.0f"),
        "cells": [interval(one["shares"].get(name), ".1%") if name in one["shares"] else NONE for name in names],
    }


def _us(mean: Mean | None) -> str:
    return NONE if not mean else interval(mean, short_form(mean["value"] * US), US)


SECTION = Section(
    key="web_workers",
    title="Where a request's time goes",
    template="web/workers.html.j2",
    applies=lambda page: bool(page.verdict.get("web_workers")),
    context=lambda page: {"workers": workers_part(page)},
    evidence=lambda page: [f"{line}." for line in worker_lines(page.verdict)],
)
