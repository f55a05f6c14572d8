"""What changed in a list so long that some of it would leave zero by chance: system calls, functions.

The amounts that are large in both sides together are told one by one, the others in one row. Which are large says
nothing of which differ, so that choosing them favours none. The intervals of a list have one confidence, chosen after
Y. Benjamini and Y. Hochberg (J. R. Stat. Soc. B 57, 1995) and Y. Benjamini and D. Yekutieli (J. Am. Stat. Assoc. 100,
2005), such that of those that leave zero at most one in twenty is expected to have done so by chance.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from plimsoll.analysis.breakdown.changes import Amounts, Key, difference_of, in_rank, mean, row_of, total_of
from plimsoll.analysis.breakdown.document import Whole
from plimsoll.analysis.runs.document import Ranked
from plimsoll.analysis.statistics.intervals import CONFIDENCE, MeanDifference

KEPT_MAX = 40
# Of the whole, in both sides together: what is less goes with the others.
LEAST = 0.002
OTHERS: Key = ("others", "")
Units = Mapping[int, float]  # by block, of what is sampled: what one sample stands for


def ranked(
    first: Amounts,
    second: Amounts,
    whole: Whole,
    is_paired: bool,
    units: tuple[Units, Units] | None = None,
    samples_min: float = 0.0,
) -> Ranked:
    """The largest difference first.

    `units`: the amounts are sums of samples. Then no standard error is smaller than that of counting them, and what has
    fewer than `samples_min` in a trial, on average, goes with the others.
    """
    sides = (first, second)
    means = _means(first, second)
    least = LEAST * (whole["first"] + whole["second"]) / 2
    if units is not None:
        least = max(least, samples_min * max(mean(amounts) for amounts in units))
    order = sorted(means, key=lambda key: (-means[key], key))
    kept = [key for key in order[:KEPT_MAX] if means[key] >= least]
    left = [key for key in order if key not in set(kept)]
    by_key = {key: _by_block(sides, [key]) for key in kept}
    if left:
        by_key[OTHERS] = _by_block(sides, left)
    differences = {key: sure_difference(*both_sides, is_paired, units) for key, both_sides in by_key.items()}
    known = {key: difference for key, difference in differences.items() if difference is not None}
    confidence = confidence_of([difference.chance() for difference in known.values()])
    total = total_of(whole)
    rows = {key: row_of(key, *by_key[key], difference.interval(confidence), total) for key, difference in known.items()}
    others = rows.pop(OTHERS, None)
    return {"rows": in_rank(list(rows.values())), "others": others, "others_count": len(left), "confidence": confidence}


def confidence_of(chances: list[float], rate: float = 1 - CONFIDENCE) -> float:
    """The confidence at which the intervals of those leave zero that the procedure rejects, and of no others."""
    ordered = sorted(chances)
    rejected = [place for place, chance in enumerate(ordered, 1) if chance <= rate * place / len(ordered)]
    return 1 - rate * max(rejected, default=1) / max(1, len(ordered))


def _means(first: Amounts, second: Amounts) -> dict[Key, float]:
    """Of both sides together, each side as much as the other."""
    means: dict[Key, float] = {}
    for side in (first, second):
        for amounts in side.values():
            for key, value in amounts.items():
                means[key] = means.get(key, 0.0) + value / len(side) / 2
    return means


def _by_block(sides: tuple[Amounts, Amounts], keys: list[Key]) -> tuple[dict[int, float], dict[int, float]]:
    """What a block does not have was watched and did not happen there: it is 0."""
    before, after = (
        {block: math.fsum(amounts.get(key, 0.0) for key in keys) for block, amounts in side.items()} for side in sides
    )
    return before, after


def sure_difference(
    first: Mapping[int, float], second: Mapping[int, float], is_paired: bool, units: tuple[Units, Units] | None
) -> MeanDifference | None:
    """Second less first, of values by block; of sums of samples no surer than their count."""
    difference = difference_of(first, second, is_paired)
    if difference is None or units is None:
        return difference
    return replace(difference, error=max(difference.error, _counting_error((first, second), units)))


def _counting_error(both_sides: tuple[Mapping[int, float], Mapping[int, float]], units: tuple[Units, Units]) -> float:
    """The standard error of the difference if only chance decided where the samples hit."""
    variances = (
        sum(value * unit[block] for block, value in side.items()) / len(side) ** 2
        for side, unit in zip(both_sides, units, strict=True)
    )
    return math.sqrt(sum(variances))
