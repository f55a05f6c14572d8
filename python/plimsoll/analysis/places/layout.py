"""The layout of each treatment as boxes: parts of the target, and below them what they stand on, down to the device.

The fact that constrains it: what is drawn is what the trial found made, not what was asked for; and numbers of loop
devices differ from trial to trial without deciding anything, so that they make no layout of their own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.places.document import Box, Layout, Link
from plimsoll.analysis.places.layers import ROWS, Layer, layers_of

Json = dict[str, Any]
VARIED = ("environment.places.", "target.files.")
TITLE, BETWEEN = 1.9, 1.5  # lines that a title takes with its margins, and between boxes
GAP = 0.06  # of a column, beside a box


class Heights:
    """Where the rows begin and end, each as high as its longest box."""

    def __init__(self, stacks: Iterable[list[Layer]], used: list[str]) -> None:
        layers = [layer for stack in stacks for layer in stack]
        self.top: dict[str, float] = {}
        self.bottom: dict[str, float] = {}
        at = 0.0
        for row in used:
            lines = max(len(layer.lines) for layer in layers if layer.row == row)
            self.top[row], self.bottom[row] = at, at + TITLE + lines
            at = self.bottom[row] + BETWEEN
        self.total = at - BETWEEN


def layouts(plan: Json, documents: Mapping[str, Json]) -> list[Layout]:
    """Each layout once, with the treatments that have it; `documents`: the `layout` of trial.json, by treatment."""
    found: dict[str, Layout] = {}
    for treatment, document in documents.items():
        drawn = _drawn(document)
        key = json.dumps(drawn, sort_keys=True)
        if key not in found:
            found[key] = drawn | {"title": storage_of(plan, treatment)}
        found[key]["treatments"].append(treatment)
    return list(found.values())


def storage_of(plan: Json, treatment: str) -> str:
    """The levels of the factors that decide where its files lie; of a place on which nothing lies in it nothing."""
    entry = (plan.get("treatments") or {}).get(treatment, {})
    levels, without = entry.get("levels") or {}, entry.get("without") or ()
    return ", ".join(
        f"{factor.get('label') or factor['path']}: {levels[factor['path']]}"
        for factor in factors_of_places(plan)
        if factor["path"] in levels and factor["path"] not in without
    )


def factors_of_places(plan: Json) -> list[Json]:
    """Those that decide where files lie."""
    factors: list[Json] = plan.get("factors") or []
    return [one for one in factors
            if any(str(path).startswith(VARIED) for path in one.get("paths") or [one.get("path", "")])]  # fmt: skip


def _drawn(document: Json) -> Layout:
    """Columns of places side by side; what several stand on is one box below them all."""
    names = [*document["places"], *(name for name in document["logs"].values() if name not in document["places"])]
    stacks = {name: layers_of(name, document) for name in names}
    used = [row for row in ROWS if any(layer.row == row for stack in stacks.values() for layer in stack)]
    heights = Heights(stacks.values(), used)
    boxes: list[Box] = []
    links: list[Link] = []
    for column, stack in enumerate(stacks.values()):
        own = [layer for layer in stack if layer.row != ROWS[-1]]
        boxes += [_box(layer, heights, column + GAP, column + 1 - GAP) for layer in own]
        links += _links(stack, heights, column)
    boxes += _below(stacks, heights)
    for box in boxes:
        box["width"] = round(box["right"] - box["left"], 3)
    return {
        "treatments": [],
        "title": "",
        "columns": len(names),
        "height": heights.total,
        "boxes": boxes,
        "links": links,
    }


def _box(layer: Layer, heights: Heights, left: float, right: float) -> Box:
    return {
        "kind": layer.row,
        "title": layer.title,
        "lines": layer.lines,
        "top": heights.top[layer.row],
        "bottom": heights.bottom[layer.row],
        "left": left + (right - left) * layer.place,
        "right": left + (right - left) * (layer.place + layer.width),
        "width": 0,
    }


def _links(stack: list[Layer], heights: Heights, column: int) -> list[Link]:
    """From each layer to each of the next lower row."""
    rows = [row for row in ROWS if any(layer.row == row for layer in stack)]
    links: list[Link] = []
    for upper, lower in itertools.pairwise(rows):
        above = [layer for layer in stack if layer.row == upper]
        below = [layer for layer in stack if layer.row == lower]
        for one in above if len(above) > 1 else above * len(below):
            other = below[0] if len(above) > 1 else below[len(links) % len(below)]
            at, to = (column + layer.place + layer.width / 2 for layer in (one, other))
            # What is shared below runs from end to end, so that the line goes straight down to it.
            to = at if lower == ROWS[-1] else to
            links.append({"at": at, "to": to, "top": heights.bottom[upper], "bottom": heights.top[lower]})
    return links


def _below(stacks: Mapping[str, list[Layer]], heights: Heights) -> list[Box]:
    """What images and folders lie on; neighbours that share it have one box."""
    boxes: list[Box] = []
    for column, stack in enumerate(stacks.values()):
        for layer in (one for one in stack if one.row == ROWS[-1]):
            box = _box(layer, heights, column + GAP, column + 1 - GAP)
            last = boxes[-1] if boxes else None
            if last is not None and last["title"] == box["title"] and last["right"] > column - 2 * GAP:
                last["right"] = box["right"]
            else:
                boxes.append(box)
    return boxes


def _judge(context: Context) -> list[Layout] | None:
    documents: dict[str, Json] = {}
    for trial in context.run.trials:
        layout = trial.data.get("layout")
        if isinstance(layout, dict) and trial.treatment not in documents:
            documents[trial.treatment] = layout
    told = [one for one in documents.values() if len(one["places"]) > 1 or "state folder" not in one["places"]]
    if not told:
        return None  # everything lay in the state folder, as in most experiments
    ordered = {name: documents[name] for name in context.run.plan.get("treatments", documents) if name in documents}
    return layouts(context.run.plan, ordered)


PART = Part("layout", _judge)
