"""Latency against rate with the load line and the knee drawn on it, and the line as the search found it."""

from dataclasses import replace
from typing import Any

import altair as alt

from plimsoll.analysis.capacity.document import Capacity, PercentileFound, SearchTrial
from plimsoll.quantities import rate
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour, decade_ticks, intervals
from plimsoll.words.capacity.capacity import unit

Json = dict[str, Any]
_VERDICTS = {"holds": theme.BEST, "breaks": theme.WORSE, "cannot tell": theme.UNJUDGED, "generator": "#CC79A7"}
_SHAPES = {"holds": "circle", "breaks": "cross", "cannot tell": "diamond", "generator": "square"}
_LINE, _KNEE = "#0072B2", "#E69F00"
_HEIGHT, _HEIGHT_SHOWN = 380, 240
_DRAWN_ABOVE = 30.0  # a percentile farther above the objective is drawn at the upper edge


def capacity_figures(verdict: Capacity) -> list[Figure]:
    """All figures of the page."""
    return [answer_curve(verdict), search_figure(verdict)]


def answer_curve(verdict: Capacity, name: str = "", width: int = WIDTH - 80, height: int = _HEIGHT) -> Figure:
    """What the search is about over what it varied."""
    if unit(verdict) == "/s":
        return curve_figure(verdict, name or "latency-against-rate", width, height)
    return conforming_figure(verdict, name or "conforming-connections", width, height)


def _judged(verdict: Capacity) -> list[SearchTrial]:
    return [one for one in verdict["trials"] if one["rate"] is not None and one["verdict"]]


def _curve_rows(verdict: Capacity) -> list[Json]:
    """A row for each percentile of the objective, and for the median where it is none of them."""
    rows = []
    top = max(term["limit_ns"] for term in verdict["objective"]["percentiles"]) * _DRAWN_ABOVE / 1e6
    for one in _judged(verdict):
        named: dict[str, PercentileFound] = {
            term["term"].partition(" ")[0]: term for term in one["terms"] if "limit_ns" in term
        }
        if "p50" in one.get("percentiles", {}):
            named.setdefault("p50", one["percentiles"]["p50"])
        for name, percentile in named.items():
            value = top if percentile["value"] is None else percentile["value"] / 1e6
            row: Json = {
                "rate": one["rate"],
                "percentile": name,
                "ms": min(value, top),
                "verdict": one["verdict"],
                "trial": one["number"],
                "beyond": value >= top,
                "why": "; ".join(one["reasons"]),
            }
            if percentile["low"]:
                high = top if percentile["high"] is None else percentile["high"] / 1e6
                row |= {"low": min(percentile["low"] / 1e6, top), "high": min(high, top)}
            rows.append(row)
    return rows


def _rules(verdict: Capacity, room: int) -> list[Any]:
    """The objective's limits, the load line with its interval, and the knee; `room` is the height of the figure."""
    layers = []
    limits: list[Json] = [
        {"ms": term["limit_ns"] / 1e6, "label": f"p{term['level']:g} objective"}
        for term in verdict["objective"]["percentiles"]
    ]
    if (wanted := verdict["objective"].get("conforming")) is not None:
        limits = [{"ms": wanted, "label": "objective"}]
    base = alt.Chart(alt.Data(values=limits))
    layers.append(base.mark_rule(strokeDash=[6, 4], strokeWidth=1.4, color=theme.WORSE).encode(alt.Y("ms:Q")))
    layers.append(
        base.mark_text(align="left", dy=-7, color=theme.WORSE).encode(
            alt.Y("ms:Q"), x=alt.XValue(4), text=alt.Text("label:N")
        )
    )
    line, knee = verdict["line"], verdict["knee"]
    marks = []
    if line["status"] in ("found", "at least") and line["rate"]:
        at_least = "at least " if line["status"] == "at least" else ""
        label = f"load line: {at_least}{rate(line['rate'])}{unit(verdict)}"
        marks.append({"rate": line["rate"], "label": label, "what": "line"})
        if line["low"] and line["high"] and line["high"] > line["low"]:
            band = alt.Chart(alt.Data(values=[{"low": line["low"], "high": line["high"]}]))
            layers.insert(0, band.mark_rect(opacity=0.16, color=_LINE).encode(alt.X("low:Q"), alt.X2("high:Q")))
    if knee is not None:
        if knee["low"] and knee["high"] > knee["low"]:
            band = alt.Chart(alt.Data(values=[{"low": knee["low"], "high": knee["high"]}]))
            layers.insert(0, band.mark_rect(opacity=0.10, color=_KNEE).encode(alt.X("low:Q"), alt.X2("high:Q")))
        marks.append({"rate": knee["rate"], "label": f"the queue grows: {rate(knee['rate'])}/s", "what": "knee"})
    for mark, colour, place in (
        (row, _LINE if row["what"] == "line" else _KNEE, index) for index, row in enumerate(marks)
    ):
        one = alt.Chart(alt.Data(values=[mark]))
        layers.append(one.mark_rule(strokeWidth=2.2, color=colour).encode(alt.X("rate:Q")))
        layers.append(
            one.mark_text(align="right", dx=-6, color=colour, fontWeight=600).encode(
                alt.X("rate:Q"), y=alt.YValue(room - 12 - 16 * place), text=alt.Text("label:N")
            )
        )
    return layers


def answer_figure(verdict: Capacity) -> Figure | None:
    """The curve for the first screen; None where no trial has a result."""
    figure = answer_curve(verdict, "answer", SHOWN_WIDTH - 60, _HEIGHT_SHOWN)
    return None if figure.spec is None else replace(figure, caption="")


def curve_figure(
    verdict: Capacity, name: str = "latency-against-rate", width: int = WIDTH - 80, height: int = _HEIGHT
) -> Figure:
    """The latency-against-rate curve."""
    title = "Latency against arrival rate"
    rows = _curve_rows(verdict)
    if not rows:
        return Figure(name, title, absent="no trial at a planned rate has a result")
    present = [word for word in _VERDICTS if any(row["verdict"] == word for row in rows)]
    values = [row["ms"] for row in rows] + [row["low"] for row in rows if row.get("low")]
    values += [term["limit_ns"] / 1e6 for term in verdict["objective"]["percentiles"]]
    bottom, top = min(values) / 1.3, max(values) * 1.6
    for row in rows:
        if "high" in row:
            row["drawn_high"] = min(row["high"], top)
    x = alt.X(
        "rate:Q",
        title="arrivals per second",
        scale=alt.Scale(zero=True, nice=False),
        axis=alt.Axis(format=",~r", tickCount=10, labelOverlap=True),
    )
    y = alt.Y(
        "ms:Q",
        title="latency, ms",
        scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
        axis=alt.Axis(format="~g", values=[tick for tick in decade_ticks(bottom, top) if bottom <= tick <= top]),
    )
    colour = by_colour("verdict:N", present, [_VERDICTS[word] for word in present])
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=present, range=[_SHAPES[word] for word in present]), legend=None
    )
    names = sorted({row["percentile"] for row in rows}, key=lambda text: float(text[1:]))
    dash = alt.StrokeDash("percentile:N", title=None, sort=list(reversed(names)), legend=alt.Legend(orient="top"))
    base = alt.Chart(alt.Data(values=rows))
    means = base.transform_aggregate(ms="median(ms)", groupby=["rate", "percentile"])
    tips = [
        alt.Tooltip("percentile:N"),
        alt.Tooltip("rate:Q", format=",.4~r"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("trial:Q"),
        alt.Tooltip("why:N"),
    ]
    tips += [alt.Tooltip(f"{key}:Q", format=",.3~r") for key in ("ms", "low", "high")]
    chart = alt.layer(
        *_rules(verdict, height),
        means.mark_line(strokeWidth=1.2, opacity=0.6, color=theme.SHADE).encode(x, y, strokeDash=dash),
        intervals(base, 2, x, high="drawn_high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
    ).properties(width=width, height=height)
    caption = (
        "A mark a trial: the objective's percentiles and the median, each with its 95 % interval, which allows for the "
        "correlation of latencies under queueing. Red dashes: the objective. Blue: the load line with its interval. "
        "Yellow: where the queue starts to grow, with its interval. Logarithmic axis; an interval without an upper "
        f"bound reaches the upper edge, and what lies more than {_DRAWN_ABOVE:g} times above "
        "the objective is drawn at the upper edge."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def conforming_figure(verdict: Capacity, name: str, width: int, height: int) -> Figure:
    """The share of conforming connections over how many there were."""
    title = "Conforming connections"
    rows = [
        {
            "rate": one["rate"],
            "ms": term["value"],
            "verdict": one["verdict"],
            "trial": one["number"],
            "why": "; ".join(one["reasons"]),
        }
        for one in _judged(verdict)
        for term in one["terms"]
        if "limit_ns" not in term
    ]
    if not rows:
        return Figure(name, title, absent="no trial with lines has a result")
    present = [word for word in _VERDICTS if any(row["verdict"] == word for row in rows)]
    x = alt.X("rate:Q", title="connections", scale=alt.Scale(zero=True, nice=False), axis=alt.Axis(format=",~r"))
    y = alt.Y("ms:Q", title="conforming, of all", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    colour = by_colour("verdict:N", present, [_VERDICTS[word] for word in present])
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=present, range=[_SHAPES[word] for word in present]), legend=None
    )
    tips = [
        alt.Tooltip("rate:Q", format=",.0f"),
        alt.Tooltip("ms:Q", format=".2%"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("trial:Q"),
        alt.Tooltip("why:N"),
    ]
    base = alt.Chart(alt.Data(values=rows))
    chart = alt.layer(
        *_rules(verdict, height),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
    ).properties(width=width, height=height)
    caption = (
        "A mark a trial: the share of its connections that got their answers fast enough. Red dashes: the objective. "
        "Blue: the load line with its interval."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def search_figure(verdict: Capacity) -> Figure:
    """The rates in the order in which they were tried: where the machine drifts, verdicts at one rate differ."""
    name, title = "search", "The search, trial by trial"
    rows = [
        {"trial": one["number"], "rate": one["rate"], "verdict": one["verdict"], "why": "; ".join(one["reasons"])}
        for one in _judged(verdict)
    ]
    if not rows:
        return Figure(name, title, absent="no trial at a planned rate has a result")
    present = [word for word in _VERDICTS if any(row["verdict"] == word for row in rows)]
    x = alt.X("trial:O", title="trial", axis=alt.Axis(labelAngle=0))
    what = "arrivals per second" if unit(verdict) == "/s" else "connections"
    y = alt.Y("rate:Q", title=what, scale=alt.Scale(zero=False), axis=alt.Axis(format=",~r"))
    colour = by_colour("verdict:N", present, [_VERDICTS[word] for word in present])
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=present, range=[_SHAPES[word] for word in present]), legend=None
    )
    base = alt.Chart(alt.Data(values=rows))
    layers = [
        base.mark_line(strokeWidth=1, opacity=0.35, color=theme.SHADE).encode(x, y),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x,
            y,
            color=colour,
            shape=shape,
            tooltip=[
                alt.Tooltip("trial:O"),
                alt.Tooltip("rate:Q", format=",.4~r"),
                alt.Tooltip("verdict:N"),
                alt.Tooltip("why:N"),
            ],
        ),
    ]
    line = verdict["line"]
    if line["rate"]:
        rule = alt.Chart(alt.Data(values=[{"rate": line["rate"]}]))
        layers.append(rule.mark_rule(strokeWidth=2, color=_LINE).encode(alt.Y("rate:Q")))
    chart = alt.layer(*layers).properties(width=WIDTH - 80, height=240)
    caption = "Every trial at a planned rate, in order. Blue: the load line. Repeats at the end are in random order."
    return Figure(name, title, caption, spec=spec_of(chart))
