"""How much equals differ here: the spread that stands beside every verdict.

Two sources: duplicates inside the run's own blocks, and the newest stored A/A run of the machine. The larger of both
decides: a quiet hour that is stored says nothing about a noisy run. Levels are told apart by the scatter of all trials
(noise.py); what is compared without it is "cannot tell" within the spread.
"""

import math
from typing import Any

import numpy as np

from plimsoll.analysis.statistics.intervals import grade, over_blocks

DEFINITION = (
    "ratio of two trials of the same treatment in the same block, geometric mean over blocks with a 95 % t interval; "
    "the spread is the end of the interval farther from 1 (with fewer than three blocks: the largest ratio seen)"
)


def _far(*ratios: float) -> float:
    return max(math.exp(abs(math.log(ratio))) for ratio in ratios if ratio > 0)


def within_run(pairs: list[dict[str, Any]], metric: str) -> dict[str, Any] | None:
    """From {block, treatment, first, second}: the metric of the original and of its duplicate.

    Where one of them is `unbounded` its value is the least that it can be, and so is the spread.
    """
    usable = [pair for pair in pairs if (pair["first"] or 0) > 0 and (pair["second"] or 0) > 0]
    if not usable:
        return None
    ratios = [pair["second"] / pair["first"] for pair in usable]
    found = over_blocks(ratios, log=True)
    assert found is not None  # every ratio is above 0
    beyond = sum(bool(pair.get("unbounded")) for pair in usable)
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
            for pair, ratio in zip(usable, ratios, strict=True)
        ],
    }


def _of(stored: dict[str, Any] | None, metric: str) -> dict[str, Any] | None:
    """The stored A/A run, where it is of this metric."""
    return stored if stored and stored.get("metric") == metric and stored.get("ratio_spread") else None


def stored_noise(stored: dict[str, Any] | None, metric: str) -> float:
    """Standard deviation of one trial's log in the stored A/A run, whose pairs scatter by the root of two more.

    0 where there is none of this metric.
    """
    known = _of(stored, metric) or {}
    return float(known.get("sd_log") or 0.0) / math.sqrt(2)


def spread(own: dict[str, Any] | None, stored: dict[str, Any] | None, metric: str) -> dict[str, Any]:
    """The A/A evidence of a run and the spread that decides; `ratio_spread` is None where nothing is known."""
    known = _of(stored, metric)
    source, chosen = None, None
    if own is not None:
        source, chosen = "duplicates inside this run", own
    if known is not None and (own is None or known["ratio_spread"] > own["ratio_spread"]):
        source, chosen = f"stored A/A run {known.get('run')}", known
    return {
        "definition": DEFINITION,
        "within_run": own,
        "stored": stored,
        "source": source,
        "ratio_spread": None if chosen is None else float(chosen["ratio_spread"]),
        "blocks": None if chosen is None else chosen.get("blocks"),
    }


def band(estimate: float | None, ratio_spread: float | None) -> tuple[float, float] | None:
    """What is within the spread of equals around an estimate; None where either is not known."""
    if not ratio_spread or estimate is None:
        return None
    return estimate / ratio_spread, estimate * ratio_spread
