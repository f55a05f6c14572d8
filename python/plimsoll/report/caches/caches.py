"""The study's Linux side in today's terms: page-cache hit ratio, misses of both caches, one per the other.

The study's own counter, where it was recorded, stands apart: it never saw file pages.
"""

from collections.abc import Mapping
from typing import Any

import altair as alt

from plimsoll.analysis.probes.instruments import instrument_of
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import Figure, level_x, panel_width, spec_of
from plimsoll.report.drawing.levels import HEIGHT, HEIGHT_HALF, levels_figure
from plimsoll.report.drawing.marks import by_colour, intervals, side_by_side, titled
from plimsoll.words.levels import at_words

Json = dict[str, Any]
_BOTH = "missed in both caches"
_CACHES = {
    "database_misses_per_query": "missed in the database's cache",
    "page_cache_misses_per_query": _BOTH,
}
_COLOURS = [theme.BEST, theme.WORSE]
_COLUMNS = 3


def _bound(verdict: Json, name: str) -> str:
    """Behind a title whose counts are not complete."""
    return " (lower bound)" if instrument_of(verdict, name).get("lost") else ""


def _caption(text: str, verdict: Json, name: str) -> str:
    note = instrument_of(verdict, name).get("note")
    return f"{text} {note}" if note else text


def _rows(verdict: Json, comparison: Json) -> list[Json]:
    rows = []
    for level in comparison["levels"]:
        metrics = (verdict["treatments"].get(level["treatment"]) or {}).get("metrics") or {}
        for key, name in _CACHES.items():
            mean = metrics.get(key)
            if mean:
                row = {"level": level["level"], "cache": name, "value": mean["value"], "blocks": mean["blocks"]}
                if mean["low"] is not None:
                    row |= {"low": mean["low"], "high": mean["high"]}
                rows.append(row)
    return rows


def _panel(rows: list[Json], comparison: Json, width: int, height: int) -> Any:
    names = list(_CACHES.values())
    x = level_x(comparison, width)
    y = alt.Y("value:Q", title="blocks per query", axis=alt.Axis(format="~r", tickCount=6))
    colour = by_colour("cache:N", names, _COLOURS, labelLimit=260)
    shape = alt.Shape("cache:N", scale=alt.Scale(domain=names, range=["circle", "square"]), legend=None)
    tips = [alt.Tooltip("cache:N"), alt.Tooltip("level:N", title=comparison["label"])]
    tips += [alt.Tooltip(f"{key}:Q", format=",.4~r") for key in ("value", "low", "high")]
    base = alt.Chart(alt.Data(values=rows))
    return alt.layer(
        base.mark_line(opacity=0.45, strokeWidth=1.2).encode(x, y, color=colour),
        intervals(base, 2.4, x, color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
        base.transform_filter(f"datum.cache == '{names[1]}'")
        .mark_text(dy=-11)
        .encode(x, y, text=alt.Text("value:Q", format=".2~r")),
    ).properties(width=width, height=height)


def misses_figure(verdict: Json, study: Mapping[str, str]) -> Figure:
    """Figure 4.7 with 4.5 beside it: what the database's cache missed, and what of it both missed."""
    name = "page-cache-misses-per-query"
    title = "Page-cache misses per query, beside the database's" + (" (figure 4.7)" if study else "")
    original = study.get("linux_misses", "")
    if absent := instrument_of(verdict, "page_cache")["why_absent"]:
        return Figure(name, title, absent=absent, original=original)
    half = len(verdict["comparisons"]) == 1
    width = panel_width(len(verdict["comparisons"][:_COLUMNS]), half)
    panels = []
    for comparison in verdict["comparisons"]:
        rows = _rows(verdict, comparison)
        if any(row["cache"] == _BOTH for row in rows):
            panel = _panel(rows, comparison, width, HEIGHT_HALF if half else HEIGHT)
            panels.append(titled(panel, at_words(comparison)))
    if not panels:
        return Figure(name, title, absent="no level has both counts", original=original)
    chart = side_by_side(panels, _COLUMNS, y="shared")
    caption = _caption(
        "Blocks of 8 KiB of the data files per statement sent. What the database's cache misses it asks of Linux; what "
        "the page cache misses too (labelled) has to come from the device.",
        verdict,
        "page_cache",
    )
    return Figure(name, title + _bound(verdict, "page_cache"), caption, original, spec_of(chart))


def hit_figure(verdict: Json, study: Mapping[str, str]) -> Figure:
    """Figure 4.6."""
    bound = " (from counts that are lower bounds)" if instrument_of(verdict, "page_cache").get("lost") else ""
    return levels_figure(
        verdict,
        "page_cache_hit_ratio",
        "page-cache-hit-ratio",
        "Linux page-cache hit ratio" + (" (figure 4.6)" if study else "") + bound,
        _caption(
            "Of the pages of the data files that reads and page faults asked for, the share that lay in the page cache "
            "when asked for. A page prefetched in time is a hit.",
            verdict,
            "page_cache",
        ),
        {"title": "hit ratio, %", "format": "d", "tip": ".2f", "domain": [0, 100], "label": ".2f", "label_dy": -13},
        scale=100.0,
        half=True,
        original=study.get("linux_hit", ""),
        absent=instrument_of(verdict, "page_cache")["why_absent"] or "",
    )


def per_miss_figure(verdict: Json, study: Mapping[str, str]) -> Figure:
    """Figure 4.8."""
    bound = " (upper bound)" if instrument_of(verdict, "page_cache").get("lost") else ""
    return levels_figure(
        verdict,
        "database_misses_per_page_cache_miss",
        "database-misses-per-page-cache-miss",
        "Database misses per page-cache miss" + (" (figure 4.8)" if study else "") + bound,
        _caption(
            "Blocks the database asked Linux for, per block the page cache did not have: 1 means that the page cache "
            "saves nothing. Logarithmic axis; a level at which the page cache missed nothing has no ratio.",
            verdict,
            "page_cache",
        ),
        {"title": "database misses per miss", "format": "~s", "tip": ".3f", "label": ".3~r", "log": True},
        half=True,
        original=study.get("linux_per_miss", ""),
        absent=instrument_of(verdict, "page_cache")["why_absent"] or "",
    )


def cache_figures(verdict: Json, study: Mapping[str, str]) -> list[Figure]:
    """Figures 4.6 to 4.8, and the study's own counter where somebody asked for it."""
    found = [hit_figure(verdict, study), misses_figure(verdict, study), per_miss_figure(verdict, study)]
    heads = instrument_of(verdict, "buffer_heads")
    if heads["on"] or heads["refused"]:
        found.append(
            levels_figure(
                verdict,
                "buffer_head_touches_per_query",
                "buffer-heads",
                "Buffer heads touched per query: buffer heads, mostly metadata" + _bound(verdict, "buffer_heads"),
                _caption("Tracepoint block:block_touch_buffer on the data's device.", verdict, "buffer_heads"),
                {"title": "touches per query", "format": "~r", "tip": ".3f"},
                half=True,
                original=study.get("buffer_heads", ""),
                absent=heads["why_absent"] or "",
            )
        )
    return found
