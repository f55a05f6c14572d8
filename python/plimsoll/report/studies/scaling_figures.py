"""Throughput by CPUs, and by clients, with the law's curve and its band; and the pairs of a knob by memory size."""

from collections.abc import Mapping
from typing import Any, Literal

import altair as alt

from plimsoll.analysis.metric import Display
from plimsoll.analysis.metrics import metric_of, unit_of_work
from plimsoll.analysis.studies.document import MemoryRow, MemoryScaling, Scaling
from plimsoll.record import Run
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, level_axis, spec_of
from plimsoll.report.drawing.marks import by_colour, in_turn, intervals, side_by_side, titled
from plimsoll.report.original_studies import study_of
from plimsoll.report.section import Page, Section
from plimsoll.report.studies.scaling import at_words, scaling_part

Json = dict[str, Any]
Measure = Literal["throughput_per_second", "cpu_ns_per_transaction", "cpu_steal_share"]
_COLUMNS = 2
_LINEAR_TO = 16  # more levels' worth of CPUs or clients stand on a logarithmic axis
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
_CAPTION = (
    "Points: geometric mean over blocks with its 95 % t interval. Lines and bands: the Universal Scalability Law with "
    "its 95 % interval, by the delete-one-block jackknife. Dashed: points joined where the law is withheld."
)


def scaling_figures(run: Run, verdict: Json) -> list[Figure]:
    """By CPUs, by clients, and by memory size with the knob on and off: those that the run varies."""
    study = study_of(run.experiment) or {}
    found: Scaling | None = verdict.get("scaling")
    by_memory: MemoryScaling | None = verdict.get("memory_scaling")
    figures = []
    if found:
        shown = metric_of(found["metric"], verdict).shown
        figures.append(_throughput(found, shown, "cpus", study.get("scaling", "")))
        if any(law["over"] == "clients" for law in found["laws"]):
            figures.append(_throughput(found, shown, "clients", ""))
    if by_memory:
        figures.append(pairs_figure(by_memory, unit_of_work(verdict), study.get("memory", "")))
    return figures


def _throughput(scaling: Scaling, shown: Display, over: Literal["cpus", "clients"], original: str) -> Figure:
    other: Literal["cpus", "clients"] = "clients" if over == "cpus" else "cpus"
    x_title = "CPUs of the server" if over == "cpus" else "clients"
    name, title = (
        f"scaling-{over}",
        f"Throughput by {'CPUs' if over == 'cpus' else 'clients'}, and the law fitted to it",
    )
    placed = [row for row in scaling["rows"] if row[over] is not None]
    if not placed:
        return Figure(name, title, absent="no trial that entered the verdict has a throughput", original=original)
    series = {row[other]: _series(other, row[other]) for row in sorted(placed, key=lambda row: row[other] or 0)}
    rows = [_in_units(row, shown.factor) for row in placed]
    panels = []
    ats = [at_words(row) for row in placed]
    for at in dict.fromkeys(ats):
        mine = [row for row, where in zip(rows, ats, strict=True) if where == at]
        alike = [law for law in scaling["laws"] if law["over"] == over and at_words(law) == at]
        laws: list[Json] = [
            {**law, "curve": [_in_units(point, shown.factor) for point in law["curve"]]} for law in alike
        ]
        panels.append(_panel(mine, laws, (over, other), (x_title, shown.unit), series, at))
    columns = min(_COLUMNS, len(panels))
    width = (WIDTH - 90 * columns) // columns
    charts = [panel.properties(width=width, height=320) for panel in panels]
    chart = side_by_side(charts, columns)
    return Figure(name, title, _CAPTION, original, spec_of(chart))


def _in_units(row: Mapping[str, Any], factor: float) -> Json:
    """A value and its interval as they are written."""
    return {**row, **{key: row[key] * factor for key in ("value", "low", "high") if row.get(key) is not None}}


def _series(other: str, value: int | None) -> str:
    if value is None:
        return "this run"
    word = "client" if other == "clients" else "CPU"
    return f"{value} {word}{'' if value == 1 else 's'}"


def _panel(
    rows: list[Json],
    laws: list[Json],
    keys: tuple[str, str],
    titles: tuple[str, str],
    series: dict[int | None, str],
    at: str,
) -> Any:
    (over, other), (x_title, y_title) = keys, titles
    names = list(series.values())
    points = [
        {key: row[key] for key in ("value", "low", "high", "blocks") if row.get(key) is not None}
        | {"n": row[over], "series": series[row[other]]}
        for row in rows
    ]
    curves = [{**point, "series": series[law[other]]} for law in laws for point in law["curve"]]
    ticks = sorted({row["n"] for row in points})
    scale = (
        alt.Scale(type="log", nice=False, padding=14)
        if ticks[-1] > _LINEAR_TO * ticks[0]
        else alt.Scale(zero=False, padding=14)
    )
    x = alt.X("n:Q", title=x_title, scale=scale, axis=alt.Axis(values=ticks, format="~g"))
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=True), axis=alt.Axis(format=",~r", tickCount=6))
    colours = in_turn(theme.SERIES, names)
    colour = by_colour("series:N", names, colours, symbolOpacity=1)
    shapes = in_turn(_SHAPES, names)
    shape = alt.Shape("series:N", sort=names, scale=alt.Scale(domain=names, range=shapes), legend=None)
    law = alt.Chart(alt.Data(values=curves))
    base = alt.Chart(alt.Data(values=points))
    tips = [alt.Tooltip("series:N"), alt.Tooltip("n:Q", title=x_title)]
    tips += [alt.Tooltip(f"{key}:Q", format=",.1f") for key in ("value", "low", "high")]
    layers = []
    if curves:
        layers += [
            law.mark_area(opacity=0.14).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color=colour),
            law.mark_line(strokeWidth=1.8).encode(x, y, color=colour),
        ]
    drawn = {row["series"] for row in curves}
    joined = alt.Chart(alt.Data(values=[row for row in points if row["series"] not in drawn]))
    layers.append(joined.mark_line(strokeWidth=1.2, opacity=0.5, strokeDash=[4, 4]).encode(x, y, color=colour))
    layers += [
        intervals(base, 2, x, color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x, y, color=colour, shape=shape, tooltip=[*tips, alt.Tooltip("blocks:Q")]
        ),
    ]
    chart = alt.layer(*layers)
    return titled(chart, at)


def pairs_figure(memory: MemoryScaling, work: str, original: str) -> Figure:
    """Throughput, CPU cost and steal by memory size, the knob on and off side by side."""
    name, title = "memory-pairs", f"Throughput with its CPU cost, {memory['knob']['label']} on and off"
    measures: tuple[tuple[Measure, str, float], ...] = (
        ("throughput_per_second", f"{work}s/s", 1.0),
        ("cpu_ns_per_transaction", f"CPU, µs/{work}", 1e-3),
        ("cpu_steal_share", "steal, % of CPU time", 100.0),
    )
    names = [f"{memory['knob']['label']} {end}" for end in (memory["knob"]["off"], memory["knob"]["on"])]
    panels = []
    for at in dict.fromkeys(at_words(row) for row in memory["rows"]):
        mine = [row for row in memory["rows"] if at_words(row) == at]
        for key, unit, factor in measures:
            rows = [point for row in mine if (point := _point(row, key, factor, names)) is not None]
            if rows:
                panels.append(_pairs_panel(rows, unit, names, (memory["memory_label"], at)))
    if not panels:
        return Figure(name, title, absent="no trial that entered the verdict has a throughput", original=original)
    chart = alt.concat(*panels, columns=min(len(measures), len(panels)), spacing=30)
    caption = "Means over blocks with their 95 % t intervals. CPU: all of the host's, the load generator's included."
    return Figure(name, title, caption, original, spec_of(chart))


def _point(row: MemoryRow, key: Measure, factor: float, names: list[str]) -> Json | None:
    mean = row[key]
    if mean is None:
        return None
    ends = (("value", mean["value"]), ("low", mean["low"]), ("high", mean["high"]))
    found: Json = {name: end * factor for name, end in ends if end is not None}
    return found | {"memory": row["memory"], "series": names[bool(row["on"])], "blocks": mean["blocks"]}


def _pairs_panel(rows: list[Json], unit: str, names: list[str], titles: tuple[str, str]) -> Any:
    memory, at = titles
    order = list(dict.fromkeys(row["memory"] for row in rows))
    width = WIDTH // 3 - 96
    x = alt.X("memory:N", sort=order, title=memory, axis=level_axis(order, width))
    offset = alt.XOffset("series:N", sort=names, scale=alt.Scale(domain=names, paddingInner=0.5, paddingOuter=0.6))
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=True), axis=alt.Axis(format=",~r", tickCount=5))
    colour = by_colour("series:N", names, [theme.UNJUDGED, theme.BEST], labelLimit=300)
    shape = alt.Shape("series:N", sort=names, scale=alt.Scale(domain=names, range=["circle", "square"]), legend=None)
    base = alt.Chart(alt.Data(values=rows))
    tips = [
        alt.Tooltip("series:N"),
        alt.Tooltip("memory:N"),
        *(alt.Tooltip(f"{key}:Q", format=",.3~f") for key in ("value", "low", "high")),
    ]
    chart = alt.layer(
        intervals(base, 2, x, xOffset=offset, color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x, y, xOffset=offset, color=colour, shape=shape, tooltip=[*tips, alt.Tooltip("blocks:Q")]
        ),
    ).properties(width=width, height=240)
    return titled(chart, at)


def _applies(page: Page) -> bool:
    """Where the experiment names it, and the run varies the CPUs, or memory with a knob."""
    return page.names("scaling") and bool(page.verdict.get("scaling") or page.verdict.get("memory_scaling"))


SECTION = Section(
    key="scaling",
    title="Scaling",
    template="studies/scaling.html.j2",
    applies=_applies,
    context=lambda page: {"scaling": scaling_part(page.verdict), "study": page.study},
    figures=lambda page: scaling_figures(page.run, page.verdict),
    needs="the run varies neither the server's CPUs, nor memory with a setting that is on or off",
)
