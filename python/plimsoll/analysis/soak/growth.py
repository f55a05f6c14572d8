"""What grows and never falls: memory, slab caches, file handles, dead rows over the hours of a soak.

The fact that constrains it: nearly everything on a machine grows at times. Caches fill and stop, dead rows wait for
a VACUUM, page tables follow the number of clients. So it is not the series that is looked at but its floor: the
value that a tenth of the samples of each twenty-fourth of the time stay below, which neither spikes nor the teeth
of a saw lift. A leak is a floor that rises, goes on rising in the second half, and never gives back what it took.
Its slope has the interval of a line with noise that goes on from floor to floor (autoregressive.py), and one series
pays for all that are looked at (Bonferroni), for there are hundreds of slab caches.

Where other programs come and go the floors go up and down with what these hold. A leak among them is looked for in the
increments, of which most rise (increments.py), at a tenth of the chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from plimsoll.analysis.soak import increments
from plimsoll.analysis.soak.autoregressive import Coefficient, fit
from plimsoll.analysis.soak.document import Floor, Growth, Slope
from plimsoll.analysis.statistics.intervals import CONFIDENCE

FLOORS: Final = 24
FLOORS_MIN: Final = 8  # of fewer, a half has too few for a line
SAMPLES_MIN: Final = 4  # of a floor
LOW_SHARE: Final = 0.1
CHANCE: Final = 0.01  # of any false alarm by the floors, among all series that are looked at together
AMONG_STEPS: Final = 0.1  # of that chance, and beside it: of a false alarm by the increments
GIVEN_BACK_MAX: Final = 0.2  # of what it took: more, and it is no leak
GOES_ON: Final = 0.5  # of the whole slope: in the second half it has to be that much, else it settles
GROWS, SETTLES, STAYS, CANNOT_TELL = "grows", "grew, and settles", "does not grow", "cannot tell"
RULE: Final = (
    "the floor of each twenty-fourth of the time (a tenth of its samples are below) on a straight line, with noise of "
    "which each floor keeps an unknown share of the last one's; it grows where chance has at most 1 % of so large a "
    "slope, for all series together, where the second half alone rises at least half as fast, and where no floor lies "
    "below an earlier one by more than a fifth of the rise; or where, of up to 240 moments, so many more lie above the "
    "last one than below as chance has in at most 0.1 %, for all series together (in the second half alone 5 %, for "
    "each), where the median increment of the second half is at least half of the whole one, and where what is never "
    "given back lies near the line of the median increment, by a fifth of its whole rise at most"
)
_HOUR_S: Final = 3600.0


@dataclass(frozen=True)
class Watched:
    """A series that may grow: times in seconds, in any order, and values; `least`: a rise that nobody would look at."""

    times_s: Sequence[float]
    values: Sequence[float]
    unit: str
    least: float = 0.0


def judge_growth(series: Mapping[str, Watched]) -> list[Growth]:
    """Each series by its name, those that grow first, the fastest (in its own unit) of them first."""
    judged = [_judge(name, one, CHANCE / max(1, len(series))) for name, one in series.items()]
    order = (GROWS, SETTLES, CANNOT_TELL, STAYS)
    return sorted(judged, key=lambda one: (order.index(one["verdict"]), -(one["an_hour"] or _NOTHING)["value"]))


_NOTHING: Slope = {"value": 0.0, "low": 0.0, "high": 0.0}


def _judge(name: str, watched: Watched, chance: float) -> Growth:
    samples = _in_order(np.asarray(watched.times_s, float), np.asarray(watched.values, float))
    times, floors = _floors(*samples)
    line = _slope(times, floors) if len(floors) >= FLOORS_MIN else None
    found: Growth = {
        "name": name,
        "unit": watched.unit,
        "hours": float(times[-1] - times[0]) / _HOUR_S if len(times) else 0.0,
        "an_hour": None,
        "first": float(floors[0]) if len(floors) else None,
        "last": float(floors[-1]) if len(floors) else None,
        "floors": [_floor(at, value) for at, value in zip(times, floors, strict=True)],
        "verdict": CANNOT_TELL,
        "rule": RULE,
    }
    if line is None:
        return found
    low, high = line.interval(CONFIDENCE)
    found["an_hour"] = {"value": line.value, "low": low, "high": high}
    found["verdict"] = _verdict(times, floors, line, chance, watched.least)
    if found["verdict"] != GROWS:
        leak = increments.leak(*samples, AMONG_STEPS * chance, watched.least)
        if leak is not None:
            found["verdict"], found["an_hour"] = GROWS, leak
            # What others hold at the beginning or at the end is no part of it.
            found["first"], found["last"] = (
                float(floors.min()),
                float(floors[-max(1, len(floors) // increments.SIXTHS) :].min()),
            )
    return found


def _verdict(times: np.ndarray, floors: np.ndarray, line: Coefficient, chance: float, least: float) -> str:
    rise = line.value * float(times[-1] - times[0]) / _HOUR_S
    if rise <= least or line.value <= 0 or line.chance() > chance:
        return STAYS
    half = len(floors) // 2
    second = _slope(times[half:], floors[half:])
    given_back = float((np.maximum.accumulate(floors) - floors).max())
    goes_on = second is not None and second.value >= GOES_ON * line.value and second.interval(CONFIDENCE)[0] > 0
    return GROWS if goes_on and given_back <= GIVEN_BACK_MAX * rise else SETTLES


def _in_order(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples that are known, by their time: of servers that are up at once they come one after the other."""
    known = np.isfinite(times) & np.isfinite(values)
    order = np.argsort(times[known], kind="stable")
    return times[known][order], values[known][order]


def _floors(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle of each part of the time that has samples, and what a tenth of its samples stay below."""
    parts = min(FLOORS, len(times) // SAMPLES_MIN)
    if not parts:
        return np.empty(0), np.empty(0)
    edges = np.linspace(times[0], times[-1], parts + 1)
    within = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, parts - 1)
    kept = [part for part in range(parts) if np.any(within == part)]
    middles = (edges[:-1] + edges[1:]) / 2
    return middles[kept], np.array([np.quantile(values[within == part], LOW_SHARE) for part in kept])


def _slope(times: np.ndarray, floors: np.ndarray) -> Coefficient | None:
    """By the hour."""
    fitted = fit(floors, times / _HOUR_S)
    return None if fitted is None else fitted.coefficients[1]


def _floor(at: float, value: float) -> Floor:
    return {"t_s": float(at), "value": float(value)}
