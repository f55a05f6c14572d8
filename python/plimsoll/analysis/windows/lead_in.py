"""Whether the lead-in is long enough: the first third of what counts of each window against the rest of it.

Both are of the same window, so whatever goes on from window to window strikes both. Where the first third is slower (or
faster) by more than its noise allows, windows have not settled when they begin to count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from plimsoll.analysis.statistics.distributions import normal_quantile
from plimsoll.analysis.trial.windows import Windows, done_between
from plimsoll.analysis.windows.document import LeadIn
from plimsoll.record import Trial

CONFIDENCE = 0.99
NEGLIGIBLE = 0.01  # of the rate of the first third: of a whole window it is a third of that
WINDOWS_MIN = 30


def thirds(trial: Trial, found: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the first third and of the rest of what counts of each window."""
    begin = found.opened_ns + found.lead_in_ns
    middle = begin + (found.closed_ns - begin) // 3
    first = done_between(trial.measure, begin, middle) / ((middle - begin) / 1e9)
    rest = done_between(trial.measure, middle, found.closed_ns) / ((found.closed_ns - middle) / 1e9)
    return first, rest


def test(sides: Sequence[tuple[np.ndarray, np.ndarray]]) -> LeadIn | None:
    """First third over the rest, of the rates of each trial's windows.

    The verdict is "too short", "long enough" (the interval lies within NEGLIGIBLE), or "cannot tell". None of fewer
    than WINDOWS_MIN windows. Each trial is taken by its own rate, so that fast ones count no more than slow ones.
    """
    usable = [(first, rest) for first, rest in sides if len(first) > 1 and rest.sum() > 0]
    windows = sum(len(first) for first, _ in usable)
    if windows < WINDOWS_MIN:
        return None
    relative = np.concatenate([(first - rest) / rest.mean() for first, rest in usable])
    centre = float(relative.mean())
    variances = [len(first) * float(np.var((first - rest) / rest.mean(), ddof=1)) for first, rest in usable]
    half = float(normal_quantile(0.5 + CONFIDENCE / 2)) * math.sqrt(sum(variances)) / windows
    low, high = centre - half, centre + half
    said = "cannot tell"
    if (low > 0 or high < 0) and abs(centre) > NEGLIGIBLE:
        said = "too short"
    elif max(abs(low), abs(high)) <= NEGLIGIBLE:
        said = "long enough"
    return {"ratio": 1 + centre, "low": 1 + low, "high": 1 + high, "windows": windows, "verdict": said}


def of_trials(trials: Mapping[int, Trial], known: Mapping[int, Windows]) -> LeadIn | None:
    """The test over all windows of these trials."""
    return test([thirds(trials[number], found) for number, found in known.items() if number in trials])
