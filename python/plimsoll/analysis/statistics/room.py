"""How much a server's cache has been given to hold: a bound that no noise hides.

The fact that constrains it: every block that a cache holds was read into it since the server's start. Before as many
were read as it has room for, or as there are, it cannot be full, however level its miss ratio looks: an approach much
slower than what was watched looks level. A cache that replaces what was used least recently is at its level from the
moment at which it is full (Fricker, Robert and Roberts 2012); PostgreSQL's clock comes near it later, as
benches/verdicts.py shows by simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TURNED = 1.5  # turns after which PostgreSQL's clock is near its level (simulated in benches/simulate/clock.py)


@dataclass(frozen=True)
class Room:
    """`blocks`: the smaller of cache and data, in blocks; `before`: the server's count of blocks read at its start."""

    blocks: float
    before: float

    def turns(self, read: float) -> float:
        """Blocks read since the start over the room, from the server's count now: below 1 it cannot be full."""
        return (read - self.before) / self.blocks if self.blocks > 0 else float("inf")


def room_of(cache: Mapping[str, Any] | None) -> Room | None:
    """Of `cache` in trial.json; None where the server did not tell, or is older than this trial."""
    if not cache:
        return None
    try:
        return Room(float(min(cache["cache_blocks"], cache["data_blocks"])), float(cache["read_before"]))
    except (KeyError, TypeError):
        return None
