"""The figures of a soak: its rounds with what befell them, and vmstat's columns with rounds over one another."""

from __future__ import annotations

from typing import Any

import altair as alt

from plimsoll.analysis.metrics import metric_of
from plimsoll.analysis.soak import vmstat as of_rounds
from plimsoll.analysis.soak.document import SoakOfRun
from plimsoll.analysis.trial import vmstat
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, WIDTH, Figure, spec_of
from plimsoll.report.drawing.series import ramp
from plimsoll.report.section import Page

Json = dict[str, Any]
_PLAIN, _BEFALLEN = "as the one before left it", "something befell it"


def rounds_figure(verdict: Json, found: SoakOfRun, *, is_small: bool = False) -> Figure:
    """The figure of each round, with the places where they changed for good."""
    name, metric = ("answer" if is_small else "rounds"), metric_of(found["metric"], verdict)
    title = f"{metric.name[:1].upper()}{metric.name[1:]} of the rounds"
    shown, remarks = metric.shown, {row["round"]: row["remarks"] for row in found["drift"]["rounds"]}
    rows = [
        {
            "round": one["round"],
            "value": one["value"] * shown.factor,
            "kind": _BEFALLEN if remarks.get(place) else _PLAIN,
            "remarks": "; ".join(remarks.get(place, [])),
        }
        for place, one in enumerate(found["each"], start=1)
        if one["value"] is not None
    ]
    if not rows:
        return Figure(name, title, absent="no round has come to its end")
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X("round:Q", title="round", axis=alt.Axis(format="d", tickMinStep=1), scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title=shown.unit, scale=alt.Scale(zero=False), axis=alt.Axis(format=",~r", tickCount=5))
    kinds = alt.Scale(domain=[_PLAIN, _BEFALLEN], range=["circle", "triangle-down"])
    colours = alt.Scale(domain=[_PLAIN, _BEFALLEN], range=[theme.BEST, theme.WORSE])
    legend = alt.Legend(orient="top", direction="horizontal")
    layers: list[Any] = [
        base.mark_line(strokeWidth=1, opacity=0.5, color=theme.UNJUDGED).encode(x, y),
        base.mark_point(filled=True, size=45, opacity=1).encode(
            x,
            y,
            alt.Shape("kind:N", title=None, scale=kinds, legend=legend),
            alt.Color("kind:N", title=None, scale=colours, legend=legend),
            tooltip=[
                alt.Tooltip("round:Q"),
                alt.Tooltip("value:Q", title=shown.unit, format=",.4~r"),
                alt.Tooltip("remarks:N"),
            ],
        ),
    ]
    if of_machine := _by_machine(found, shown.factor):
        ring = alt.Chart(alt.Data(values=of_machine)).mark_line(
            strokeWidth=1, opacity=0.7, color=theme.UNJUDGED, point={"filled": False, "size": 25}
        )
        layers.append(ring.encode(x, y, tooltip=[alt.Tooltip("round:Q"), alt.Tooltip("value:Q", format=",.4~r")]))
    if steps := [{"round": step["round"]} for step in found["drift"]["steps"]]:
        rule = alt.Chart(alt.Data(values=steps)).mark_rule(strokeDash=[5, 3], color=theme.WORSE)
        layers.append(rule.encode(alt.X("round:Q")))
    width = SHOWN_WIDTH - 70 if is_small else WIDTH - 70
    chart = alt.layer(*layers).properties(width=width, height=200 if is_small else 260)
    caption = "A point a round, back to back on one server and its data. From a broken line on they differ for good."
    caption += " Rings: what the machine's own speed alone makes of the first round." if of_machine else ""
    return Figure(name, title, caption, spec=spec_of(chart))


def _by_machine(found: SoakOfRun, factor: float) -> list[Json]:
    """What the machine's own speed alone makes of the first round; [] where it is not known."""
    return [
        {"round": row["round"], "value": row["value_by_machine"] * factor}
        for row in found["drift"]["rounds"]
        if row["value_by_machine"] is not None
    ]


def vmstat_figure(page: Page) -> Figure:
    """Nine panels as study S3 has them, the drawn rounds over one another."""
    name, title = "soak-vmstat", "The machine in each round, as vmstat shows it"
    rows = [row for trial in page.run.trials for row in of_rounds.curves(trial)]
    if not rows:
        return Figure(name, title, absent="the host's series were not sampled")
    for row in rows:
        scale = 1 / 1024 if vmstat.COLUMNS[row["column"]].startswith("KiB") else 1.0
        row["value"] = round(row["value"] * scale, 2)
    numbers = list(dict.fromkeys(row["round"] for row in rows))
    colour = alt.Color(
        "round:O",
        title="round",
        sort=numbers,
        scale=alt.Scale(domain=numbers, range=ramp(len(numbers))),
        legend=alt.Legend(orient="top", direction="horizontal", columns=of_rounds.ROUNDS_DRAWN),
    )
    present = [column for column in of_rounds.COLUMNS if any(row["column"] == column for row in rows)]
    panels = [_panel(column, colour) for column in present]
    chart = alt.concat(*panels, columns=3, spacing=20).resolve_scale(color="shared")
    caption = (
        "Of the whole machine, means over 5 minutes (of short rounds over less), by the time since the round's begin. "
        "free, buff and cache are memory; bi and bo what all devices read and wrote; us, sy, id and wa the CPUs' time: "
        f"user, system, idle, waiting for I/O. Of more than {of_rounds.ROUNDS_DRAWN} rounds the first, the last and "
        "some between are drawn."
    )
    datasets = {column: [row for row in rows if row["column"] == column] for column in present}
    return Figure(name, title, caption, spec=spec_of(chart, datasets))


def _panel(column: str, colour: Any) -> Any:
    unit = vmstat.COLUMNS[column].replace("KiB", "MiB")
    return (
        alt.Chart(alt.NamedData(name=column))
        .mark_line(strokeWidth=1.4, opacity=0.85)
        .encode(
            alt.X("minutes:Q", title="minutes", axis=alt.Axis(tickCount=5), scale=alt.Scale(nice=False)),
            alt.Y("value:Q", title=unit, axis=alt.Axis(format=",~r", tickCount=4)),
            colour,
            tooltip=[
                alt.Tooltip("round:O"),
                alt.Tooltip("minutes:Q"),
                alt.Tooltip("value:Q", title=column, format=",.4~r"),
            ],
        )
        .properties(width=(WIDTH - 240) // 3, height=130, title=column)
    )
