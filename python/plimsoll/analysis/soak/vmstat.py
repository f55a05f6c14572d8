"""The columns of vmstat over the rounds of a soak, at five minutes as study S3 shows them, rounds over one another.

The fact that constrains it: a page has to open in seconds whatever the soak's length. So at most a dozen rounds are
drawn, the first and the last among them, and each at most so many times.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plimsoll.analysis.trial import vmstat
from plimsoll.record import Trial

Json = dict[str, Any]
ROUNDS_DRAWN: Final = 12
COLUMNS: Final = ("free", "buff", "cache", "bi", "bo", "us", "sy", "id", "wa")
EVERY_S: Final = 300.0
POINTS_MIN: Final = 12  # of shorter rounds: as many as this, at shorter times
POINTS_MAX: Final = 150


def drawn(count: int) -> list[int]:
    """Places of the rounds that are drawn: all, or evenly spread ones from the first to the last."""
    if count <= ROUNDS_DRAWN:
        return list(range(count))
    return [int(place) for place in np.unique(np.linspace(0, count - 1, ROUNDS_DRAWN).round())]


def curves(trial: Trial) -> list[Json]:
    """{round, minutes (since its begin), column, value}; the unit of each column is vmstat.COLUMNS'."""
    rounds = trial.rounds
    rows: list[Json] = []
    for place in drawn(len(rounds)):
        one = rounds[place]
        found = [row for row in vmstat.curve(one.measure) if row["column"] in COLUMNS]
        for name in COLUMNS:
            points = [(row["seconds"], row["value"]) for row in found if row["column"] == name]
            rows += [
                {"round": one.place, "minutes": round(at / 60, 3), "column": name, "value": value}
                for at, value in means(points)
            ]
    return rows


def means(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of every five minutes, or of less where that would leave few."""
    if not points:
        return []
    times, values = np.array([at for at, _ in points]), np.array([value for _, value in points])
    length = float(times[-1]) or 1.0
    each = max(min(EVERY_S, length / POINTS_MIN), length / POINTS_MAX)
    slots = np.minimum((times / each).astype(int), int(np.ceil(length / each)) - 1)
    return [(float((slot + 0.5) * each), float(values[slots == slot].mean())) for slot in np.unique(slots)]
