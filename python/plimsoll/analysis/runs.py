"""Two runs against each other, treatment by treatment.

Their blocks were not interleaved: whatever drifted between the two runs is in the ratio as much as what was changed,
and no interval accounts for it. Runs whose machines differ in a checked key are refused unless the caller insists.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from plimsoll.analysis.compare import DELTA, word
from plimsoll.analysis.intervals import BLOCKS_MIN, CONFIDENCE, grade
from plimsoll.analysis.metrics import JUDGED, METRICS
from plimsoll.analysis.verdict import analyse, chosen
from plimsoll.record import Run

Json = dict[str, Any]
Difference = str | Json
NOT_INTERLEAVED = (
    "the blocks of the two runs were not interleaved: a drift of the machine between the runs shows as a difference, "
    "and the intervals do not account for it; run both settings as levels of one experiment to be sure"
)


class NotComparable(Exception):
    """The two runs were made on machines or with settings that differ in a checked key."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = [difference_words(difference) for difference in differences]
        super().__init__("the runs differ in what is checked: " + "; ".join(self.differences))


def difference_words(difference: Difference) -> str:
    """A difference of two fingerprints: text as it is, or {key, a, b}."""
    if isinstance(difference, str):
        return difference
    a, b = ("nothing" if difference.get(side) is None else str(difference[side]) for side in "ab")
    return f"{difference.get('key')}: {a} against {b}"


def unpaired(first: Sequence[float], second: Sequence[float]) -> Json:
    """Ratio second over first with Welch's t interval on logs; no interval below three blocks on either side."""
    one, two = np.log(np.asarray(first, float)), np.log(np.asarray(second, float))
    centre = float(two.mean() - one.mean())
    blocks = min(len(one), len(two))
    result: Json = {"ratio": math.exp(centre), "low": None, "high": None, "blocks": [len(one), len(two)]}
    if blocks < BLOCKS_MIN:
        return {**result, "grade": "none"}
    parts = np.array([one.var(ddof=1) / len(one), two.var(ddof=1) / len(two)])
    total = float(parts.sum())
    freedom = total**2 / float((parts**2 / [len(one) - 1, len(two) - 1]).sum()) if total > 0 else blocks - 1
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(total)
    return {**result, "low": math.exp(centre - half), "high": math.exp(centre + half), "grade": grade(blocks)}


def _by_label(verdict: Json, metric: str) -> dict[str, list[float]]:
    used = chosen(verdict["trials"])
    found: dict[str, list[float]] = {}
    for (_, treatment), entry in sorted(used.items()):
        label = verdict["treatments"].get(treatment, {}).get("label", treatment)
        value = entry["metrics"][metric]
        if value:
            found.setdefault(label, []).append(value)
    return found


def compare_runs(run_a: Run, run_b: Run, differences: Sequence[Difference] = (), accept: bool = False) -> Json:
    """Compare treatments of the same label; raises NotComparable when there are differences and `accept` is false."""
    if differences and not accept:
        raise NotComparable(differences)
    one, two = analyse(run_a), analyse(run_b)
    metric = one["metric"] if one["metric"] == two["metric"] else JUDGED
    sign = -1.0 if METRICS[metric].better == "lower" else 1.0
    first, second = _by_label(one, metric), _by_label(two, metric)
    evidence = [verdict["a_a"] for verdict in (one, two) if verdict["metric"] == metric]
    spreads = [found["ratio_spread"] for found in evidence if found["ratio_spread"]]
    spread = max(spreads, default=None)
    delta = max(one["relevant_ratio"], two["relevant_ratio"], 1 + DELTA) - 1
    rows = []
    for label in first:
        if label not in second:
            continue
        found = unpaired(first[label], second[label])
        half = math.log(found["high"] / found["ratio"]) if found["high"] else math.nan
        said = word(sign * math.log(found["ratio"]), half, delta, math.log(spread) if spread else 0.0)
        rows.append({"treatment": label, **found, "verdict": said})
    caveats = [NOT_INTERLEAVED]
    if spread is None:
        caveats.append("neither run has A/A evidence: how much two equal trials differ here is not known")
    if differences:
        caveats.append(
            "compared although they differ in what is checked: " + "; ".join(map(difference_words, differences))
        )
    return {
        "format": 1,
        "first": {"run": one["run"], "experiment": one["experiment"], "path": str(run_a.path)},
        "second": {"run": two["run"], "experiment": two["experiment"], "path": str(run_b.path)},
        "metric": metric,
        "metric_label": METRICS[metric].label,
        "relevant_ratio": 1 + delta,
        "ratio_spread": spread,
        "treatments": rows,
        "only_first": [label for label in first if label not in second],
        "only_second": [label for label in second if label not in first],
        "caveats": caveats,
    }
