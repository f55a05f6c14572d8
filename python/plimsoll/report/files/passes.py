"""Passes over files: throughput with its CPU cost by pass and treatment, as study S5 pairs them."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.files.document import Phase, Phases
from plimsoll.analysis.files.metrics import SEQUENTIAL_IO, name_of
from plimsoll.report.drawing.tables import interval
from plimsoll.report.files.cells import MB, MS, cache_words, in_unit
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.files import phase_lines

Json = dict[str, Any]


def passes_part(page: Page) -> Json:
    """What the template draws: a table a pass, a row a treatment."""
    found: Phases = page.verdict["phases"]
    labels = treatment_labels(page.verdict)
    return {
        "like": found["like"],
        "rule": found["rule"],
        "original": (page.study or {}).get("passes", ""),
        "tables": [
            {
                "pass": name_of(phase),
                "rows": [
                    _row(labels.get(name, name), mine[phase])
                    for name, mine in found["treatments"].items()
                    if mine.get(phase)
                ],
            }
            for phase in found["phases"]
        ],
    }


def _row(label: str, one: Phase) -> Json:
    return {
        "label": label,
        "rate": in_unit(one["bytes_per_second"], MB),
        "cost": interval(one["machine_ns_per_mb"], ",.3f", MS),
        "load": interval(one["load_ns_per_mb"], ",.3f", MS),
        "machine": interval(one["machine_share"], ".1f", 100),
        "least": interval(one["min_transfer_share"], ".0f", 100),
        "cache": cache_words(one),
    }


def _applies(page: Page) -> bool:
    found: Phases | None = page.verdict.get("phases")
    return found is not None and found["workload"] == SEQUENTIAL_IO


SECTION = Section(
    key="passes",
    title="Passes",
    template="files/passes.html.j2",
    applies=_applies,
    context=lambda page: {"passes": passes_part(page), "study": page.study},
    evidence=lambda page: [f"{line}." for line in phase_lines(page.verdict)],
)
