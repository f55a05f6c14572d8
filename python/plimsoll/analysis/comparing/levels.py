"""Levels of one factor compared while the others stand still: one comparison per combination of the others' levels.

Works for a full factorial and for one factor at a time alike: a group is whatever treatments agree in everything but
the factor. A factor with `compare = false` in the experiment is never swept, only stood still.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plimsoll.analysis.comparing import unbounded
from plimsoll.analysis.comparing.compare import Word, effects, word
from plimsoll.analysis.comparing.evidence import Evidence, Method, blocks_of, by_trials
from plimsoll.analysis.comparing.noise import cells
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.statistics.intervals import grade
from plimsoll.record.verdict import Comparison, InBlocks, Level, PairOfLevels, Point, Ratio, Used

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
    listed = []
    for factor in _swept(plan, experiment):
        path = factor["path"]
        order = {str(level.get("label")): (place, level.get("value")) for place, level in enumerate(factor["levels"])}
        gathered: dict[tuple[tuple[str, str], ...], list[tuple[int, str, str, Any]]] = {}
        for name, levels in treatments.items():
            own = str(levels.get(path))
            if own not in order:
                continue
            at = tuple((other, str(level)) for other, level in levels.items() if other != path)
            gathered.setdefault(at, []).append((order[own][0], name, own, order[own][1]))
        for at, rows in gathered.items():
            if len(rows) > 1:
                _, names, labels, values = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
                label = factor.get("label") or path.rsplit(".", 1)[-1]
                listed.append(Group(path, label, factor.get("unit"), dict(at), other_labels, names, labels, values))
    return listed


def compare_levels(
    group: Group,
    used: Used,
    twins: Used,
    metric: Metric,
    delta: float,
    method: Method | None = None,
) -> Comparison:
    """The comparison of one group: estimates, the best set, every pair, and a word for each level.

    `twins` are duplicates of trials in `used`; `method` says what levels are told apart by (by_trials where not given).
    """
    blocks = blocks_of(group.treatments, used)
    evidence = (method or by_trials())(group.treatments, used, twins, metric)
    judge = _judge(evidence, delta, is_rate=metric.better == "higher")
    reference = judge.reference
    levels: list[Level] = []
    for index, treatment in enumerate(group.treatments):
        places = [(block, treatment) for block in blocks if (block, treatment) in used]
        values: list[Point] = [
            {"block": block, "trial": used[block, name]["number"], "value": used[block, name]["metrics"][metric.key]}
            for block, name in places
        ]
        own = unbounded.estimate(
            [unbounded.together(used[place], twins.get(place), metric) for place in places], metric
        )
        against, slower, said = judge.level(index)
        levels.append(
            {
                "treatment": treatment,
                "level": group.levels[index],
                "value": group.values[index],
                "estimate": own["value"] if own else None,
                "low": own["low"] if own else None,
                "high": own["high"] if own else None,
                "blocks": own["blocks"] if own else 0,
                "unbounded": judge.unbounded(index),
                "points": values,
                "in_best_set": bool(judge.inside[index]),
                "against": None if against is None else group.levels[against],
                "times_slower": slower,
                "verdict": said,
                "why": judge.why(index, said, slower),
            }
        )
    return {
        "factor": group.path,
        "label": group.label,
        "unit": group.unit,
        "at": group.at,
        "at_labels": {path: group.at_labels.get(path, path) for path in group.at},
        "metric": metric.key,
        "grade": grade(judge.common(), evidence.blocks_min),
        "blocks": len(blocks),
        "blocks_min": evidence.blocks_min,
        "delta": delta,
        "noise": evidence.noise,
        "reference": None if reference is None else group.levels[reference],
        "best_set": [level["level"] for level in levels if level["in_best_set"]],
        "best_set_alike": _alike(judge),
        "levels": levels,
        "pairs": _pairs(group, judge, metric, evidence),
    }


@dataclass(frozen=True)
class _Judge:
    """What the pairs say about each level; `beyond` counts the blocks in which it is unbounded, `present` all."""

    found: unbounded.Compared
    half: np.ndarray
    centre: np.ndarray
    beyond: np.ndarray
    present: np.ndarray
    judged: np.ndarray
    inside: np.ndarray
    delta: float
    blocks_min: int
    is_rate: bool

    @property
    def reference(self) -> int | None:
        """The level of the best estimate, of those with enough blocks where there are any.

        Where some are unbounded in some blocks: of those that are so in the fewest.
        """
        able = np.isfinite(self.centre)
        able = able & self.judged if (able & self.judged).any() else able
        if self.beyond.any() and able.any():
            able = able & self.inside if (able & self.inside).any() else able
            share = np.where(able, self.beyond / np.maximum(self.present, 1), np.inf)
            able = able & (share == share.min())
        return int(np.argmax(np.where(able, self.centre, -np.inf))) if able.any() else None

    def common(self) -> int:
        """The fewest blocks that two levels with enough blocks have in common."""
        members = np.nonzero(self.judged)[0]
        return int(min((self.found.shown.blocks[i, j] for i in members for j in members if i < j), default=0))

    def unbounded(self, index: int) -> InBlocks | None:
        """{blocks, of}: in how many blocks a level is unbounded; None where in none."""
        blocks = int(self.beyond[index])
        if not blocks:
            return None
        found: InBlocks = {"blocks": blocks, "of": int(self.present[index])}
        return {**found, "stood_still": True} if self.is_rate else found

    def why(self, index: int, said: str, slower: Ratio | None) -> str | None:
        """Why a level cannot be told from the best; of one that is unbounded somewhere that it is so."""
        if blocks := self.unbounded(index):
            return unbounded.blocks_words(blocks)
        if said != "cannot tell" or slower is None:
            return None
        ratio, low, high = slower["ratio"], slower["low"], slower["high"]
        if ratio is None or low is None or high is None:
            return None
        if low <= 1 <= high:
            return "the interval includes 1"
        return "not significant once corrected for the number of levels"

    def level(self, index: int) -> tuple[int | None, Ratio | None, str]:
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
        if worse and not self.found.beaten[index, reference]:
            winners = np.nonzero(self.found.beaten[index])[0]
            reference = int(winners[np.argmax(self.centre[winners])])
        blocks = int(self.found.shown.blocks[reference, index])
        if blocks == 0:
            return None, None, "too few blocks"
        slower = self.found.with_best(reference, index)
        if worse:
            return reference, slower, "worse"
        if blocks < self.blocks_min or not self.judged[index]:
            return reference, slower, "too few blocks"
        return reference, slower, self.pair(index, reference)

    def pair(self, first: int, second: int) -> Word:
        """The word on the first level of two: told apart where the test of all pairs says so, alike by their own."""
        if self.found.beaten[first, second] or self.found.beaten[second, first]:
            return "worse" if self.found.beaten[first, second] else "better"
        said = word(float(self.found.shown.mean[first, second]), float(self.half[first, second]), self.delta)
        return said if said == "no relevant difference" else "cannot tell"


def _judge(evidence: Evidence, delta: float, *, is_rate: bool) -> _Judge:
    logs, beyond = evidence.copies[0], evidence.beyond
    judged = np.isfinite(logs).sum(0) >= evidence.blocks_min
    inside = ~evidence.sure.beaten.any(-1) & judged & np.isfinite(logs).any(0)
    means = cells(evidence.copies)
    known = effects(np.where(beyond, np.nan, means)) if evidence.centre is None else evidence.centre
    centre = np.where(np.isfinite(known), known, effects(means)) if beyond.any() else known
    compared, present = evidence.found, np.isfinite(logs).sum(0)
    half, count = compared.half(), beyond.sum(0)
    return _Judge(compared, half, centre, count, present, judged, inside, delta, evidence.blocks_min, is_rate)


def _alike(judge: _Judge) -> bool:
    """Every pair of the best set is shown to differ by no more than the relevant ratio."""
    members = np.nonzero(judge.inside)[0]
    mean, half = judge.found.shown.mean, judge.half
    margin = math.log1p(judge.delta)
    return len(members) > 1 and all(
        np.isfinite(half[i, j]) and abs(mean[i, j]) + half[i, j] <= margin for i in members for j in members if i < j
    )


def _pairs(group: Group, judge: _Judge, metric: Metric, evidence: Evidence) -> list[PairOfLevels]:
    """Each pair once: ratio of the metric, second level over first, with its own 95 % interval."""
    apart, through = evidence.apart, evidence.reference
    result: list[PairOfLevels] = []
    for first in range(len(group.treatments)):
        for second in range(first + 1, len(group.treatments)):
            if judge.found.shown.blocks[second, first]:
                ratio = pair_ratio(judge.found, first, second, metric)
                said = judge.pair(second, first)
                pair: PairOfLevels = {
                    "first": group.levels[first],
                    "second": group.levels[second],
                    **ratio,
                    "verdict": said,
                }
                if apart is not None and through is not None and apart[first, second]:
                    pair["through"] = through
                result.append(pair)
    return result


def pair_ratio(compared: unbounded.Compared, first: int, second: int, metric: Metric) -> Ratio:
    """{blocks, ratio (of the metric, second over first), low, high, bound where the ratio is only one}."""
    return compared.ratio(second, first, -1.0 if metric.better == "lower" else 1.0)
