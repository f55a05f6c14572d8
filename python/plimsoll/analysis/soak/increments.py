"""A leak below the steps of others: memory of a whole machine, in which programs come, hold some, and give it back.

The fact that constrains it: what others hold is larger than what leaks, so that floors go up and down with them. But
they take and give in few moments, and a leak takes in every one: of the increments between neighbouring moments most
are above zero, however large the few others are. So two things have to hold.

1. More increments rise than fall: the sign test (Dixon and Mood, JASA 41, 1946), in which a step counts no more than
   what leaks in a moment. Of increments with independent signs the count of rises is binomial with one half, which
   holds for a walk at random with symmetric steps of any size. Of a series of which each sample keeps the share s of
   the last one, with fresh noise (AR), increments that are k apart are correlated by -s^(k-1) (1 - s) / 2: never above
   zero, so that rises and falls agree better than by chance, and the test errs less. Where signs go on from one to the
   next (a series that is smooth) their mean is judged with noise of which each keeps an unknown share of the last
   one's (autoregressive.py); the larger of both p-values counts.
2. What rose was kept, and it is that which rose: what fills by and by and is given back at once has more rises, too,
   above floors that wander. The least that there is at any later moment is what has not been given back until then. At
   each sixth of the time it lies near the line of the median increment, on either side. A series whose signs always
   rise, with a wander (AR 0.9 and 0.98 from part to part) from twice of what its median adds up to down to a fifth of
   it, passed this alone in at most 1.3 % of 300 cases; with a bound from below alone in up to 32 %.

The rate is that median; its interval is the one of the sign test: between those increments of which so many are below
as may be by chance. A visit that fills at a steady rate and lasts for most of the series is a leak to it: nothing in
the series tells them apart before it ends. Nor is a leak found below others that fill by and by in most moments.

Acceptance: benches/verdicts.py --only growth --only "growth among visits", and tests/unit/analysis/test_soak_growth.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from plimsoll.analysis.soak.autoregressive import Coefficient, fit
from plimsoll.analysis.soak.document import Slope
from plimsoll.analysis.statistics.distributions import binomial_beyond
from plimsoll.analysis.statistics.intervals import CONFIDENCE

PARTS: Final = 240  # of the time: of fewer a step of others lies in too many, of more a leak by the minute in too few
PARTS_MIN: Final = 60  # of fewer, all rising, chance is not what explains it, but neither is a leak
SIXTHS: Final = 6
APART_MAX: Final = 0.2  # of what the median adds up to over all the time: what is kept lies so near to its line
GOES_ON: Final = 0.5  # of the whole median: that of the second half has to be that much
_HOUR_S: Final = 3600.0


def leak(times_s: np.ndarray, values: np.ndarray, chance: float, least: float) -> Slope | None:
    """By the hour, of samples in their order; None where there is none that chance makes seldom enough, or of at most
    `least` in all the time."""
    times, parts = _parts(times_s, values)
    if len(parts) < PARTS_MIN:
        return None
    added = np.diff(parts)
    median = float(np.median(added))
    if median <= 0 or median * len(added) <= least or not rises(added, chance) or not _is_kept(parts, median):
        return None
    second = added[len(added) // 2 :]
    if np.median(second) < GOES_ON * median or not rises(second, 1 - CONFIDENCE):
        return None
    low, high = _interval(added, median)
    an_hour = len(added) * _HOUR_S / float(times[-1] - times[0])
    return {"value": median * an_hour, "low": low * an_hour, "high": high * an_hour}


def _parts(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sample in the middle of each of equal parts of the time; all samples, where they are no more.

    Not a part's median: of a part with a step down in it a leak makes that an earlier sample before the step or a later
    one after it, so that the increment beside it is too small (4 % of the rate among the visits of the acceptance).
    """
    if len(times) <= PARTS:
        return times, values
    edges = np.linspace(times[0], times[-1], PARTS + 1)
    within = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, PARTS - 1)
    places = [np.flatnonzero(within == part) for part in range(PARTS)]
    middles = [int(place[len(place) // 2]) for place in places if len(place)]
    return times[middles], values[middles]


def rises(added: np.ndarray, chance: float) -> bool:
    """Whether more increments are above zero than below, by more than has that chance, either way."""
    more, fewer = int((added > 0).sum()), int((added < 0).sum())
    return more > fewer and max(2 * binomial_beyond(more, more + fewer, 0.5), _sign(added).chance()) <= chance


def _sign(added: np.ndarray) -> Coefficient:
    fitted = fit(np.sign(added))
    assert fitted is not None  # of so many parts
    return fitted.coefficients[0]


def _is_kept(values: np.ndarray, median: float) -> bool:
    lowest = np.minimum.accumulate(values[::-1])[::-1]  # from here on
    sixths = np.arange(SIXTHS) * len(values) / SIXTHS
    never_given_back = lowest[sixths.astype(int)] - lowest[0]
    return bool(np.all(np.abs(never_given_back - median * sixths) <= APART_MAX * median * len(values)))


def _interval(added: np.ndarray, median: float) -> tuple[float, float]:
    """Of the median: between which increments it lies, by how far the mean sign of what is left may be from zero."""
    low, high = _sign(added - median).interval(CONFIDENCE)
    off = (high - low) / 4  # half of it, and a sign is two wide where a share is one
    return float(np.quantile(added, max(0.0, 0.5 - off))), float(np.quantile(added, min(1.0, 0.5 + off)))
