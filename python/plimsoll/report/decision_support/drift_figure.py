"""The throughput tests of a series, drawn as changes against the first with their trend, beside study S3's."""

from dataclasses import replace
from typing import Any

import altair as alt

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.decision_support.document import DecisionSupport, Drifted
from plimsoll.analysis.decision_support.formulas import drift
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import intervals
from plimsoll.report.original_studies import S3_THROUGHPUT

Json = dict[str, Any]
STUDY = "study S3"
_KINDS = {"as the one before left it": "circle", "begun with cold caches": "triangle-down"}


def answer_figure(verdict: Json) -> Figure | None:
    """The same for the first screen of a run that compares nothing."""
    figure = None if verdict["comparisons"] else drift_figure(verdict, SHOWN_WIDTH - 70, 200)
    return None if figure is None else replace(figure, name="answer")


def drift_figure(verdict: Json, width: int = WIDTH - 70, height: int = 260) -> Figure | None:
    """Change of throughput against the first test, by the test's number; None where no test was repeated."""
    labels, points, lines = treatment_labels(verdict), [], []
    support: DecisionSupport = verdict["decision_support"]
    for treatment, one in support["treatments"].items():
        label = labels.get(treatment, treatment)
        points += [_point(label, row) for row in one["drift"] if row["value"] is not None and _is_against(row)]
        if one["trend"] is not None:
            lines += [{"series": label, "test": at["run"], "change": at["change"]} for at in one["trend"]["line"]]
    if not points:
        return None
    shown = list(dict.fromkeys(row["series"] for row in points))
    last = max(row["test"] for row in points)
    kind = next(iter(_KINDS))
    points += [
        {"series": STUDY, "test": number, "change": change, "kind": kind, "remarks": ""}
        for number, change in zip(S3_THROUGHPUT, drift(list(S3_THROUGHPUT.values())), strict=True)
        if number <= last
    ]
    scale = alt.Scale(domain=[*shown, STUDY], range=[*theme.SERIES[: len(shown)], theme.UNJUDGED])
    legend = alt.Legend(orient="top", direction="horizontal", columns=4, labelLimit=260)
    colour = alt.Color("series:N", title=None, sort=[*shown, STUDY], scale=scale, legend=legend)
    along = alt.Scale(domain=[0.7, last + 0.3], nice=False)
    x = alt.X(
        "test:Q", title="throughput test", axis=alt.Axis(format="d", values=list(range(1, last + 1))), scale=along
    )
    y = alt.Y("change:Q", title="against the first", axis=alt.Axis(format="+.1%", tickCount=6, grid=True))
    kinds = [name for name in _KINDS if any(row["kind"] == name for row in points)]
    domain = alt.Scale(domain=kinds, range=[_KINDS[name] for name in kinds])
    shape = alt.Shape("kind:N", title=None, scale=domain, legend=legend if len(kinds) > 1 else None)
    base = alt.Chart(alt.Data(values=points))
    tips = [
        alt.Tooltip("series:N"),
        alt.Tooltip("test:Q"),
        alt.Tooltip("change:Q", format="+.2%"),
        alt.Tooltip("remarks:N"),
    ]
    layers: list[Any] = []
    if lines:
        trend = alt.Chart(alt.Data(values=lines))
        layers.append(trend.mark_line(strokeDash=[5, 3], strokeWidth=1.4).encode(x, y, colour))
    layers += [
        intervals(base, 1.6, x, colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, colour, shape, tooltip=tips),
    ]
    chart = alt.layer(*layers).properties(width=width, height=height)
    caption = (
        "Throughput of each test against the first of its series, means over blocks; the broken line is the trend. "
        "A test that follows a kill begins with cold caches."
    )
    return Figure("drift", "Throughput from test to test", caption, spec=spec_of(chart))


def _is_against(row: Drifted) -> bool:
    """Whether there is a change to draw: of the first test it is none by definition."""
    return row["run"] == 1 or row["change"] is not None


def _point(label: str, row: Drifted) -> Json:
    change = row["change"]
    kind = next((name for name in _KINDS if name in row["remarks"]), next(iter(_KINDS)))
    point: Json = {"series": label, "test": row["run"], "change": change["value"] if change else 0.0, "kind": kind}
    point["remarks"] = "; ".join(row["remarks"])
    if change is None or change["low"] is None:
        return point
    return point | {"low": change["low"], "high": change["high"]}
