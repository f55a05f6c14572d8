"""Study S2's scatter by density: calls by when they were sent and how long their first reply took, counted in cells.

A million calls fill no more cells than a few thousand do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np

READ, GETATTR, OTHERS = GROUPS = ("read", "getattr", "everything else")
STRETCHES, TIMES = 160, 60
_SHORTEST_MS = 0.001


class Cell(TypedDict):
    """So many calls were sent in this stretch and answered in this time."""

    group: str
    from_s: float
    to_s: float
    low_ms: float
    high_ms: float
    calls: int


def group_of(name: str) -> str:
    """The study's groups, by an operation's name."""
    return {"READ": READ, "READ_PLUS": READ, "GETATTR": GETATTR}.get(name, OTHERS)


def groups_of(names: Sequence[str], operation: np.ndarray) -> np.ndarray:
    """The group of each call; `operation`: places in `names`, those beyond are none that is known."""
    groups = np.array([*(group_of(name) for name in names), OTHERS])
    found: np.ndarray = groups[np.minimum(operation, len(names))]
    return found


def cells(
    sent_s: np.ndarray, took_ms: np.ndarray, groups: np.ndarray, stretches: int = STRETCHES, times: int = TIMES
) -> Iterator[Cell]:
    """The cells with calls in them, of calls that were answered."""
    if not len(sent_s):
        return
    took = np.maximum(took_ms, _SHORTEST_MS)
    longest_s = max(float(sent_s.max()), 1e-6)
    low, high = float(took.min()), float(took.max())
    x_edges = np.linspace(0, longest_s * (1 + 1e-9), stretches + 1)
    y_edges = np.geomspace(low * 0.999, max(high, low * 1.01) * 1.001, times + 1)
    for group in GROUPS:
        of_it = groups == group
        counts, _, _ = np.histogram2d(np.maximum(sent_s[of_it], 0), took[of_it], bins=(x_edges, y_edges))
        for x, y in np.argwhere(counts).tolist():
            yield {
                "group": group,
                "from_s": float(x_edges[x]),
                "to_s": float(x_edges[x + 1]),
                "low_ms": float(y_edges[y]),
                "high_ms": float(y_edges[y + 1]),
                "calls": int(counts[x, y]),
            }
