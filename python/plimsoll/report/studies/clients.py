"""Study S2's figures: throughput over clients and over transactions per client, and what a larger scale gains."""

from dataclasses import replace
from typing import Any

import altair as alt

from plimsoll.analysis.studies.document import Clients
from plimsoll.record import Run
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import SHOWN_WIDTH, WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour, decade_ticks, in_turn, intervals, side_by_side
from plimsoll.report.drawing.tables import NONE
from plimsoll.report.original_studies import study_of
from plimsoll.report.section import Page, Section

Json = dict[str, Any]
_COLUMNS = 2
_KEPT = ("clients", "value", "low", "high", "blocks")
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]


def _text(value: Any) -> str:
    return NONE if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)


def _rows(clients: Clients) -> list[Json]:
    rows: list[Json] = []
    for row in clients["rows"]:
        kept = {key: value for key, value in row.items() if key in _KEPT and value is not None}
        each = row["transactions_per_client"]
        rows.append(kept | {"scale": f"scale {row['scale']:g}", "each": each, "order": row["scale"]})
    return rows


def _panels(rows: list[Json], x: alt.X, series: str, title: str, names: list[str], tips: list[Any]) -> Any:
    """One panel a scale, one line a level of `series`, both axes logarithmic."""
    scales = list(dict.fromkeys(row["scale"] for row in sorted(rows, key=lambda row: row["order"])))
    columns = min(_COLUMNS, len(scales))
    width = (WIDTH - 90 * columns) // columns
    colour = by_colour(f"{series}:N", names, in_turn(theme.SERIES, names), title=title)
    shape = alt.Shape(
        f"{series}:N",
        sort=names,
        scale=alt.Scale(domain=names, range=in_turn(_SHAPES, names)),
        legend=None,
    )
    y = _ratio_axis("value", "transactions/s", rows)
    panels = []
    for scale in scales:
        base = alt.Chart(alt.Data(values=[row for row in rows if row["scale"] == scale]))
        panels.append(
            alt.layer(
                base.mark_line(strokeWidth=1.4, opacity=0.7).encode(x, y, color=colour),
                intervals(base, 2, x, color=colour),
                base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
            ).properties(width=width, height=260, title=scale)
        )
    return side_by_side(panels, columns, y="shared")


def _axis(field: str, title: str, values: list[float]) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=sorted(set(values)), format="~g", grid=False),
    )


def _ratio_axis(field: str, title: str, rows: list[Json]) -> alt.Y:
    """A logarithmic axis as long as the intervals, with marks at 1, 2 and 5 of each decade."""
    low = min(float(row.get("low") or row[field]) for row in rows)
    high = max(float(row.get("high") or row[field]) for row in rows)
    shown = [tick for tick in decade_ticks(low, high) if low / 1.1 <= tick <= high * 1.1]
    return alt.Y(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, domain=[low / 1.1, high * 1.1]),
        axis=alt.Axis(format=",~r", values=shown) if len(shown) > 1 else alt.Axis(format=",.3~r", tickCount=4),
    )


def _tips() -> list[Any]:
    tips: list[Any] = [alt.Tooltip("clients:Q"), alt.Tooltip("each:Q", title="transactions per client")]
    tips += [alt.Tooltip("scale:N")]
    tips += [alt.Tooltip(f"{key}:Q", format=",.1f") for key in ("value", "low", "high")]
    return [*tips, alt.Tooltip("blocks:Q")]


def _over_clients(rows: list[Json], original: str) -> Figure:
    name, title = "clients", "Throughput by number of clients"
    data = [{**row, "series": _text(row["each"])} for row in rows]
    names = [_text(each) for each in sorted({row["each"] for row in rows if row["each"] is not None})] or [NONE]
    if len(names) == 1:
        names = list(dict.fromkeys(row["series"] for row in data))
    chart = _panels(
        data,
        _axis("clients", "clients", [row["clients"] for row in rows]),
        "series",
        "transactions per client",
        names,
        _tips(),
    )
    caption = (
        "Geometric mean over blocks with its 95 % t interval; both axes logarithmic. At scale 1 all clients change the "
        "same row of pgbench_branches."
    )
    return Figure(name, title, caption, original, spec_of(chart))


def _over_transactions(rows: list[Json]) -> Figure:
    name, title = "transactions-per-client", "Throughput by transactions per client (the study's own axis)"
    counted = [row for row in rows if row["each"] is not None]
    if len({row["each"] for row in counted}) < 2:
        return Figure(name, title, absent="this run has one number of transactions per client")
    data = [{**row, "series": _text(row["clients"])} for row in counted]
    names = [_text(count) for count in sorted({row["clients"] for row in counted})]
    axis = _axis("each", "transactions per client", [row["each"] for row in counted])
    chart = _panels(data, axis, "series", "clients", names, _tips())
    return Figure(name, title, "As above, with a line for each number of clients.", spec=spec_of(chart))


def answer_figure(verdict: Json) -> Figure | None:
    """The gain by the scale for the first screen; None where the run has one scale."""
    figure = _gain(verdict["clients"], "", SHOWN_WIDTH - 70, 190)
    return None if figure.spec is None else replace(figure, name="answer", caption="")


def _gain(clients: Clients, original: str, width: int = WIDTH - 90, height: int = 240) -> Figure:
    name, title = "scale-gain", "What a larger scale carries more, by number of clients"
    if not clients["against_smallest"]:
        return Figure(name, title, absent="this run has one scale", original=original)
    rows: list[Json] = [
        {key: value for key, value in row.items() if value is not None} | {"series": f"scale {row['scale']:g}"}
        for row in clients["against_smallest"]
    ]
    names = list(dict.fromkeys(row["series"] for row in sorted(rows, key=lambda row: row["scale"])))
    x = _axis("clients", "clients", [row["clients"] for row in rows])
    smallest = clients["against_smallest"][0]["smallest"]
    none: Json = {"ratio": 1}
    y = _ratio_axis("ratio", f"throughput over that of scale {smallest:g}", [*rows, none])
    colour = by_colour("series:N", names, theme.SERIES[: len(names)])
    base = alt.Chart(alt.Data(values=rows))
    tips = [
        alt.Tooltip("series:N"),
        alt.Tooltip("clients:Q"),
        *(alt.Tooltip(f"{key}:Q", format=".2f") for key in ("ratio", "low", "high")),
    ]
    chart = alt.layer(
        alt.Chart(alt.Data(values=[none])).mark_rule(strokeDash=[4, 4], color=theme.UNJUDGED).encode(alt.Y("ratio:Q")),
        base.mark_line(strokeWidth=1.4, opacity=0.7).encode(x, y, color=colour),
        intervals(base, 2, x, color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, tooltip=tips),
    ).properties(width=width, height=height)
    caption = (
        "Ratio within blocks, all transactions per client taken together, with its 95 % t interval. 1: the scale makes "
        "no difference, so branch rows are not what limits."
    )
    return Figure(name, title, caption, original, spec_of(chart))


def clients_figures(run: Run, verdict: Json) -> list[Figure]:
    """The figures of study S2."""
    study = study_of(run.experiment) or {}
    clients: Clients = verdict["clients"]
    rows = _rows(clients)
    return [
        _over_clients(rows, study.get("clients", "")),
        _over_transactions(rows),
        _gain(clients, study.get("scale", "")),
    ]


def _applies(page: Page) -> bool:
    """Where the experiment names it, and the run varies pgbench's clients."""
    return page.names("clients") and bool((page.verdict.get("clients") or {}).get("rows"))


SECTION = Section(
    key="clients",
    title="Clients",
    shows=lambda page: answer_figure(page.verdict),
    template="studies/clients.html.j2",
    applies=_applies,
    context=lambda page: {"study": page.study},
    figures=lambda page: clients_figures(page.run, page.verdict),
    needs="the run does not vary the number of pgbench's clients",
)
