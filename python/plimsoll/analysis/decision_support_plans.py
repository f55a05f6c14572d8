"""Plans of the queries, as EXPLAIN told them, and which of them differ between treatments.

The fact that constrains it: costs, rows and times of two plans always differ. Two plans are the same here when their
trees are: the operations, what they work on, and how many workers were launched for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plimsoll.record import Segment, Trial

Json = dict[str, Any]
_SHAPE = ("Node Type", "Join Type", "Strategy", "Partial Mode", "Relation Name", "Index Name", "Workers Launched")
_SUB = "Plans"


def plan_changes(
    trials: Mapping[int, Trial], by_treatment: Mapping[str, Mapping[int, Json]], pairs: list[Json]
) -> list[Json]:
    """The queries whose plans differ between the treatments of a pair, in the first block that has both.

    [{**pair, `query`, `first_plan`, `second_plan`: lists of lines}]
    """
    found = []
    for pair in pairs:
        first, second = (by_treatment.get(pair[side]) or {} for side in ("first", "second"))
        for block in sorted(first.keys() & second.keys()):
            one, two = (shapes(trials[side[block]["number"]]) for side in (first, second))
            both = one.keys() & two.keys()
            for name in sorted(both, key=lambda query: int(query[1:])):
                if one[name] != two[name]:
                    found.append({**pair, "query": name, "first_plan": one[name], "second_plan": two[name]})
            if both:
                break
    return found


def shapes(trial: Trial) -> dict[str, list[str]]:
    """Each query's plan as indented lines; without those that were not asked for or cannot be read."""
    found: dict[str, list[str]] = {}
    for test, segment in trial.tests:
        if test != "plans":
            continue
        for one in (segment.queries or {}).get("queries") or []:
            lines = _lines_of(segment, one.get("plan"))
            if lines:
                found[str(one["name"])] = lines
    return found


def _lines_of(segment: Segment, name: str | None) -> list[str]:
    if not name:
        return []
    try:
        document = json.loads((segment.path / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # cut short with the test
    top = document[0] if isinstance(document, list) and document else document
    plan = top.get("Plan") if isinstance(top, dict) else None
    return shape(plan) if isinstance(plan, dict) else []


def shape(plan: Json, depth: int = 0) -> list[str]:
    """A line a node, its inputs below it and farther in."""
    said = [str(plan[key]) if key != "Workers Launched" else f"{plan[key]} workers" for key in _SHAPE if key in plan]
    lines = ["  " * depth + ", ".join(said)]
    return lines + [line for one in plan.get(_SUB) or [] for line in shape(one, depth + 1)]
