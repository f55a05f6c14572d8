"""Figures of a measure by level: interval, block points, one panel for each combination of the other factors."""

from typing import Any

import altair as alt

from plimsoll.analysis.comparing.a_a import band
from plimsoll.analysis.comparing.unbounded import reading
from plimsoll.analysis.metrics import metric_of
from plimsoll.record.verdict import Comparison, Level
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import Figure, level_axis, panel_width, spec_of
from plimsoll.report.drawing.marks import intervals, side_by_side, titled
from plimsoll.words.levels import at_words

Json = dict[str, Any]
HEIGHT = 270
HEIGHT_HALF = 210
_COLUMNS = 3
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down")
_SET = {"best": "not distinguishable from the best", "worse": "worse", "unjudged": "too few blocks"} | {
    "unbounded": "at least: unbounded in some block",
    "stood_still": "at most: stood still in some block",
}


def _set(level: Level) -> str:
    if in_blocks := level.get("unbounded"):
        return _SET["stood_still" if in_blocks.get("stood_still") else "unbounded"]
    return _SET["best" if level["in_best_set"] else "worse" if level["verdict"] == "worse" else "unjudged"]


def _bound(key: str, is_beyond: bool) -> str:
    if not is_beyond:
        return ""
    return ": at most" if metric_of(key).better == "higher" else ": at least"


def _rows(verdict: Json, comparison: Comparison, key: str, scale: float) -> tuple[list[Json], list[Json]]:
    """Estimates and block points of one metric, in display units."""
    numbers = {trial["number"]: trial for trial in verdict["trials"]}
    estimates, points = [], []
    for level in comparison["levels"]:
        treatment = verdict["treatments"].get(level["treatment"]) or {}
        mean = (treatment.get("metrics") or {}).get(key)
        if not mean:
            continue
        row = {"level": level["level"], "set": _set(level), "value": mean["value"] * scale, "blocks": mean["blocks"]}
        if mean["low"] is not None:
            row |= {"low": mean["low"] * scale, "high": mean["high"] * scale}
        estimates.append(row)
        for number in treatment.get("trials") or []:
            value, is_beyond = reading(numbers[number], key)
            if value is not None:
                block = f"block {numbers[number]['block']}" + _bound(key, is_beyond)
                where = {"level": level["level"], "block": block, "trial": number}
                points.append({**where, "value": value * scale})
    return estimates, points


def _band(verdict: Json, comparison: Comparison, scale: float) -> alt.Chart | None:
    """What is within the A/A spread of the best estimate."""
    best = next((level for level in comparison["levels"] if level["level"] == comparison["reference"]), None)
    ends = band(None if best is None else best["estimate"], verdict["a_a"]["ratio_spread"])
    if ends is None:
        return None
    data = [{"from": ends[0] * scale, "to": ends[1] * scale, "text": "A/A spread around the best estimate"}]
    return (
        alt.Chart(alt.Data(values=data))
        .mark_rect(color=theme.BAND, opacity=0.16)
        .encode(alt.Y("from:Q"), alt.Y2("to:Q"), tooltip=[alt.Tooltip("text:N", title="band")])
    )


def _panel(
    estimates: list[Json],
    points: list[Json],
    order: list[str],
    axis: Json,
    marked: bool,
    size: tuple[int, int],
    equals: Any,
) -> Any:
    domain = {"domain": axis["domain"]} if axis.get("domain") else {}
    y = alt.Y(
        "value:Q",
        title=axis["title"],
        scale=alt.Scale(type="log", nice=True) if axis.get("log") else alt.Scale(zero=True, nice=not domain, **domain),
        axis=alt.Axis(format=axis["format"], tickCount=3 if axis.get("log") else 6),
    )
    x = alt.X("level:N", sort=order, title=axis["x"], scale=alt.Scale(domain=order), axis=level_axis(order, size[0]))
    if marked:
        colour: Any = alt.Color(
            "set:N",
            title=None,
            scale=alt.Scale(
                domain=list(_SET.values()), range=[theme.BEST, theme.WORSE, theme.UNJUDGED, theme.WORSE, theme.WORSE]
            ),
            legend=alt.Legend(
                orient="top",
                direction="horizontal",
                labelLimit=320,
                values=[name for name in _SET.values() if name in axis["sets"]],
            ),
        )
        shape: Any = alt.Shape("set:N", scale=alt.Scale(domain=list(_SET.values()), range=[*_SHAPES]), legend=None)
    else:
        colour, shape = alt.ColorValue(theme.BEST), alt.ShapeValue("circle")
    tips = [
        alt.Tooltip("level:N", title=axis["x"]),
        alt.Tooltip("value:Q", title=axis["title"], format=axis["tip"]),
        alt.Tooltip("low:Q", title="from (95 %)", format=axis["tip"]),
        alt.Tooltip("high:Q", title="to (95 %)", format=axis["tip"]),
        alt.Tooltip("blocks:Q"),
    ]
    base = alt.Chart(alt.Data(values=estimates))
    layers = [equals] if equals is not None else []
    layers += [
        base.mark_line(color=theme.UNJUDGED, opacity=0.45, strokeWidth=1.2).encode(x, y),
        intervals(base, 2.4, x, color=colour),
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=False, size=34, strokeWidth=1.2, opacity=0.75, xOffset=13, color=theme.UNJUDGED)
        .encode(
            x,
            y,
            tooltip=[
                alt.Tooltip("block:N"),
                alt.Tooltip("trial:Q"),
                alt.Tooltip("value:Q", title=axis["title"], format=axis["tip"]),
            ],
        ),
        base.mark_point(filled=True, size=95, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
    ]
    if axis.get("label"):
        layers.append(
            base.mark_text(dy=axis.get("label_dy", -13)).encode(x, y, text=alt.Text("value:Q", format=axis["label"]))
        )
    return alt.layer(*layers).properties(width=size[0], height=size[1])


def levels_figure(
    verdict: Json, key: str, name: str, title: str, caption: str, axis: Json, scale: float = 1.0, marked: bool = False,
    original: str = "", half: bool = False, absent: str = "",
) -> Figure:  # fmt: skip
    """One panel a comparison; `axis` has title, format, tip and perhaps domain, label and log.

    `absent` is why no trial has the metric, where that is known.
    """
    panels = []
    comparisons = verdict["comparisons"]
    if not comparisons:
        return Figure(name, title, absent="this run compares no levels", original=original)
    half = half and len(comparisons) == 1
    width = panel_width(len(comparisons[:_COLUMNS]), half)
    sets = {
        _set(level) for comparison in comparisons for level in comparison["levels"] if level["estimate"] is not None
    }
    for comparison in comparisons:
        estimates, points = _rows(verdict, comparison, key, scale)
        if not estimates:
            continue
        order = [level["level"] for level in comparison["levels"]]
        equals = _band(verdict, comparison, scale) if marked else None
        panel = _panel(
            estimates,
            points,
            order,
            {**axis, "x": comparison["label"], "sets": sets},
            marked,
            (width, HEIGHT_HALF if half else HEIGHT),
            equals,
        )
        panels.append(titled(panel, at_words(comparison)))
    if not panels:
        why = absent or f'no trial that entered the verdict has the metric "{verdict["metrics"][key]["label"]}"'
        return Figure(name, title, absent=why, original=original)
    chart = side_by_side(panels, _COLUMNS, y="shared")
    return Figure(name, title, caption, original, spec_of(chart))
