"""Flame graphs: boxes of functions, each as wide as its share, on what called it; thinner ones are left out.

Names come from files that anybody may have made: they reach the page as data of a figure, never as markup.
"""

from typing import Any

import altair as alt

from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of

Json = dict[str, Any]
_ROW = 17
_LETTER = 6.4
_ROWS_MAX = 90


def _label(name: str, width: float) -> str:
    """As much of a name as fits into a box."""
    room = int((width - 6) / _LETTER)
    return "" if room < 3 else name if len(name) <= room else name[: room - 1] + "…"


def flame(
    name: str,
    title: str,
    caption: str,
    boxes: list[Json],
    unit: str,
    scale: float = 1.0,
    colours: dict[str, str] = theme.FLAME,
) -> Figure:
    """`boxes`: {`name`, `depth`, `from`, `to`, `kind`, `said` (if wanted)}, the whole first; `kind`: of `colours`."""
    whole = boxes[0]["to"] if boxes else 0
    if not whole:
        return Figure(name, title, absent="there is nothing in it")
    drawn = [box for box in boxes if box["depth"] < _ROWS_MAX]
    rows = [
        {
            "name": box["name"],
            "label": _label(box["name"], (box["to"] - box["from"]) / whole * WIDTH),
            "x": box["from"] / whole,
            "x2": box["to"] / whole,
            "y": box["depth"],
            "y2": box["depth"] + 1,
            "kind": box["kind"],
            "amount": (box["to"] - box["from"]) * scale,
            "share": (box["to"] - box["from"]) / whole,
        }
        | ({"difference": box["said"]} if "said" in box else {})
        for box in drawn
    ]
    kinds = [kind for kind in colours if any(row["kind"] == kind for row in rows)]
    depth = max(box["depth"] for box in drawn) + 1
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False)),
        alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, depth], nice=False)),
        tooltip=[
            alt.Tooltip("name:N"),
            alt.Tooltip("share:Q", format=".2%"),
            alt.Tooltip("amount:Q", title=unit, format=",.6~g"),
            *([alt.Tooltip("difference:N")] if "difference" in rows[0] else []),
        ],
    )
    bars = base.mark_rect(stroke="white", strokeWidth=0.4).encode(
        alt.X2("x2:Q"),
        alt.Y2("y2:Q"),
        alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds]),
            legend=alt.Legend(orient="top", direction="horizontal"),
        ),
    )
    texts = (
        base.transform_filter("datum.label != ''")
        .transform_calculate(middle="datum.y + 0.5")
        .mark_text(align="left", baseline="middle", dx=3, fontSize=10.5, color="#1A1F27")
        .encode(alt.Y("middle:Q", axis=None), alt.Text("label:N"))
    )
    chart = alt.layer(bars, texts).properties(width=WIDTH, height=_ROW * depth)
    cut = " Deeper calls than fit are left out." if len(drawn) < len(boxes) else ""
    return Figure(name, title, caption + cut, spec=spec_of(chart))
