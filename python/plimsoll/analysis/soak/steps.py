"""Where rounds change for good: E-divisive, with a test that knows that rounds agree with their neighbours.

Places come from the energy statistic of Matteson and James ("A nonparametric approach for multiple change point
analysis of multivariate data", JASA 109, 2014), as Apache Otava, formerly Hunter, takes them (Fleming et al.,
"Hunter: using change point detection to hunt for performance regressions", ICPE 2023): of all parts of the series
the one whose two halves differ most, then the same in what lies left and right of it. The fact that constrains it:
their tests (permutations; Student's t) take rounds as independent, and of rounds that are not, nine series in ten
raise an alarm. Here a step counts when a model with the step and with noise that goes on from round to round
(autoregressive.py) leaves it no chance, at a level that pays for every place at which it could have stood. Why not
the library: docs/decisions/0036-soaks.md.

Acceptance: benches/verdicts.py --only soak.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.soak.autoregressive import Coefficient, fit

SIDE_MIN = 4  # rounds on each side of a step: two or three beside the rest are a bad patch, which the table shows
LEVEL = 0.0007  # of a false step, all places paid for; by simulation that is where false alarms stay within 1 %
POINTS_MAX = 400  # of longer series neighbours are averaged: the places are found to so many


@dataclass(frozen=True)
class Step:
    """A change for good before the value at `place`; `size` is on the values' own scale."""

    place: int
    size: float
    low: float
    high: float
    chance: float  # of so large a step at the best of all places where there is none


def steps(values: np.ndarray, confidence: float, level: float = LEVEL) -> list[Step]:
    """The changes of a series, in their order; `level` of a false one, all places paid for."""
    each = max(1, -(-len(values) // POINTS_MAX))
    short = values[: len(values) // each * each].reshape(-1, each).mean(1)
    places = _found(short, level)
    told = _tested(short, places)
    return [
        Step(place * each, one.value, *one.interval(confidence), _chance(one, short))
        for place, one in zip(places, told, strict=True)
    ]


def sizes(values: np.ndarray, places: list[int], confidence: float) -> list[tuple[float, float, float]]:
    """Value, low and high of the changes before these places, of values whose places were found in others."""
    return [(one.value, *one.interval(confidence)) for one in _tested(values, places)]


def _found(values: np.ndarray, level: float) -> list[int]:
    """Places of steps, found one after the other: in each part that is left the one that divides it best."""
    places: list[int] = []
    parts = [(0, len(values))]
    while parts:
        begin, end = parts.pop(0)
        if end - begin < 2 * SIDE_MIN:
            continue
        place, until = (begin + one for one in _most_different(values[begin:end]))
        beside = [] if until == end else [until]  # the part beyond may have a level of its own
        told = _tested(values, [place, *beside, *places])
        if told and _chance(told[0], values) <= level:
            places.append(place)
            parts += [(begin, place), (place, end)]
    return sorted(places)


def _chance(step: Coefficient, values: np.ndarray) -> float:
    """Of so large a step at the best of all places where none is: paid for by their number (Bonferroni)."""
    return min(1.0, step.chance() * (len(values) - 2 * SIDE_MIN + 1))


def _tested(values: np.ndarray, places: list[int]) -> tuple[Coefficient, ...]:
    """The sizes of steps at these places, the noise judged from the whole series; () of too few values."""
    numbers = np.arange(len(values))
    fitted = fit(values, *((numbers >= place).astype(float) for place in places))
    return () if fitted is None else fitted.coefficients[1:]


def _most_different(values: np.ndarray) -> tuple[int, int]:
    """The place and the end of the part before which and after which values differ most, by the energy statistic."""
    count = len(values)
    apart = np.abs(values[:, None] - values[None, :])
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = apart.cumsum(0).cumsum(1)
    place, end = np.meshgrid(
        np.arange(SIDE_MIN, count - SIDE_MIN + 1), np.arange(2 * SIDE_MIN, count + 1), indexing="ij"
    )
    right = end - place
    inside_left = sums[place, place]
    between = sums[place, end] - inside_left
    inside_right = sums[end, end] - 2 * sums[place, end] + inside_left
    with np.errstate(invalid="ignore", divide="ignore"):
        energy = (
            2 * between / (place * right) - inside_left / (place * (place - 1)) - inside_right / (right * (right - 1))
        )
        statistic = np.where(right >= SIDE_MIN, place * right / end * energy, -np.inf)
    best = np.unravel_index(int(np.argmax(statistic)), statistic.shape)
    return int(place[best]), int(end[best])
