"""A figure: a chart, or the one line that says why there is none."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.report.drawing import theme
from plimsoll.report.drawing.bundle import VEGA_LITE

Json = dict[str, Any]
WIDTH = 1050
SHOWN_WIDTH = 520  # of the figure on the first screen
_LETTER_WIDTH = 6.6


@dataclass(frozen=True)
class Figure:
    """`spec` is a Vega-Lite specification without config; None when `absent` says why."""

    name: str
    title: str
    caption: str = ""
    original: str = ""
    spec: Json | None = None
    absent: str = ""
    controls: bool = field(default=False)


def spec_of(chart: Any, datasets: Json | None = None) -> Json:
    """A chart's specification with its data inlined and without config.

    `datasets`: rows by the name under which the chart has them (alt.NamedData). Altair copies rows inside a chart many
    times over, which takes seconds for those of every sample.
    """
    spec: Json = json.loads(chart.to_json(validate=False))
    spec.pop("config", None)
    return spec | {"datasets": datasets} if datasets else spec


def panel_width(panels: int, half: bool = False) -> int:
    """Width of each of some panels side by side; `half`: the figure takes half of the page."""
    room = WIDTH // 2 - 24 if half else WIDTH
    return max(180, (room - 72 * panels - 14) // max(1, panels))


def level_axis(levels: list[str], width: int) -> Any:
    """The axis under levels: their names stand aslant where a panel is too narrow for them side by side."""
    import altair as alt

    room = width / max(1, len(levels))
    aslant = max((len(level) for level in levels), default=0) * _LETTER_WIDTH + 6 > room
    return alt.Axis(labelAngle=-40, labelAlign="right") if aslant else alt.Axis(labelAngle=0)


def level_x(comparison: Json, width: int) -> Any:
    """The levels of a comparison, in its order, from left to right."""
    import altair as alt

    order = [level["level"] for level in comparison["levels"]]
    axis = level_axis(order, width)
    return alt.X("level:N", sort=order, title=comparison["label"], scale=alt.Scale(domain=order), axis=axis)


def write_files(figure: Figure, folder: Path) -> None:
    """The figure as SVG, and as PNG made of it, on white, without a browser."""
    import vl_convert

    if figure.spec is None:
        return
    spec = json.dumps({**figure.spec, "config": {**theme.config("light"), "background": "white"}})
    folder.mkdir(parents=True, exist_ok=True)
    drawn = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    (folder / f"{figure.name}.svg").write_text(drawn, encoding="utf-8")
    (folder / f"{figure.name}.png").write_bytes(vl_convert.svg_to_png(drawn, scale=2.0))
