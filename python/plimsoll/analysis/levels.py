"""Levels of one factor compared while the others stand still: one comparison per combination of the others' levels.

Works for a full factorial and for one factor at a time alike: a group is whatever treatments agree in everything but
the factor. A factor with `compare = false` in the experiment is never swept, only stood still.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plimsoll.analysis.compare import ALPHA, Pairs, beaten, best_set, effects, pairs, word
from plimsoll.analysis.intervals import BLOCKS_MIN, grade, over_blocks
from plimsoll.analysis.metric import Metric

Json = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Treatments that differ in one factor only, in the order of its levels."""

    path: str
    label: str
    unit: str | None
    at: dict[str, str] = field(default_factory=dict)
    at_labels: dict[str, str] = field(default_factory=dict)
    treatments: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()


def _swept(plan: Json, experiment: Json) -> list[Json]:
    """The factors to compare: of several levels and not marked `compare = false`; of a full factorial the largest."""
    silent = {entry.get("path") for entry in experiment.get("factors") or [] if entry.get("compare") is False}
    factors = [factor for factor in plan.get("factors") or [] if len(factor.get("levels") or []) > 1]
    loud = [factor for factor in factors if factor.get("path") not in silent and factor.get("compare") is not False]
    if (plan.get("kind") or (experiment.get("design") or {}).get("kind")) == "one factor at a time":
        return loud
    return sorted(loud, key=lambda factor: -len(factor["levels"]))[:1]


def groups(plan: Json, experiment: Json) -> list[Group]:
    """Every comparison the plan allows, in the order of the file."""
    treatments = {name: entry.get("levels") or {} for name, entry in (plan.get("treatments") or {}).items()}
    other_labels = {
        factor["path"]: factor.get("label") or factor["path"].rsplit(".", 1)[-1] for factor in plan.get("factors") or []
    }
    found = []
    for factor in _swept(plan, experiment):
        path = factor["path"]
        order = {str(level.get("label")): (place, level.get("value")) for place, level in enumerate(factor["levels"])}
        gathered: dict[tuple[tuple[str, str], ...], list[tuple[int, str, str, Any]]] = {}
        for name, levels in treatments.items():
            mine = str(levels.get(path))
            if mine not in order:
                continue
            at = tuple((other, str(level)) for other, level in levels.items() if other != path)
            gathered.setdefault(at, []).append((order[mine][0], name, mine, order[mine][1]))
        for at, rows in gathered.items():
            if len(rows) > 1:
                _, names, labels, values = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
                label = factor.get("label") or path.rsplit(".", 1)[-1]
                found.append(Group(path, label, factor.get("unit"), dict(at), other_labels, names, labels, values))
    return found


def _matrix(group: Group, used: Mapping[tuple[int, str], Json], metric: Metric) -> tuple[list[int], np.ndarray]:
    """Blocks and logs of the metric, NaN where no trial enters; signed so that higher is better."""
    blocks = sorted({block for block, treatment in used if treatment in group.treatments})
    logs = np.full((len(blocks), len(group.treatments)), np.nan)
    for row, block in enumerate(blocks):
        for column, treatment in enumerate(group.treatments):
            entry = used.get((block, treatment))
            value = entry["metrics"].get(metric.key) if entry else None
            if value and value > 0:
                logs[row, column] = math.log(value)
    return blocks, -logs if metric.better == "lower" else logs


def _ratio(mean: float, half: float, sign: float = 1.0) -> Json:
    centre = sign * mean
    known = np.isfinite(half)
    return {
        "ratio": float(np.exp(centre)),
        "low": float(np.exp(centre - half)) if known else None,
        "high": float(np.exp(centre + half)) if known else None,
    }


def compare_levels(
    group: Group, used: Mapping[tuple[int, str], Json], metric: Metric, delta: float, spread_log: float
) -> Json:
    """The comparison of one group: estimates, the best set, every pair, and a word for each level."""
    blocks, logs = _matrix(group, used, metric)
    judged = np.isfinite(logs).sum(0) >= BLOCKS_MIN
    found = pairs(logs)
    judge = _Judge(
        found, found.half(), beaten(found, ALPHA, spread_log), effects(logs), judged,
        best_set(np.where(judged, logs, np.nan), ALPHA, spread_log), delta, spread_log,
    )  # fmt: skip
    reference = judge.reference
    levels = []
    for index, treatment in enumerate(group.treatments):
        values = [
            {
                "block": block,
                "trial": used[block, treatment]["number"],
                "value": used[block, treatment]["metrics"][metric.key],
            }
            for block in blocks
            if (block, treatment) in used
        ]
        own = over_blocks([value["value"] for value in values], metric.scale == "log", metric.ceiling)
        against, slower, said = judge.level(index)
        levels.append(
            {
                "treatment": treatment,
                "level": group.levels[index],
                "value": group.values[index],
                "estimate": None if own is None else own.value,
                "low": None if own is None else own.low,
                "high": None if own is None else own.high,
                "blocks": 0 if own is None else own.blocks,
                "points": values,
                "in_best_set": bool(judge.inside[index]),
                "against": None if against is None else group.levels[against],
                "times_slower": slower,
                "verdict": said,
                "why": judge.why(said, slower),
            }
        )
    return {
        "factor": group.path,
        "label": group.label,
        "unit": group.unit,
        "at": group.at,
        "at_labels": {path: group.at_labels.get(path, path) for path in group.at},
        "metric": metric.key,
        "grade": grade(judge.common()),
        "blocks": len(blocks),
        "delta": delta,
        "reference": None if reference is None else group.levels[reference],
        "best_set": [level["level"] for level in levels if level["in_best_set"]],
        "best_set_alike": _alike(judge.inside, found.mean, judge.half, delta),
        "levels": levels,
        "pairs": _pairs(group, found.mean, judge.half, found.blocks, metric, delta, spread_log),
    }


@dataclass(frozen=True)
class _Judge:
    """What the pairs say about each level."""

    pairs: Pairs
    half: np.ndarray
    beaten: np.ndarray
    centre: np.ndarray
    judged: np.ndarray
    inside: np.ndarray
    delta: float
    spread_log: float

    @property
    def reference(self) -> int | None:
        """The level of the best estimate, of those with enough blocks where there are any."""
        able = np.isfinite(self.centre)
        able = able & self.judged if (able & self.judged).any() else able
        return int(np.argmax(np.where(able, self.centre, -np.inf))) if able.any() else None

    def common(self) -> int:
        """The fewest blocks that two levels with enough blocks have in common."""
        members = np.nonzero(self.judged)[0]
        return int(min((self.pairs.blocks[i, j] for i in members for j in members if i < j), default=0))

    def why(self, said: str, slower: Json | None) -> str | None:
        """Why a level cannot be told from the best."""
        if said != "cannot tell" or slower is None or slower["low"] is None:
            return None
        if slower["low"] <= 1 <= slower["high"]:
            return "the interval holds 1"
        if slower["ratio"] <= math.exp(self.spread_log):
            return "within the A/A spread"
        return "not once all the levels compared are allowed for"

    def level(self, index: int) -> tuple[int | None, Json | None, str]:
        """Against which level, how many times slower, and the word.

        Against the best estimate; a level that only another one beats is set against the best of those, so that the
        ratio shown is the one the verdict rests on.
        """
        reference = self.reference
        if reference is None or not np.isfinite(self.centre[index]):
            return None, None, "no data"
        if index == reference:
            return None, None, "best estimate"
        worse = bool(self.judged[index] and not self.inside[index])
        if worse and not self.beaten[index, reference]:
            winners = np.nonzero(self.beaten[index])[0]
            reference = int(winners[np.argmax(self.centre[winners])])
        blocks = int(self.pairs.blocks[reference, index])
        if blocks == 0:
            return None, None, "too few blocks"
        slower = _ratio(float(self.pairs.mean[reference, index]), float(self.half[reference, index]))
        slower["blocks"] = blocks
        if worse:
            return reference, slower, "worse"
        if blocks < BLOCKS_MIN or not self.judged[index]:
            return reference, slower, "too few blocks"
        said = word(
            -float(self.pairs.mean[reference, index]), float(self.half[reference, index]), self.delta, self.spread_log
        )
        # "worse" here is one pair's word that does not hold once all the pairs looked at are allowed for
        return reference, slower, said if said == "no relevant difference" else "cannot tell"


def _alike(inside: np.ndarray, mean: np.ndarray, half: np.ndarray, delta: float) -> bool:
    """Every pair of the best set is shown to differ by no more than the relevant ratio."""
    members = np.nonzero(inside)[0]
    margin = math.log1p(delta)
    return len(members) > 1 and all(
        np.isfinite(half[i, j]) and abs(mean[i, j]) + half[i, j] <= margin for i in members for j in members if i < j
    )


def _pairs(
    group: Group,
    mean: np.ndarray,
    half: np.ndarray,
    blocks: np.ndarray,
    metric: Metric,
    delta: float,
    spread_log: float,
) -> list[Json]:
    """Each pair once: ratio of the metric, second level over first, with its own 95 % interval."""
    sign = -1.0 if metric.better == "lower" else 1.0
    result = []
    for first in range(len(group.treatments)):
        for second in range(first + 1, len(group.treatments)):
            if blocks[second, first] == 0:
                continue
            centre, width = float(mean[second, first]), float(half[second, first])
            result.append(
                {
                    "first": group.levels[first],
                    "second": group.levels[second],
                    "blocks": int(blocks[second, first]),
                    **_ratio(centre, width, sign),
                    "verdict": word(centre, width, delta, spread_log),
                }
            )
    return result
