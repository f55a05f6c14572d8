"""Bonnie's table: K/s and %CPU of its six phases, study S2's beside it, and what the page cache did in each."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.files.document import Phase, Phases
from plimsoll.analysis.files.metrics import RAW_STORAGE, name_of
from plimsoll.report.drawing.tables import interval
from plimsoll.report.files.cells import MS, bonnie_cell, cache_words, in_unit, members_words, study_rows
from plimsoll.report.original_studies import BONNIE
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.files import phase_lines

Json = dict[str, Any]
# As Bonnie's own head names them, in the order in which it prints them.
HEADS = {
    "putc": "out,<br>per char",
    "write": "out,<br>block",
    "rewrite": "out,<br>rewrite",
    "getc": "in,<br>per char",
    "read": "in,<br>block",
    "seeks": "seeks/s",
}


def phases_part(page: Page) -> Json:
    """What the template draws."""
    found: Phases = page.verdict["phases"]
    labels = treatment_labels(page.verdict)
    ours = [
        {
            "label": labels.get(name, name),
            "ours": True,
            "cells": [bonnie_cell(phase, mine.get(phase)) for phase in BONNIE],
        }
        for name, mine in found["treatments"].items()
    ]
    return {
        "like": found["like"],
        "rule": found["rule"],
        "heads": [HEADS[phase] for phase in BONNIE],
        "rows": ours + (study_rows() if _is_of_study(page) else []),
        "original": (page.study or {}).get("phases", "") if _is_of_study(page) else "",
        "more": [_more(labels.get(name, name), mine, found["phases"]) for name, mine in found["treatments"].items()],
    }


def _is_of_study(page: Page) -> bool:
    return "phases" in (page.study or {})


def _more(label: str, mine: dict[str, Phase], phases: list[str]) -> Json:
    """What Bonnie does not print: user and system apart, the whole machine, what a MB costs, what the cache did."""
    rows = [
        {
            "phase": name_of(phase),
            "seconds": in_unit(one["seconds"], 1.0),
            "user": interval(one["cpu_user_share"], ".1f", 100),
            "system": interval(one["cpu_system_share"], ".1f", 100),
            "machine": interval(one["machine_share"], ".1f", 100),
            "cost": interval(one["machine_ns_per_mb"], ",.3f", MS),
            "cache": cache_words(one),
            "members": members_words(one),
        }
        for phase in phases
        if (one := mine.get(phase))
    ]
    return {"label": label, "rows": rows, "with_members": any(row["members"] for row in rows)}


def _applies(page: Page) -> bool:
    found: Phases | None = page.verdict.get("phases")
    return found is not None and found["workload"] == RAW_STORAGE


SECTION = Section(
    key="phases",
    title="Phases",
    template="files/phases.html.j2",
    applies=_applies,
    context=lambda page: {"phases": phases_part(page), "study": page.study},
    evidence=lambda page: [f"{line}." for line in phase_lines(page.verdict)],
)
