"""The page of a comparison: what the terminal says, and a flame graph of what changed on the CPUs for each treatment.

Computes nothing: boxes and words are those of the comparison.
"""

from pathlib import Path
from typing import Any

from plimsoll.analysis.breakdown.changes import CANNOT_TELL
from plimsoll.record import writer
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.flame import flame
from plimsoll.report.drawing.html import rendered
from plimsoll.words.comparing.comparison import comparison_lines

Json = dict[str, Any]
_US = 1e-3
_CAPTION = (
    "Width is the CPU time of a transaction, the mean of both sides, so that what vanished is still there. Red: more "
    "of it in the second; blue: less. Pale: not significant, the interval of the difference includes zero (the "
    "intervals of all boxes are widened together, as in the lists). Boxes under a thousandth are not drawn."
)


def _kind(box: Json) -> str:
    if box["word"] == CANNOT_TELL:
        return "more, or chance" if box["difference"] > 0 else "less, or chance"
    return str(box["word"])


def changes_figures(compared: Json) -> list[Figure]:
    """A flame graph of the difference for each treatment that has stacks on both sides."""
    found = []
    for place, one in enumerate(compared["explained"]):
        if one["functions"]:
            boxes = one["functions"]["boxes"]
            drawn = [
                box
                | {"kind": _kind(box), "name": box["name"].removesuffix("_[k]")}
                | {"said": f"{box['difference'] * _US:+,.3g} µs ({box['word']})"}
                for box in boxes
            ]
            title = f"What changed on the CPUs: {one['treatment']}"
            found.append(flame(f"changes-{place}", title, _CAPTION, drawn, "µs", _US, theme.CHANGED))
    return found


def write_comparison(compared: Json, path: Path) -> Path:
    """One HTML file that works offline."""
    names = [compared[side].get("treatment") or compared[side]["run"] for side in ("second", "first")]
    figures = changes_figures(compared)
    context = {
        "title": f"{names[0]} against {names[1]}",
        "lines": comparison_lines(compared),
        "figures": figures,
        "specs": {figure.name: figure.spec for figure in figures if figure.spec is not None},
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
    }
    writer.write_text(path, rendered("comparison/comparison.html.j2", context))
    return path
