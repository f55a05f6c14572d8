"""The kernel itself: what its log told, and what of its memory grows."""

from __future__ import annotations

from typing import Any

from plimsoll.report.section import Page, Section
from plimsoll.words.kernel import sentences, slabs

Json = dict[str, Any]


def _context(page: Page) -> Json:
    kernel = sentences.kernel_of(page.verdict)
    assert kernel is not None  # the section does not apply
    return {
        "events": [sentences.event_words(event) for event in kernel["events"]],
        "growth": [
            (sentences.growth_words(one), sentences.floor_words(one), slabs.holds(one["name"]) or "")
            for one in kernel["growth"]
        ],
        "trials": len(kernel["trials"]),
        "not_shown": kernel["lost"].get("events", 0),
    }


SECTION = Section(
    key=sentences.SECTION,
    title="The kernel: its log, and what it holds",
    template="kernel/kernel.html.j2",
    applies=lambda page: sentences.kernel_of(page.verdict) is not None,
    context=_context,
    evidence=lambda page: sentences.SENTENCES.warns(page.verdict),
)
