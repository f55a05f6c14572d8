"""When enough pairs have been measured, and what they show. Pure.

The constraint: looking again and again until the result is liked makes an interval lie. The looks are fixed before the
first pair, and each has an equal share of the error that all of them may make together (Bonferroni).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from plimsoll.analysis.statistics.intervals import Estimate, over_blocks

ALPHA = 0.05
LOOKS = (100, 200, 400, 800)
HALF_WIDTH_PERCENT = 0.5
Verdict = Literal["holds", "broken", "cannot tell"]


@dataclass(frozen=True)
class Rule:
    """At `looks` pairs the interval is computed and compared with `bound_percent`; nothing is judged in between."""

    bound_percent: float
    looks: tuple[int, ...]

    @property
    def confidence(self) -> float:
        """Of the interval at each look, so that all looks together err with at most ALPHA."""
        return 1 - ALPHA / len(self.looks)

    def interval(self, ratios: list[float]) -> Estimate | None:
        """Mean of the log ratios with Student's interval, at the confidence of one look, as ratios."""
        return over_blocks(ratios, log=True, confidence=self.confidence)

    def judge(self, ratios: list[float]) -> tuple[Verdict | None, str]:
        """The verdict at this look and why; None when more pairs are needed."""
        estimate = self.interval(ratios)
        if estimate is None or estimate.low is None or estimate.high is None:
            return None, "too few pairs"
        low, high = percent(estimate.low), percent(estimate.high)
        if high <= self.bound_percent:
            return "holds", f"the upper end {high:+.2f} % is not above {self.bound_percent:g} %"
        if low > self.bound_percent:
            return "broken", f"the lower end {low:+.2f} % is above {self.bound_percent:g} %"
        if (high - low) / 2 < HALF_WIDTH_PERCENT:
            return "cannot tell", f"the bound lies in an interval of less than ±{HALF_WIDTH_PERCENT:g} %"
        return None, f"{low:+.2f} to {high:+.2f} %: more pairs are needed"


def looks_up_to(pairs_max: int) -> tuple[int, ...]:
    """The looks of a plan: the usual ones below the maximum, and the maximum."""
    return (*(look for look in LOOKS if look < pairs_max), pairs_max)


def percent(ratio: float) -> float:
    """What a ratio of with to without adds, in percent."""
    return 100 * (ratio - 1)


def orders(seed: int, pairs: int) -> list[bool]:
    """For each pair whether our arm, or that with the probe, is first: each two pairs have both orders, at random."""
    draw = random.Random(seed)
    found: list[bool] = []
    while len(found) < pairs:
        two = [True, False]
        draw.shuffle(two)
        found += two
    return found[:pairs]
