"""Where each transaction's time goes, drawn: stacked bars, what the percentiles are made of, waterfall, timelines.

Times are milliseconds from nanoseconds; a bar's parts and the line across it may lie apart by the closure error, which
is given to no part.
"""

from typing import Any, Literal

import altair as alt

from plimsoll.analysis.breakdown.document import Band, Breakdown, OfType
from plimsoll.analysis.breakdown.parts import OTHERS, gathered, in_order, named_among, spent
from plimsoll.analysis.breakdown.reading import Segment
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.report.breakdown import waterfall as breakdown_waterfall
from plimsoll.report.breakdown.waterfall import MS, choice, interval_text
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour

Json = dict[str, Any]
_STEP = 24
_SHOWN_MAX = 80
_TIP = ",.4~g"
_OTHERS = "parts with less than 1 % of the latency in every band"


def type_name(kind: str) -> str:
    """A type of transaction, or all of them."""
    return "all types" if kind == "all" else kind


def _types(verdict: Json) -> list[tuple[str, str, OfType]]:
    """Every treatment's types: (label, kind, what is known of it)."""
    labels = treatment_labels(verdict)
    breakdown: Breakdown = verdict["breakdown"]
    return [
        (labels.get(treatment, treatment), kind, of_type)
        for treatment, entry in breakdown["treatments"].items()
        for kind, of_type in entry["types"].items()
    ]


def _colour(rows: list[Json], columns: int = 9) -> alt.Color:
    """Parts in their order, those that occur."""
    names = in_order({row["part"] for row in rows})
    return by_colour(
        "part:N", names, [theme.SPENT.get(name, theme.UNJUDGED) for name in names], columns=columns, labelLimit=160
    )


def _stacked(rows: list[Json], x: alt.X, y: alt.Y, colour: alt.Color) -> alt.Chart:
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            x,
            y,
            colour,
            alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("part:N"),
                alt.Tooltip("about:N"),
                alt.Tooltip("ms:Q", title="ms", format=_TIP),
                alt.Tooltip("interval:N"),
            ],
        )
    )


def _values(band: Band) -> dict[str, float]:
    return {part: one["value"] for part, one in band["parts"].items() if one}


def _named(verdict: Json) -> set[str]:
    """The parts that have a name in the legends of all figures; the others are one."""
    bands = [band for _, _, of_type in _types(verdict) for band in of_type["bands"].values() if band is not None]
    return named_among([_values(band) for band in bands])


def _part_rows(verdict: Json, of_band: Band, named: set[str], **more: str) -> list[Json]:
    """A row a part of a band of latency."""
    values = gathered(_values(of_band), named)
    order, about = in_order(set(values)), {**verdict["breakdown"]["parts"], OTHERS: _OTHERS}
    return [
        {**more, "part": part, "about": about.get(part, ""), "ms": value * MS}
        | {"order": order.index(part), "interval": "" if part == OTHERS else interval_text(of_band["parts"][part])}
        for part, value in values.items()
    ]


def bars_figure(verdict: Json) -> Figure:
    """Mean and slowest hundredth side by side, a bar a treatment; the type chosen from a list."""
    name, title = "breakdown", "Where each transaction's time goes"
    rows, marks, named = [], [], _named(verdict)
    for label, kind, of_type in _types(verdict):
        for band in (MEAN, SLOWEST):
            one = of_type["bands"][band]
            if one is not None:
                place = {"treatment": label, "kind": type_name(kind), "band": band}
                rows += _part_rows(verdict, one, named, **place)
                marks.append(place | {"ms": one["latency"]["value"] * MS, "transactions": one["transactions"]})
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    labels = list(dict.fromkeys(row["treatment"] for row in rows))
    colour = _colour(rows)
    panels = []
    for band, words in ((MEAN, "mean"), (SLOWEST, "slowest 1 %")):
        left = band == MEAN
        axis = alt.Axis(labels=left, labelLimit=220, domain=True)
        y = alt.Y("treatment:N", sort=labels, scale=alt.Scale(domain=labels), title=None, axis=axis)
        x = alt.X("ms:Q", stack="zero", title="ms a transaction", axis=alt.Axis(format=",~r", tickCount=5, grid=True))
        ticks = (
            alt.Chart(alt.Data(values=[row for row in marks if row["band"] == band]))
            .transform_filter("datum.kind == kind")
            .mark_tick(thickness=2, size=_STEP - 4)
            .encode(
                alt.X("ms:Q"),
                y,
                tooltip=[alt.Tooltip("treatment:N"), alt.Tooltip("ms:Q", format=_TIP), alt.Tooltip("transactions:Q")],
            )
        )
        bars = _stacked([row for row in rows if row["band"] == band], x, y, colour)
        panel = alt.layer(bars.transform_filter("datum.kind == kind"), ticks)
        panels.append(panel.properties(width=(WIDTH - 280) // 2, height={"step": _STEP}, title=words))
    chart = alt.concat(*panels, columns=2, spacing=24).add_params(choice("kind", "type", kinds))
    caption = (
        "Means over blocks of the transactions' parts; the line across a bar is the latency from the planned start, "
        "measured separately from the parts: the gap between the two is the closure error. The slowest 1 % are those "
        "of each trial and type beyond its p99; point at a line for their number. cpu stands for itself where fewer "
        "than 30 of the kernel's ticks fell on it: too few to split it into the server's code and the kernel's."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def shown_figure(verdict: Json) -> Figure | None:
    """For the first screen of a run that compares nothing: the mean of all types, a bar a treatment."""
    named, rows = _named(verdict), []
    for label, _, of_type in _first_types(verdict):
        if of_type["bands"][MEAN] is not None:
            rows += _part_rows(verdict, of_type["bands"][MEAN], named, treatment=label)
    if not rows:
        return None
    labels = list(dict.fromkeys(row["treatment"] for row in rows))
    y = alt.Y("treatment:N", sort=labels, title=None, axis=alt.Axis(labelLimit=120, domain=True))
    x = alt.X("ms:Q", stack="zero", title="ms a transaction", axis=alt.Axis(format=",~r", tickCount=5, grid=True))
    chart = _stacked(rows, x, y, _colour(rows, columns=4)).properties(width=SHOWN_WIDTH - 140, height={"step": 40})
    return Figure("answer", "Where each transaction's time goes", "Means over blocks.", spec=spec_of(chart))


def _first_types(verdict: Json) -> list[tuple[str, str, OfType]]:
    """Of each treatment all types together, or the only one."""
    found: dict[str, tuple[str, str, OfType]] = {}
    for one in _types(verdict):
        found.setdefault(one[0], one)
    return list(found.values())


def bands_figure(verdict: Json) -> Figure:
    """Bands of latency from the fastest half to the slowest hundredth, in ms and as shares."""
    name, title = "breakdown-percentiles", "What the p99 is made of"
    named = _named(verdict)
    rows = [
        row
        for label, kind, of_type in _types(verdict)
        for band, one in of_type["bands"].items()
        if one is not None and band != MEAN
        for row in _part_rows(verdict, one, named, shown=f"{label}, {type_name(kind)}", band=band)
    ]
    shown = list(dict.fromkeys(row["shown"] for row in rows))
    bands = [band for band in verdict["breakdown"]["bands"] if band != MEAN]
    colour, panels = _colour(rows), []
    sides: list[tuple[Literal["zero", "normalize"], str, str]] = [
        ("zero", "ms a transaction", ",~r"),
        ("normalize", "share of the time", "%"),
    ]
    for stack, words, form in sides:
        axis = alt.Axis(labels=stack == "zero", domain=True)
        y = alt.Y("band:N", sort=bands, scale=alt.Scale(domain=bands), title=None, axis=axis)
        x = alt.X("ms:Q", stack=stack, title=words, axis=alt.Axis(format=form, tickCount=5, grid=True))
        panel = _stacked(rows, x, y, colour).transform_filter("datum.shown == shown && datum.ms >= 0")
        panels.append(panel.properties(width=(WIDTH - 160) // 2, height={"step": 30}))
    chart = alt.concat(*panels, columns=2, spacing=24).add_params(choice("shown", "shown", shown[:_SHOWN_MAX]))
    caption = (
        "Transactions of each trial and type in bands of their latency, means over blocks. A part below zero (an "
        "answer that the client had before the server noted it as sent) is left out here and stands in the table."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def _within(segment: Segment) -> str:
    """What the record has one row for: a request, or a transaction of the server with several."""
    number, requests = segment.get("row"), segment.get("requests")
    if number is None:
        return "between"
    return f"request {number}" if requests == 1 else f"transaction {number} of the server, {requests} requests"


def timelines_figure(verdict: Json) -> Figure:
    """The ten slowest transactions of a treatment, each a line in time."""
    name, title = "breakdown-slowest", "The ten slowest transactions"
    breakdown: Breakdown = verdict["breakdown"]
    if any(entry["one_in_max"] > 1 for entry in breakdown["treatments"].values()):
        title += " of those recorded"
    labels = treatment_labels(verdict)
    rows: list[Json] = []
    entries = breakdown["treatments"].values()
    named = named_among(spent(one["segments"]) for entry in entries for one in entry["slowest"])
    for treatment, entry in breakdown["treatments"].items():
        for place, one in enumerate(entry["slowest"], 1):
            text = f"{place}. {one['kind']}, {one['latency_ns'] * MS:,.1f} ms, trial {one['trial']}"
            text += " (not all drawn)" if one["cut"] else ""
            for segment in one["segments"]:
                at, ns = segment["at_ns"] * MS, segment["ns"] * MS
                row = {"shown": labels.get(treatment, treatment), "transaction": text, "place": place}
                part = segment["part"] if segment["part"] in named else OTHERS
                row |= {"part": part, "from": round(at, 6), "to": round(at + ns, 6), "ms": round(ns, 6)}
                rows.append(row | {"within": _within(segment), "wait": segment.get("wait", "")})
    if not rows:
        return Figure(name, title, absent="no transaction has requests")
    shown = list(dict.fromkeys(row["shown"] for row in rows))
    chart = (
        alt.Chart(alt.Data(values=rows))
        .transform_filter("datum.shown == shown")
        .mark_bar(height={"band": 0.7}, strokeWidth=0)
        .encode(
            alt.X("from:Q", title="ms since it was due", axis=alt.Axis(format=",~r", tickCount=8, grid=True)),
            alt.X2("to:Q"),
            alt.Y("transaction:N", sort=alt.SortField("place"), title=None, axis=alt.Axis(labelLimit=280, domain=True)),
            _colour(rows),
            tooltip=[
                alt.Tooltip("part:N"),
                alt.Tooltip("wait:N"),
                alt.Tooltip("ms:Q", format=_TIP),
                alt.Tooltip("within:N"),
                alt.Tooltip("transaction:N"),
            ],
        )
        .properties(width=WIDTH - 300, height={"step": 26})
        .add_params(choice("shown", "shown", shown))
    )
    caption = (
        "From the time each was due. Of a transaction of the server, or of a request recorded by itself, only the sums "
        "are known: its parts, the waits for its client among them, stand in the order of the legend, not in the order "
        "in which they happened; what they leave of it stays blank."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def breakdown_figures(verdict: Json) -> list[Figure]:
    """The figures of the breakdown; none where the run has none."""
    breakdown: Breakdown | None = verdict.get("breakdown")
    if not breakdown or breakdown["why_absent"]:
        return []
    return [
        bars_figure(verdict),
        breakdown_waterfall.waterfall_figure(verdict),
        bands_figure(verdict),
        timelines_figure(verdict),
    ]
