"""How the intervals of pairs closed, and the rates of all windows over time."""

from typing import Any

import altair as alt

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metrics import unit_of_work
from plimsoll.analysis.windows.document import Closing, WindowRate
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, panel_width, spec_of
from plimsoll.report.drawing.marks import by_colour, in_turn, intervals, side_by_side

Json = dict[str, Any]
_COLUMNS = 3
_PANELS_MAX = 6
_BLOCKS_A_ROW = 4


def closing_figure(verdict: Json) -> Figure:
    """A panel a pair: the interval by the windows alone as a band, with the starts at each look as a bar."""
    name, title = "windows-closing", "How the interval of each pair closed"
    pairs: list[Closing] = verdict["windows"]["closing"]
    shown = [pair for pair in pairs if pair["windows"]][:_PANELS_MAX]
    if not shown:
        return Figure(name, title, absent="no two levels have windows of the same rounds")
    columns = min(_COLUMNS, len(shown))
    width = (WIDTH - 78 * columns) // columns
    chart = side_by_side([_pair(pair, width) for pair in shown], columns, x="shared")
    more = f" The first {_PANELS_MAX} of {len(pairs)} pairs." if len(pairs) > len(shown) else ""
    caption = (
        "Throughput of the second level over the first, on a logarithmic scale, as rounds went on. Band: 95 % by the "
        "windows alone, which is what these starts of the servers differ by. Bars: each look, after a block, with the "
        f"noise of starts, at the confidence of that look; only they distinguish levels.{more}"
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def _pair(pair: Closing, width: int) -> Any:
    ends = [row for rows in (pair["windows"][1:], pair["looks"][1:]) for row in rows] or pair["windows"]
    least, most = min(row["low"] for row in ends), max(row["high"] for row in ends)
    y = alt.Y(
        "ratio:Q",
        title="ratio",
        scale=alt.Scale(type="log", domain=[least, most], clamp=True, nice=False),
        axis=alt.Axis(format=".3~g", tickCount=5),
    )
    x = alt.X("round:Q", title="rounds", axis=alt.Axis(tickCount=5, format="d"))
    tips = [
        alt.Tooltip("block:Q"),
        alt.Tooltip("round:Q"),
        alt.Tooltip("ratio:Q", format=".3f"),
        alt.Tooltip("low:Q", title="from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
    ]
    windows = alt.Chart(alt.Data(values=pair["windows"]))
    looks = alt.Chart(alt.Data(values=pair["looks"]))
    one = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(strokeDash=[4, 3], color=theme.UNJUDGED)
    layers = [
        windows.mark_area(color=theme.BAND, opacity=0.25, clip=True).encode(x, alt.Y("low:Q"), alt.Y2("high:Q")),
        windows.mark_line(color=theme.BAND, strokeWidth=1.4).encode(x, y),
        one.encode(alt.Y("one:Q")),
        intervals(looks, 2.4, x, color=alt.ColorValue(theme.BEST)),
        looks.mark_point(filled=True, size=60, opacity=1, color=theme.BEST).encode(x, y, tooltip=tips),
    ]
    title = f"{pair['second']} over {pair['first']}"
    return alt.layer(*layers).properties(width=width, height=190, title=title)


def rates_figure(verdict: Json) -> Figure:
    """A small point a window."""
    name, title = "windows-rates", "Throughput of every window"
    rows: list[WindowRate] = verdict["windows"]["rates"]
    work = unit_of_work(verdict)
    if not rows:
        return Figure(name, title, absent="no window entered the verdict")
    labels = treatment_labels(verdict)
    present = [label for key, label in labels.items() if any(row["treatment"] == key for row in rows)]
    blocks = sorted({row["block"] for row in rows})
    width = panel_width(min(_BLOCKS_A_ROW, len(blocks)))
    colour = by_colour("treatment:N", present, in_turn(theme.SERIES, present), symbolOpacity=1, symbolSize=60)
    panels, datasets = [], {}
    for block in blocks:
        datasets[f"block {block}"] = [
            {**row, "treatment": labels.get(row["treatment"], row["treatment"])}
            for row in rows
            if row["block"] == block
        ]
        panels.append(_block(f"block {block}", work, colour, width))
    chart = side_by_side(panels, _BLOCKS_A_ROW, y="shared")
    caption = (
        f"{work.capitalize()}s that ended between the end of the lead-in and the end of the window, divided by that "
        "time. Windows of one round lie side by side, so what goes on for minutes affects all treatments alike."
    )
    return Figure(name, title, caption, spec=spec_of(chart, datasets))


def _block(name: str, work: str, colour: alt.Color, width: int) -> Any:
    return (
        alt.Chart(alt.NamedData(name=name))
        .mark_point(filled=True, size=11, opacity=0.55)
        .encode(
            alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=4), scale=alt.Scale(nice=False)),
            alt.Y("rate:Q", title=f"{work}s/s", axis=alt.Axis(format="~s", tickCount=5)),
            colour,
            tooltip=[
                alt.Tooltip("treatment:N"),
                alt.Tooltip("round:Q"),
                alt.Tooltip("trial:Q"),
                alt.Tooltip("rate:Q", format=",.0f"),
            ],
        )
        .properties(width=width, height=210, title=name)
    )
