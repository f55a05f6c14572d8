"""The answer drawn for the first screen: the levels of a comparison in what is judged, and what is said of each."""

from typing import Any

import altair as alt

from plimsoll.analysis.metric import Metric
from plimsoll.analysis.metrics import metric_of
from plimsoll.record.verdict import Comparison
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, Figure, spec_of
from plimsoll.words.levels import at_words, in_few_words

Json = dict[str, Any]
NAME = "answer"
_HEIGHT, _STEP_MAX, _WIDTH_MIN, _LETTER, _NAME_LETTERS = 230, 44, 160, 6, 24


def answer_figure(verdict: Json) -> Figure | None:
    """Each level of the first comparison with its interval; None where nothing is compared or has a value."""
    judged = metric_of(verdict["metric"], verdict)
    for comparison in verdict["comparisons"][:1]:
        rows = _rows(comparison, judged)
        if not rows:
            return None
        where = at_words(comparison)
        title = f"{judged.name[0].upper()}{judged.name[1:]}, {judged.shown.axis_unit}"
        caption = "Means over blocks with their 95 % intervals; what is said of a level comes from within blocks."
        title += f" ({where})" if where else ""
        return Figure(NAME, title, caption, spec=spec_of(_chart(rows, comparison, judged)))
    return None


def _rows(comparison: Comparison, judged: Metric) -> list[Json]:
    factor, rows = judged.shown.factor, []
    for level in comparison["levels"]:
        if level["estimate"] is None:
            continue
        row = {"level": level["level"], "value": level["estimate"] * factor, "said": in_few_words(level, judged)}
        row["set"] = "worse" if level["verdict"] == "worse" else "best" if level["in_best_set"] else "unjudged"
        if level["low"] is not None and level["high"] is not None:
            row |= {"low": level["low"] * factor, "high": level["high"] * factor}
        rows.append(row)
    return rows


def _chart(rows: list[Json], comparison: Comparison, judged: Metric) -> Any:
    order = [row["level"] for row in rows]
    longest = max(len(row["said"]) for row in rows)
    columns = min(_NAME_LETTERS, max(len(name) for name in order))  # of letters, left of the axis
    width = max(_WIDTH_MIN, SHOWN_WIDTH - _LETTER * (columns + longest) - 48)
    y = alt.Y(
        "level:N", sort=order, title=comparison["label"], axis=alt.Axis(labelLimit=_LETTER * _NAME_LETTERS, ticks=False)
    )
    is_log = judged.shown.is_axis_log
    x = alt.X(
        "value:Q",
        title=None,
        scale=alt.Scale(type="log", nice=True) if is_log else alt.Scale(zero=True),
        axis=alt.Axis(format=judged.shown.axis, tickCount=4, grid=True),
    )
    colour = alt.Color(
        "set:N",
        scale=alt.Scale(domain=["best", "worse", "unjudged"], range=[theme.BEST, theme.WORSE, theme.UNJUDGED]),
        legend=None,
    )
    shape = alt.Shape(
        "set:N",
        scale=alt.Scale(domain=["best", "worse", "unjudged"], range=["circle", "square", "diamond"]),
        legend=None,
    )
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2.4)
    tips = [
        alt.Tooltip("level:N"),
        *(alt.Tooltip(f"{key}:Q", format=judged.shown.tip) for key in ("value", "low", "high")),
        alt.Tooltip("said:N"),
    ]
    layers = [
        rules.encode(alt.X("low:Q"), alt.X2("high:Q"), color=colour),
        base.mark_point(filled=True, size=90, opacity=1).encode(x, color=colour, shape=shape, tooltip=tips),
        base.mark_text(align="left").encode(x=alt.XValue(width + 10), text=alt.Text("said:N")),
    ]
    return alt.layer(*layers).properties(width=width, height={"step": min(_STEP_MAX, _HEIGHT // len(rows))})
