"""Latency percentiles by level, for all transactions or one kind."""

from typing import Any

import altair as alt

from plimsoll.analysis.metrics import unit_of_work
from plimsoll.report.drawing.figure import Figure, level_x, panel_width, spec_of
from plimsoll.report.drawing.marks import by_colour, decade_ticks, intervals, side_by_side, titled
from plimsoll.words.levels import at_words

Json = dict[str, Any]
_NAMES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9", "p9999": "p99.99"}
_COLOURS = {"p50": "#0072B2", "p90": "#009E73", "p95": "#CC79A7", "p99": "#E69F00", "p99.9": "#D55E00"} | {
    "p99.99": "#56B4E9"
}
_SHAPES = {"p50": "circle", "p90": "triangle-up", "p95": "triangle-down", "p99": "square", "p99.9": "diamond"} | {
    "p99.99": "cross"
}


def latency_figure(verdict: Json) -> Figure:
    """Percentiles on a logarithmic axis, the kind of transaction chosen from a list."""
    name, title = "latency", "Latency from planned start to last reply"
    work = unit_of_work(verdict)
    kinds = sorted({kind for entry in verdict["treatments"].values() for kind in entry["latency_ns"]})
    if not verdict["comparisons"] or not kinds:
        return Figure(name, title, absent=f"no trial that entered the verdict has {work}s on record")
    kinds = ["all", *(kind for kind in kinds if kind != "all")]
    select = alt.param("kind", bind=alt.binding_select(options=kinds, name=f"{work} "), value=kinds[0])
    width = panel_width(len(verdict["comparisons"][:3]))
    panels, is_unbounded = [], False
    for comparison in verdict["comparisons"]:
        rows: list[Json] = []
        for level in comparison["levels"]:
            by_kind = (verdict["treatments"].get(level["treatment"]) or {}).get("latency_ns") or {}
            for kind, percentiles in by_kind.items():
                for key, mean in percentiles.items():
                    if mean:
                        row = {"level": level["level"], "kind": kind, "percentile": _NAMES[key]}
                        row["ms"] = mean["value"] / 1e6
                        is_unbounded |= bool(mean.get("unbounded"))
                        if mean["low"] is not None:
                            row |= {"low": mean["low"] / 1e6, "high": mean["high"] / 1e6}
                        rows.append(row)
        if not rows:
            continue
        x = level_x(comparison, width)
        y = alt.Y(
            "ms:Q", title="ms", scale=alt.Scale(type="log", nice=True), axis=alt.Axis(format="~g", values=_ticks(rows))
        )
        colour = by_colour("percentile:N", list(_COLOURS), list(_COLOURS.values()), values=_present(rows))
        shape = alt.Shape(
            "percentile:N", scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())), legend=None
        )
        base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.kind == kind")
        tips = [
            alt.Tooltip("percentile:N"),
            alt.Tooltip("level:N"),
            *(alt.Tooltip(f"{key}:Q", format=",.3~r") for key in ("ms", "low", "high")),
        ]
        panel = alt.layer(
            base.mark_line(strokeWidth=1.4, opacity=0.6).encode(x, y, color=colour),
            intervals(base, 2, x, color=colour),
            base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
        ).properties(width=width, height=260)
        panels.append(titled(panel, at_words(comparison)))
    chart = side_by_side(panels, 3, y="shared")
    caption = (
        "Percentile of each trial, then mean over blocks with a 95 % t interval. A percentile is drawn only when at "
        f"least ten {work}s of the trial lie beyond it. Logarithmic axis."
        + (
            f" A percentile that lies among {work}s without a timely answer in some block has no bound: it is "
            "drawn at the least that it can be, without an interval."
            if is_unbounded
            else ""
        )
    )
    return Figure(name, title, caption, spec=spec_of(chart.add_params(select)), controls=True)


def _ticks(rows: list[Json]) -> list[float]:
    """Those of each decade that the rows reach."""
    low = min(float(row.get("low") or row["ms"]) for row in rows)
    return decade_ticks(low, max(float(row.get("high") or row["ms"]) for row in rows))


def _present(rows: list[Json]) -> list[str]:
    found = {row["percentile"] for row in rows}
    return [name for name in _COLOURS if name in found]
