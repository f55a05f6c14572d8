"""Both numbers on one page: what Bonnie got of each storage, and what the database got of it."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.files.metrics import SEEKS
from plimsoll.analysis.places.document import Given, Promise, PromiseRow
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.report.files.cells import MB
from plimsoll.report.section import Page, Section
from plimsoll.words.places import SECTION as KEY
from plimsoll.words.places import promise_lines

Json = dict[str, Any]


def table(found: Promise) -> list[list[str]]:
    """A row a storage: each phase's rate with its ratio, the database's, and the word that may be said."""
    return [
        [row["storage"], *(_given(phase, row) for phase in found["phases"]), _database(row), row["verdict"] or ""]
        for row in found["rows"]
    ]


def heads(found: Promise) -> list[str]:
    """Of the columns of phases."""
    return [f"{phase}{'/s' if phase == SEEKS else ', MB/s'}" for phase in found["phases"]]


def _given(phase: str, row: PromiseRow) -> str:
    one: Given | None = row["phases"].get(phase)
    if one is None:
        return NONE
    scale = 1.0 if phase == SEEKS else MB
    return _both(number(one["rate"]["value"] * scale, ",.1f"), one["ratio"])


def _database(row: PromiseRow) -> str:
    return _both(number(row["rate"]["value"], ",.1f"), row["ratio"])


def _both(rate: str, ratio: Mean | None) -> str:
    if ratio is None:
        return rate
    ends = "" if ratio["low"] is None else f" [{ratio['low']:.2f}, {ratio['high']:.2f}]"
    return f"{rate} ({ratio['value']:.2f} x{ends})"


def _context(page: Page) -> Json:
    found: Promise = page.verdict["promise"]
    study = (page.study or {}).get("promise", "")
    return {"promise": found, "heads": heads(found), "rows": table(found), "original": study}


SECTION = Section(
    key=KEY,
    title="Did what Bonnie promised reach the database?",
    template="places/promise.html.j2",
    applies=lambda page: bool(page.verdict.get("promise")),
    context=_context,
    heads="places/promise_head.html.j2",
    evidence=lambda page: [f"{line}." for line in promise_lines(page.verdict)],
)
