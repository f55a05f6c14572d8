"""The picture of a layout: which part lies on which file system, on which array, on which device, with what decides."""

from typing import Any, Final

import altair as alt

from plimsoll.analysis.places.document import Box, Layout
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.section import Section

Json = dict[str, Any]
PANELS_MAX = 8
COLUMN_WIDTH, LINE_HEIGHT = 240, 15
# Light enough for dark text on them; what a colour says the title says, too.
KINDS: Final = {
    "part": "#F2B66D",
    "file system": "#7FC4EE",
    "mapper": "#E8C3D9",
    "volume": "#CFE3A6",
    "raid": "#A9D8C8",
    "device": "#C3CAD3",
    "below": "#DDE1E6",
}
INK = "#2A3240"


def layout_figures(layouts: list[Layout]) -> list[Figure]:
    """One figure, a panel a layout."""
    name, title = "layout", "Where the files lay"
    shown = layouts[:PANELS_MAX]
    widest = max(layout["columns"] for layout in shown)
    columns = max(1, WIDTH // (widest * COLUMN_WIDTH))
    chart = alt.concat(*(_panel(layout) for layout in shown), columns=columns, spacing=30)
    caption = "From the part of the target down to the disk, as the trials found it made."
    if len(layouts) > PANELS_MAX:
        caption += f" {PANELS_MAX} of {len(layouts)} layouts are drawn."
    return [Figure(name, title, caption, spec=spec_of(chart))]


def _panel(layout: Layout) -> Any:
    width, height = layout["columns"] * COLUMN_WIDTH, layout["height"] * LINE_HEIGHT
    x: Json = {"scale": alt.Scale(domain=[0, layout["columns"]], nice=False), "axis": None}
    y: Json = {"scale": alt.Scale(domain=[0, layout["height"]], nice=False, reverse=True), "axis": None}
    boxes = [{key: box[key] for key in ("kind", "left", "right", "top", "bottom")} for box in layout["boxes"]]
    texts = [text for box in layout["boxes"] for text in _texts(box)]
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())), legend=None)
    drawn = alt.layer(
        alt.Chart(alt.Data(values=layout["links"]))
        .mark_rule(color=theme.UNJUDGED, strokeWidth=1.5)
        .encode(alt.X("at:Q", **x), alt.X2("to:Q"), alt.Y("top:Q", **y), alt.Y2("bottom:Q")),
        alt.Chart(alt.Data(values=boxes))
        .mark_rect(cornerRadius=5, stroke=theme.UNJUDGED, strokeWidth=0.8)
        .encode(alt.X("left:Q", **x), alt.X2("right:Q"), alt.Y("top:Q", **y), alt.Y2("bottom:Q"), colour),
        *(
            alt.Chart(alt.Data(values=[text for text in texts if text["line"] == line]))
            .mark_text(
                align="left",
                baseline="top",
                dx=9,
                dy=7 + line * LINE_HEIGHT,
                color=INK,
                fontSize=12.5 if line == 0 else 11,
                fontWeight="bold" if line == 0 else "normal",
            )
            .encode(alt.X("left:Q", **x), alt.Y("top:Q", **y), text=alt.Text("text:N"))
            for line in sorted({text["line"] for text in texts})
        ),
    )
    return drawn.properties(width=width, height=height, title=layout["title"] or "Every treatment")


def _texts(box: Box) -> list[Json]:
    lines = [box["title"], *box["lines"]]
    return [{"left": box["left"], "top": box["top"], "text": text, "line": n} for n, text in enumerate(lines)]


SECTION = Section(
    key="layout",
    title="Where the files lay",
    template="places/layout.html.j2",
    applies=lambda page: bool(page.verdict.get("layout")),
    figures=lambda page: layout_figures(page.verdict["layout"]),
)
