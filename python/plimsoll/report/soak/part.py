"""The section of a soak: the study's table of rounds, what happened and when, and what the record holds."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.metrics import metric_of, unit_of_work
from plimsoll.analysis.soak.document import OneRound, RoundRow, SoakOfRun
from plimsoll.analysis.soak.inside import RULE as INSIDE_RULE
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.report.section import Page, Section
from plimsoll.report.soak.figures import rounds_figure, vmstat_figure
from plimsoll.words.kernel.sentences import event_words, growth_words, kernel_of
from plimsoll.words.soak import sentences

Json = dict[str, Any]
ROWS_SHOWN: Final = 120  # of the table: of more rounds those to which something happened, and evenly spread ones


def _row(one: OneRound, row: RoundRow, form: str, scale: float) -> Json:
    change = row["change"]
    return {
        "round": one["round"],
        "began": sentences.when(one["began_epoch_ns"]),
        "seconds": number(one["seconds"], ",.0f"),
        "value": number(one["value"], form, scale),
        "p99": number(one["latency_ns_p99"], ",.2f", 1e-6),
        "failed": NONE if one["failed"] is None else f"{one['failed']:,}",
        "change": NONE if change is None else sentences.share_words(change),
        "by_machine": number(row["by_machine"], "+,.1f", 100),
        "verdict": row["verdict"] or "",
        "remarks": "; ".join(row["remarks"]),
    }


def _rows(found: SoakOfRun) -> list[Json]:
    shown = metric_of(found["metric"]).shown
    both = list(zip(found["each"], found["drift"]["rounds"], strict=True))
    every = max(1, -(-len(both) // ROWS_SHOWN))
    last = len(both) - 1
    return [
        _row(one, row, shown.form, shown.factor)
        for place, (one, row) in enumerate(both)
        if place in (0, last) or not place % every or row["remarks"]
    ]


def _context(page: Page) -> Json:
    found = sentences.soak_of(page.verdict)
    assert found is not None  # the section does not apply
    kernel = kernel_of(page.verdict)
    events = [] if kernel is None else kernel["events"]
    return {
        "unit": metric_of(found["metric"], page.verdict).shown.unit,
        "rows": _rows(found),
        "count": len(found["each"]),
        "is_by_machine": found["drift"]["at_equal_speed"] is not None,
        "machine": sentences.machine_words(found),
        "steps": [
            *(sentences.step_words(step, found) for step in found["drift"]["steps"]),
            *(sentences.inside_words(change, found, unit_of_work(page.verdict)) for change in found["inside"]),
        ],
        "a_round": None if found["drift"]["a_round"] is None else sentences.share_words(found["drift"]["a_round"]),
        "crashes": [sentences.crash_words(crash) for crash in found["crashes"]],
        "events": [f"{sentences.when(event['epoch_ns'])}: {event_words(event)}" for event in events],
        "interruptions": [sentences.interruption_words(one) for one in found["interruptions"]],
        "growth": [growth_words(one) for one in found["growth"] if one["an_hour"] is not None],
        "notes": [sentences.memory_words(found), *([sentences.thinned_words(found)] if found["thinned"] else [])],
        "rules": [found["drift"]["rule"], INSIDE_RULE, found["rule"]],
    }


def _applies(page: Page) -> bool:
    return sentences.soak_of(page.verdict) is not None


def _figures(page: Page) -> Any:
    found = sentences.soak_of(page.verdict)
    assert found is not None  # as above
    return [rounds_figure(page.verdict, found), vmstat_figure(page)]


def _shows(page: Page) -> Any:
    found = sentences.soak_of(page.verdict)
    figure = None if found is None else rounds_figure(page.verdict, found, is_small=True)
    return None if figure is None or figure.spec is None else figure


SECTION = Section(
    key=sentences.SECTION,
    title="The rounds of the soak",
    template="soak/soak.html.j2",
    applies=_applies,
    context=_context,
    figures=_figures,
    evidence=lambda page: sentences.SENTENCES.leads(page.verdict),
    shows=_shows,
)
