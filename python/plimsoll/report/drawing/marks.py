"""What figures share: colours with their legend, intervals, panels side by side."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt


def by_colour(
    field: str, names: Sequence[str], colours: Sequence[str], title: str | None = None, **legend: Any
) -> alt.Color:
    """A field's values in their colours, in the order of the names, with the legend on top of the figure."""
    return alt.Color(
        field,
        title=title,
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=list(colours)),
        legend=alt.Legend(orient="top", direction="horizontal", **legend),
    )


def in_turn(values: Sequence[str], names: Sequence[Any]) -> list[str]:
    """A colour or shape for each name, again from the first where there are more names."""
    return [values[place % len(values)] for place in range(len(names))]


def decade_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade from that of `low` to that of `high`, for a logarithmic axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**decade for decade in decades for step in (1, 2, 5)]


def intervals(base: Any, width: float, *encodings: Any, high: str = "high:Q", **more: Any) -> Any:
    """A line from `low` to `high` for each row that has an interval."""
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=width)
    return rules.encode(*encodings, alt.Y("low:Q"), alt.Y2(high), **more)


def side_by_side(panels: list[Any], columns: int, spacing: int = 28, **scales: Any) -> Any:
    """Panels in rows; `scales` says which axes they share. One by itself is no row."""
    if len(panels) == 1:
        return panels[0]
    chart = alt.concat(*panels, columns=columns, spacing=spacing)
    return chart.resolve_scale(**scales) if scales else chart


def titled(panel: Any, title: str) -> Any:
    """A panel with what it is of; without a title where it is of everything."""
    return panel.properties(title=title) if title else panel
