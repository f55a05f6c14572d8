"""Plans of the queries, as EXPLAIN told them, and which of them differ between treatments.

The fact that constrains it: costs, rows and times of two plans always differ. Two plans are the same here when their
trees are: the operations, what they work on, and how many workers were launched for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plimsoll.analysis.decision_support.document import PlanChange, TreatmentPair, TrialReading
from plimsoll.record import Segment, Trial

Json = dict[str, Any]
_SHAPE = ("Node Type", "Join Type", "Strategy", "Partial Mode", "Relation Name", "Index Name", "Workers Launched")
_SUB = "Plans"


def plan_changes(
    trials: Mapping[int, Trial],
    by_treatment: Mapping[str, Mapping[int, TrialReading]],
    pairs: list[TreatmentPair],
) -> list[PlanChange]:
    """The queries whose plans differ between the treatments of a pair, within blocks.

    `is_told` is false where a treatment has two plans of its own, which ANALYZE alone may make; `change` is null,
    and filled in by the run's analysis; the plans are of the first block in which they differ.
    """
    seen: dict[int, dict[str, list[str]]] = {}

    def plans(treatment: str) -> dict[int, dict[str, list[str]]]:
        found = {}
        for block, one in sorted((by_treatment.get(treatment) or {}).items()):
            number = one["number"]
            if number not in seen:
                seen[number] = shapes(trials[number])
            found[block] = seen[number]
        return found

    found: list[PlanChange] = []
    for pair in pairs:
        first, second = plans(pair["first"]), plans(pair["second"])
        names = {name for side in (first, second) for one in side.values() for name in one}
        for name in sorted(names, key=lambda query: int(query[1:])):
            both = [block for block in first.keys() & second.keys() if name in first[block] and name in second[block]]
            differ = sorted(block for block in both if first[block][name] != second[block][name])
            if not differ:
                continue
            steady = all(len({tuple(side[block][name]) for block in both}) == 1 for side in (first, second))
            found.append(
                {
                    **pair,
                    "query": name,
                    "blocks": len(both),
                    "differ": len(differ),
                    "change": None,
                    "is_told": steady and len(differ) == len(both),
                    "first_plan": first[differ[0]][name],
                    "second_plan": second[differ[0]][name],
                }
            )
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
