"""Means over the trials of a treatment, as all of this room has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record.verdict import Mean

# A percentile of fewer replies than this beyond it is that of one or two calls.
_BEYOND_MIN: Final = 10


def over(values: Iterable[float | None], *, log: bool = False, floor: float | None = 0.0) -> Mean | None:
    """Of one value a trial; None where there is none."""
    known = [float(value) for value in values if value is not None]
    return as_mean(over_blocks(known, log=log, floor=floor))


def percentile(times: np.ndarray, percent: float) -> float | None:
    """None where too few lie beyond it."""
    beyond = len(times) * (1 - percent / 100)
    return float(np.percentile(times, percent)) if beyond >= _BEYOND_MIN else None


def percentile_over(trials: Iterable[np.ndarray], percent: float) -> Mean | None:
    """Of each trial's times."""
    return over((percentile(times, percent) for times in trials), log=True)
