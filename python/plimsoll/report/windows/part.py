"""The section "Windows": how they were, what their noise is, how the intervals closed."""

from typing import Any

from plimsoll.analysis.windows.document import WindowsOfRun
from plimsoll.record.verdict import Comparison
from plimsoll.report.drawing.tables import NONE, number, percent
from plimsoll.report.section import Page, Section
from plimsoll.report.windows.figures import closing_figure, rates_figure
from plimsoll.words.levels import at_words
from plimsoll.words.windows import lead_in_words, lines, members_words, writes_words

Json = dict[str, Any]
_US, _MS = 1e-3, 1e-6


def _facts(verdict: Json) -> list[tuple[str, str]]:
    found: WindowsOfRun = verdict["windows"]
    looks, rounds = found["looks"], found["rounds"]
    each = f"{rounds['least']}" if rounds["least"] == rounds["most"] else f"{rounds['least']} to {rounds['most']}"
    which = "replicate (all groups once)" if found.get("groups") else "block"
    alpha = f"false alarm {looks['alpha']:.2%}, intervals {looks['confidence']:.2%}"
    return [
        ("windows", f"{found['windows']:,} of {found['seconds']:g} s, {found['lead_in_seconds']:g} s lead-in each"),
        ("without a transaction", f"{found['without_transaction']:,}, which count as they are"),
        ("rounds a block", each),
        *((f"group {place}", members) for place, members in enumerate(members_words(verdict), start=1)),
        ("looks", f"after each {which} from the second on" if looks["stops_when_decided"] else "none: ran to its end"),
        ("error of the last look", alpha),
        ("to thaw a server", f"at most {number(found['thaw_ns_max'], ',.0f', _US)} µs"),
        ("to freeze a server", f"at most {number(found['freeze_ns_max'], ',.1f', _MS)} ms"),
    ]


def _noise(comparison: Comparison) -> Json:
    noise = comparison.get("noise")
    levels = noise.get("levels") if noise else None
    return {
        "label": comparison["label"],
        "at": at_words(comparison),
        "window": percent(levels["window_sd_log"] if levels else None),
        "windows": percent(levels["windows_sd_log"] if levels else None),
        "start": percent(levels["start_sd_log"] if levels else None),
        "share": NONE if levels is None or levels["window_share"] is None else f"{levels['window_share']:.0%}",
        "told": number(noise["ratio_told"] if noise else None, ".3f"),
        "rounds": levels["rounds"] if levels else NONE,
        "blocks": comparison["blocks"],
    }


def _context(page: Page) -> Json:
    found: WindowsOfRun = page.verdict["windows"]
    return {
        "lines": [f"{line}." for line in lines(page.verdict)],
        "distortions": [f"{lead_in_words(found['lead_in'])}.", f"{writes_words(found['others_writes'])}."],
        "facts": _facts(page.verdict),
        "noise": [_noise(comparison) for comparison in page.verdict["comparisons"] if comparison.get("noise")],
    }


SECTION = Section(
    key="windows",
    title="Windows",
    template="windows/windows.html.j2",
    applies=lambda page: bool(page.verdict.get("windows")),
    context=_context,
    figures=lambda page: [closing_figure(page.verdict), rates_figure(page.verdict)],
)
