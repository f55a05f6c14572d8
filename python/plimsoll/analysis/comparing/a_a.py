"""How much equals differ here: the spread that stands beside every verdict.

Two sources: duplicates inside the run's own blocks, and the newest stored A/A run of the machine. The larger of both
decides: a quiet hour that is stored says nothing about a noisy run. Levels are told apart by the scatter of all trials
(noise.py); what is compared without it is "cannot tell" within the spread.
"""

import math
from typing import NotRequired, TypedDict

import numpy as np

from plimsoll.analysis.statistics.intervals import grade, over_blocks
from plimsoll.record.verdict import Equals, StoredEquals, WithinRun

DEFINITION = (
    "ratio of two trials of the same treatment in the same block, geometric mean over blocks with a 95 % t interval; "
    "the spread is the end of the interval farther from 1 (with fewer than three blocks: the largest ratio seen)"
)


class Duplicated(TypedDict):
    """A metric of an original and of its duplicate; `unbounded`: of one of them it is the least that it can be."""

    block: int
    treatment: str
    first: float | None
    second: float | None
    unbounded: NotRequired[bool]


def _far(*ratios: float) -> float:
    return max(math.exp(abs(math.log(ratio))) for ratio in ratios if ratio > 0)


def within_run(pairs: list[Duplicated], metric: str) -> WithinRun | None:
    """The metric of the original and of its duplicate.

    Where one of them is `unbounded` its value is the least that it can be, and so is the spread.
    """
    usable = [
        (pair, first, second)
        for pair in pairs
        if (first := pair["first"] or 0) > 0 and (second := pair["second"] or 0) > 0
    ]
    if not usable:
        return None
    ratios = [second / first for _, first, second in usable]
    found = over_blocks(ratios, log=True)
    assert found is not None  # every ratio is above 0
    beyond = sum(pair.get("unbounded", False) for pair, _, _ in usable)
    ends = [ratio for ratio in (found.low, found.high) if ratio is not None]
    return {
        "metric": metric,
        "ratio": found.value,
        "low": found.low,
        "high": found.high,
        "blocks": found.blocks,
        "grade": grade(found.blocks),
        "ratio_spread": _far(*(ends or ratios)),
        "unbounded": beyond or None,
        "sd_log": float(np.std(np.log(ratios), ddof=1)) if len(ratios) > 1 else None,
        "pairs": [
            {"block": pair["block"], "treatment": pair["treatment"], "ratio": ratio}
            for (pair, _, _), ratio in zip(usable, ratios, strict=True)
        ],
    }


def _of(stored: StoredEquals | None, metric: str) -> StoredEquals | None:
    """The stored A/A run, where it is of this metric."""
    return stored if stored and stored.get("metric") == metric and stored.get("ratio_spread") else None


def stored_noise(stored: StoredEquals | None, metric: str) -> float:
    """Standard deviation of one trial's log in the stored A/A run, whose pairs scatter by the root of two more.

    0 where there is none of this metric.
    """
    known = _of(stored, metric)
    return float((known.get("sd_log") if known else None) or 0.0) / math.sqrt(2)


def spread(own: WithinRun | None, stored: StoredEquals | None, metric: str) -> Equals:
    """The A/A evidence of a run and the spread that decides; `ratio_spread` is None where nothing is known."""
    known = _of(stored, metric)
    source, ratio, blocks = None, None, None
    if own is not None:
        source, ratio, blocks = "duplicates inside this run", own["ratio_spread"], own["blocks"]
    other = known["ratio_spread"] if known else None
    if known is not None and other is not None and (ratio is None or other > ratio):
        source, ratio, blocks = f"stored A/A run {known.get('run')}", float(other), known.get("blocks")
    return {
        "definition": DEFINITION,
        "within_run": own,
        "stored": stored,
        "source": source,
        "ratio_spread": ratio,
        "blocks": blocks,
    }


def band(estimate: float | None, ratio_spread: float | None) -> tuple[float, float] | None:
    """What is within the spread of equals around an estimate; None where either is not known."""
    if not ratio_spread or estimate is None:
        return None
    return estimate / ratio_spread, estimate * ratio_spread
