"""What each look at a run of windows may spend of the errors of its verdict.

To look after each block and to stop at the first difference would accuse equals several times as often as one look.
So three quarters of each error (of a false alarm, and of an interval that misses) are kept for the last look, and the
looks before it have equal shares of the rest (Bonferroni's inequality, which assumes nothing of how looks depend on one
another). The last look has what those before it have not spent, however many they were: a budget of time knows no rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.analysis.comparing.compare import ALPHA_OF_TEST
from plimsoll.analysis.statistics.intervals import CONFIDENCE

FIRST = 2  # the first block after which starts are known to differ by this or that
_KEPT = 0.75


@dataclass(frozen=True)
class Share:
    """What one look may spend: the error of calling any of equal levels worse, and the confidence of its intervals."""

    alpha: float
    confidence: float


FULL: Final = Share(ALPHA_OF_TEST, CONFIDENCE)


def _of(part: float) -> Share:
    return Share(part * ALPHA_OF_TEST, 1 - part * (1 - CONFIDENCE))


def at_look(block: int, planned: int) -> Share:
    """Of the look after a block that is not the last of those planned."""
    looks_before_last = planned - FIRST
    return at_end(block, planned) if block >= planned else _of((1 - _KEPT) / looks_before_last)


def at_end(block: int, planned: int) -> Share:
    """Of the last look, after the block with which the run ends: what the looks before it have left."""
    looks_before_last = planned - FIRST
    if looks_before_last < 1:
        return FULL
    done = min(max(block - FIRST, 0), looks_before_last)
    return _of(1 - (1 - _KEPT) * done / looks_before_last)
