"""The difference of two treatments as a waterfall: each part from where the one before it ended, and their sum.

Times are milliseconds from nanoseconds. What no part accounts for is a step of its own and hidden in none.
"""

from typing import Any

import altair as alt

from plimsoll.analysis.breakdown.changes import CANNOT_TELL
from plimsoll.analysis.breakdown.document import Difference
from plimsoll.analysis.breakdown.parts import in_order
from plimsoll.analysis.breakdown.trial import MEAN
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.words.probes.breakdown import is_told, subject

Json = dict[str, Any]
MS = 1e-6
_SHOWN_MAX = 80
_EVENTS_MAX = 3
_ERROR, _ALL = "closure error", "total"


def choice(name: str, label: str, options: list[str]) -> alt.Parameter:
    """A list to choose from; the first is shown without a choice."""
    return alt.param(name, bind=alt.binding_select(options=options, name=f"{label} "), value=options[0])


def interval_text(one: Mean) -> str:
    if one["low"] is None or one["high"] is None:
        return "no interval"
    return f"{one['low'] * MS:.3g} to {one['high'] * MS:.3g}"


def _steps(verdict: Json, row: Difference) -> list[Json]:
    """A waterfall's steps: each part from where the one before it ended, the closure error, and the total."""
    shown, at, steps = subject(row), 0.0, []
    parts = [(part, one) for part, one in row["parts"].items() if one]
    for part, one in [*parts, (_ERROR, row["closure_error"])]:
        steps.append(_step(verdict, shown, part, at, one, _events(row, part)))
        at += one["value"]
    return [*steps, _step(verdict, shown, _ALL, 0.0, row["total"])]


def _events(row: Difference, part: str) -> str:
    """The wait events of a part that changed: those of which it can be told."""
    waits = [wait for wait in row.get("waits", []) if wait["part"] == part and wait["word"] != CANNOT_TELL]
    return ", ".join(f"{wait['name']} {wait['difference']['value'] * MS:+.3g} ms" for wait in waits[:_EVENTS_MAX])


def _step(verdict: Json, shown: str, part: str, at: float, one: Mean, events: str = "") -> Json:
    about = verdict["breakdown"]["parts"].get(part, "not attributed to any part" if part == _ERROR else "")
    found = {"shown": shown, "part": part, "about": about, "from": at * MS, "to": (at + one["value"]) * MS}
    found |= {
        "ms": one["value"] * MS,
        "way": "longer" if one["value"] > 0 else "shorter",
        "interval": interval_text(one),
    }
    if one["low"] is not None and one["high"] is not None:
        found |= {"low": (at + one["low"]) * MS, "high": (at + one["high"]) * MS}
    return found | {"told": is_told(one), "events": events}


def _first_shown(rows: list[Difference]) -> Difference:
    """The difference that is shown first: of the means over all types, that differ from zero, the largest."""

    def place(row: Difference) -> tuple[bool, bool, bool, float]:
        total = row["total"]
        return row["band"] == MEAN, row["kind"] == ALL, is_told(total), abs(total["value"])

    return max(rows, key=place)


def waterfall_figure(verdict: Json) -> Figure:
    """The difference of two treatments, part by part."""
    name, title = "breakdown-difference", "What the difference between two treatments consists of"
    rows: list[Difference] = verdict["breakdown"]["differences"]
    if not rows:
        return Figure(name, title, absent="no two treatments of this run have breakdowns in the same block")
    first = _first_shown(rows)
    rows = [first, *(row for row in rows if row is not first)][:_SHOWN_MAX]
    data = [step for row in rows for step in _steps(verdict, row)]
    order = [*in_order({step["part"] for step in data} - {_ERROR, _ALL}), _ERROR, _ALL]
    x = alt.X("part:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40, labelAlign="right"))
    base = alt.Chart(alt.Data(values=data)).transform_filter("datum.shown == shown")
    y_axis = alt.Axis(format=",~r", tickCount=6, grid=True)
    bars = base.mark_bar(size=26).encode(
        x,
        alt.Y("from:Q", title="ms a transaction", axis=y_axis),
        alt.Y2("to:Q"),
        alt.Color(
            "way:N",
            title=None,
            scale=alt.Scale(domain=["longer", "shorter"], range=[theme.WORSE, theme.BEST]),
            legend=alt.Legend(orient="top"),
        ),
        opacity=alt.OpacityValue(0.35, condition={"test": "datum.told", "value": 1}),
        tooltip=[
            alt.Tooltip("part:N"),
            alt.Tooltip("about:N"),
            alt.Tooltip("ms:Q", title="ms", format="+,.4~g"),
            alt.Tooltip("interval:N"),
            alt.Tooltip("events:N"),
        ],
    )
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, color=theme.UNJUDGED)
    rules = rules.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"))
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=theme.UNJUDGED).encode(alt.Y("zero:Q"))
    chart = alt.layer(zero, bars, rules).properties(width=WIDTH - 90, height=300)
    chosen = choice("shown", "shown", [subject(row) for row in rows])
    caption = (
        "From left to right each part's share of the difference, taken within blocks; what is right of them is their "
        "sum. Lines: the 95 % t interval of the part, over blocks. Pale: the interval includes zero, or there is none."
    )
    return Figure(name, title, caption, spec=spec_of(chart.add_params(chosen)))
