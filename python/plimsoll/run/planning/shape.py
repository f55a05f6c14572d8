"""How the trials of a design lie in time: which servers are up at once, and how long each is measured. Pure.

What is no line here has its trials one after the other, each measured as [measure] says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from plimsoll.experiment import Experiment, PlannedTrial
from plimsoll.experiment.design import blocks_of

WINDOW_BESIDE_S = 0.1  # to thaw, drain and freeze


@dataclass(frozen=True)
class Shape:
    """`at_once`: lists of trials whose servers are up together; `measured_seconds`: of one trial, None as [measure];
    `seconds_max`: that all trials may take, None where they take what they take."""

    at_once: Callable[[Iterable[PlannedTrial]], list[list[PlannedTrial]]]
    measured_seconds: Callable[[Experiment], float | None] = lambda _settings: None
    seconds_max: Callable[[Experiment], float | None] = lambda _settings: None


def _of_windows(settings: Experiment) -> float:
    return settings.design.rounds * (settings.design.window_seconds + WINDOW_BESIDE_S)


def _budget(settings: Experiment) -> float | None:
    return None if settings.design.minutes is None else settings.design.minutes * 60


ONE_BY_ONE = Shape(lambda trials: [[trial] for trial in trials])
SHAPES = {"windows": Shape(blocks_of, _of_windows, _budget)}


def shape_of(kind: str) -> Shape:
    """Of a design's kind."""
    return SHAPES.get(kind, ONE_BY_ONE)
