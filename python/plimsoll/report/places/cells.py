"""Study S2's graphs and its table of cells: throughput over transactions per client, and layout against layout."""

from typing import Any

import altair as alt

from plimsoll.analysis.places.document import Cell, CellRow, Cells, CellTable
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour, in_turn, intervals, side_by_side
from plimsoll.report.drawing.tables import NONE, number
from plimsoll.report.section import Section
from plimsoll.words.places import rate_words

Json = dict[str, Any]
_COLUMNS = 2


def cells_figures(storage: Cells) -> list[Figure]:
    """The study's graph: one line a number of clients, a panel a layout and scale."""
    name, title = "storage", "Throughput by transactions per client, of each layout"
    rows = [row for row in storage["rows"] if row["transactions_per_client"] is not None]
    if len({row["transactions_per_client"] for row in rows}) < 2:
        return [Figure(name, title, absent="this run has one number of transactions per client")]
    counts = [f"{count:g}" for count in sorted({row["clients"] for row in rows})]
    panels = list(dict.fromkeys((row["scale"], row["cell"]) for row in rows))
    width = (WIDTH - 90 * _COLUMNS) // _COLUMNS
    charts = [_panel([row for row in rows if (row["scale"], row["cell"]) == panel], counts, width) for panel in panels]
    caption = (
        "Geometric mean over blocks with its 95 % t interval; logarithmic axis of transactions, one scale for all."
    )
    return [Figure(name, title, caption, spec=spec_of(side_by_side(charts, _COLUMNS, y="shared")))]


def _panel(rows: list[CellRow], counts: list[str], width: int) -> Any:
    data = [{**{key: value for key, value in row.items() if value is not None}, "series": f"{row['clients']:g}"}
            for row in rows]  # fmt: skip
    each = sorted({row["transactions_per_client"] or 0 for row in rows})
    x = alt.X(
        "transactions_per_client:Q",
        title="transactions per client",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=each, format="~g", grid=False),
    )
    y = alt.Y("value:Q", title="transactions/s", scale=alt.Scale(zero=True))
    colour = by_colour("series:N", counts, in_turn(theme.SERIES, counts), title="clients")
    base = alt.Chart(alt.Data(values=data))
    tips: list[Any] = [alt.Tooltip("series:N"), alt.Tooltip("transactions_per_client:Q")]
    tips += [alt.Tooltip(f"{key}:Q", format=",.1f") for key in ("value", "low", "high")]
    return alt.layer(
        base.mark_line(strokeWidth=1.4, opacity=0.7).encode(x, y, color=colour),
        intervals(base, 2, x, color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, tooltip=tips),
    ).properties(width=width, height=230, title=f"scale {rows[0]['scale']:g}: {rows[0]['cell']}")


def table(cells: list[Cell]) -> list[list[str]]:
    """A row a layout: scale, layout, transactions a second, ratio to the first; with intervals."""
    return [
        [
            f"{cell['scale']:g}",
            cell["cell"],
            _with_interval(cell["rate"], ",.0f"),
            "1" if cell["ratio"] is None else _with_interval(cell["ratio"], ".2f"),
            number(cell["rate"]["blocks"], ".0f"),
        ]
        for cell in cells
    ]


def tables(found: Cells) -> list[Json]:
    """The tables of the first screen, as a template draws them: {title, heads, rows: [(name, [(rate, ratio, word)])]}.

    A record of before there were any has none.
    """
    return [_drawn(one, found["cells"], len({other["scale"] for other in found["tables"]}) > 1)
            for one in found.get("tables") or []]  # fmt: skip


def _drawn(one: CellTable, cells: list[Cell], is_of_scales: bool) -> Json:
    title = [f"scale {one['scale']:g}"] if is_of_scales else []
    title += [one["at"]] if one["at"] else []
    label = one["columns_label"]
    rows = [
        (row["level"], [None if place is None else _cell(cells[place]) for place in row["cells"]])
        for row in one["rows"]
    ]
    heads = [f"{label}: {column}" for column in one["columns"]] or ["transactions/s"]
    return {"title": ", ".join(title), "corner": one["rows_label"], "heads": heads, "rows": rows}


def _cell(cell: Cell) -> tuple[str, str, str]:
    """Transactions a second, the ratio to the first, and what may be said of it."""
    if cell["ratio"] is None:
        return rate_words(cell["rate"]), "the first", ""
    return rate_words(cell["rate"]), f"{_with_interval(cell['ratio'], '.2f')} x", cell["verdict"] or ""


def _with_interval(mean: Mean, form: str) -> str:
    if mean["low"] is None:
        return f"{number(mean['value'], form)} ({NONE})"
    return f"{number(mean['value'], form)} [{number(mean['low'], form)}, {number(mean['high'], form)}]"


SECTION = Section(
    key="storage",
    title="Database and log by layout",
    template="places/cells.html.j2",
    applies=lambda page: page.names("storage") and bool(page.verdict.get("storage")),
    context=lambda page: {
        "rows": table(page.verdict["storage"]["cells"]),
        "tables": tables(page.verdict["storage"]),
        "study": page.study,
    },
    heads="places/cells_head.html.j2",
    figures=lambda page: cells_figures(page.verdict["storage"]),
    needs="the run does not vary where files lie",
)
