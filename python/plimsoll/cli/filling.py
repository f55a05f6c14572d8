"""How a loading goes on, in words: rows and bytes a second while rows come in, afterwards the phase.

The constraint: a connection tells of its rows tens of thousands at a time, so a rate is taken over some seconds.
"""

from __future__ import annotations

from collections import deque
from typing import Any

RATE_OVER_SECONDS = 5.0
_PHASES = {
    "tables": "creating the tables",
    "rows": "waiting for the first rows",
    "vacuum": "vacuuming and analysing",
    "indexes": "creating the indexes",
    "foreign_keys": "checking foreign keys",
}


class Filling:
    """Takes the lines that the agent's `populate` says."""

    def __init__(self) -> None:
        self._lines: deque[tuple[float, int, int]] = deque()

    def hear(self, line: dict[str, Any]) -> str:
        """What to say after this line; empty where there is nothing to say of it."""
        if phase := line.get("phase"):
            self._lines = deque([(line["seconds"], 0, 0)]) if phase == "rows" else deque()
            return _PHASES.get(phase, phase)
        if "done" not in line:
            return ""
        done, total, table = line["done"], line.get("total") or 1, line.get("table") or ""
        said = f"{done / total:.0%} of {total:,} rows, {table}" if table else f"{done / total:.0%} of {total:,} rows"
        return said + self._rate(line["seconds"], done, line.get("bytes", 0)) if "seconds" in line else said

    def _rate(self, seconds: float, rows: int, size: int) -> str:
        """Over the last seconds; the row on which they began stays until the next one is older."""
        self._lines.append((seconds, rows, size))
        while len(self._lines) > 1 and self._lines[1][0] <= seconds - RATE_OVER_SECONDS:
            self._lines.popleft()
        since, rows_before, size_before = self._lines[0]
        lasted = seconds - since
        if lasted <= 0:
            return ""
        return f", {(rows - rows_before) / lasted:,.0f} rows/s, {(size - size_before) / lasted / 1e6:,.1f} MB/s"
