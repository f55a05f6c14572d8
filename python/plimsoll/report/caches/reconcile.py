"""Device reads against what the page-cache probe saw brought: stacked bars with the device's own count, and a table."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from plimsoll.analysis.caches.document import MeanDeviceReads, PartOfReads, Reconciliation
from plimsoll.analysis.caches.reconcile import BROUGHT
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.instruments import instrument_of
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import Figure, level_x, panel_width, spec_of
from plimsoll.report.drawing.marks import by_colour, side_by_side, titled
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.report.section import Page, Section
from plimsoll.words.levels import at_words

Json = dict[str, Any]
_MB = 1e-6
_COLUMNS = 3


def _found(verdict: Json, treatment: str) -> MeanDeviceReads | None:
    reconciliation: MeanDeviceReads | None = (verdict["treatments"].get(treatment) or {}).get("reconciliation")
    return reconciliation


def _whole(verdict: Json) -> Reconciliation:
    reconciliation: Reconciliation = verdict["reconciliation"]
    return reconciliation


def _there(verdict: Json, parts: Mapping[PartOfReads, str]) -> list[str]:
    """The names of the parts of which any level has some."""
    levels = [level["treatment"] for comparison in verdict["comparisons"] for level in comparison["levels"]]
    known = [one for treatment in levels if (one := _found(verdict, treatment)) is not None]
    return [name for key, name in parts.items() if any(one[key] for one in known)]


def _panel(verdict: Json, comparison: Json, parts: Mapping[PartOfReads, str], width: int) -> Any | None:
    rows, reads = [], []
    for level in comparison["levels"]:
        reconciliation = _found(verdict, level["treatment"])
        if reconciliation is None:
            continue
        for place, (key, name) in enumerate(parts.items()):
            if (amount := reconciliation[key]) is not None:
                rows.append({"level": level["level"], "part": name, "mb": amount * _MB, "order": place})
        reads.append({"level": level["level"], "mb": reconciliation["device_bytes"] * _MB})
    if not rows:
        return None
    order = [level["level"] for level in comparison["levels"]]
    x = level_x(comparison, width)
    names = list(theme.BROUGHT)
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(size=max(14, min(46, width // (2 * len(order)))))
        .encode(
            x,
            alt.Y("mb:Q", stack="zero", title="MB in the measured segment", axis=alt.Axis(format=",~r", tickCount=6)),
            by_colour(
                "part:N",
                names,
                list(theme.BROUGHT.values()),
                values=_there(verdict, parts),
                columns=6,
                labelLimit=240,
            ),
            alt.Order("order:Q"),
            tooltip=[alt.Tooltip("part:N"), alt.Tooltip("mb:Q", title="MB", format=",.2f"), alt.Tooltip("level:N")],
        )
    )
    ticks = (
        alt.Chart(alt.Data(values=reads))
        .mark_tick(thickness=2.5, size=max(24, min(66, width // (2 * len(order)) + 18)))
        .encode(x, alt.Y("mb:Q"), tooltip=[alt.Tooltip("mb:Q", title="device reads, MB", format=",.2f")])
    )
    return alt.layer(bars, ticks).properties(width=width, height=290)


def reconciliation_figure(verdict: Json) -> Figure:
    """One panel a comparison, one bar a level."""
    name, title = "device-reads-explained", "Device reads, and what explains them"
    probe = instrument_of(verdict, "page_cache")
    if probe["why_absent"]:
        return Figure(name, title, absent=probe["why_absent"])
    if not verdict["comparisons"]:
        return Figure(name, title, absent="this run compares no levels; the table has every treatment")
    parts = _whole(verdict)["parts"]
    width = panel_width(len(verdict["comparisons"][:_COLUMNS]))
    panels = []
    for comparison in verdict["comparisons"]:
        panel = _panel(verdict, comparison, parts, width)
        if panel is not None:
            panels.append(titled(panel, at_words(comparison)))
    if not panels:
        return Figure(name, title, absent="no trial that entered the verdict has both the probe and device counters")
    chart = side_by_side(panels, _COLUMNS)
    caption = (
        "Bars: what the probe saw loaded into the page cache, what was swapped in, and the remainder, means over "
        "blocks. The line across a bar is what the device read. A remainder below zero is drawn below zero: then more "
        "was loaded than the device read."
    )
    if probe.get("lost"):
        title += " (lower bound)"
    if probe.get("note"):
        caption += f" {probe['note']}"
    return Figure(name, title, caption, spec=spec_of(chart))


def reconciliation_rows(verdict: Json) -> list[Json]:
    """The same in numbers, one row a treatment, in MB."""
    labels, rows = treatment_labels(verdict), []
    for treatment in verdict["treatments"]:
        reconciliation = _found(verdict, treatment)
        if reconciliation is None:
            continue
        cells = [number(reconciliation[key], ",.2f", _MB) for key in _whole(verdict)["parts"]]
        share = reconciliation["unexplained_share"]
        rows.append(
            {
                "label": labels.get(treatment, treatment),
                "device": number(reconciliation["device_bytes"], ",.2f", _MB),
                "parts": cells,
                "share": NONE if share is None else f"{share:+.1%}",
                "exceeds": reconciliation["exceeds"],
                "blocks": reconciliation["blocks"],
            }
        )
    return rows


def class_rows(verdict: Json) -> list[Json]:
    """What was brought, by file class, in MB; classes of which nothing was brought are left out."""
    labels, rows = treatment_labels(verdict), []
    for treatment in verdict["treatments"]:
        reconciliation = _found(verdict, treatment)
        for name, parts in reconciliation["classes"].items() if reconciliation else ():
            cells = [number(parts[part], ",.2f", _MB) for part in BROUGHT]
            rows.append({"label": labels.get(treatment, treatment), "class": name, "parts": cells})
    return rows


def _context(page: Page) -> Json:
    return {
        "reconciled": reconciliation_rows(page.verdict),
        "reconciliation": _whole(page.verdict),
        "classes": class_rows(page.verdict),
    }


SECTION = Section(
    key="device",
    title="What the device read, and why",
    template="caches/reconcile.html.j2",
    context=_context,
    figures=lambda page: [reconciliation_figure(page.verdict)],
)
