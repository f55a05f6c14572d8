"""The numbers of one trial, from every room that measures. Missing stays missing: null, never 0."""

from plimsoll.analysis import metrics
from plimsoll.record import Trial


def estimates(trial: Trial) -> dict[str, float | None]:
    """Every metric that one trial has, by its key."""
    return {key: value for room in metrics.MEASURES for key, value in room.values(trial).items()}
