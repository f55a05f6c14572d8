"""The decision-support tables: how large they get.

The agent's own arithmetic over pages (`estimated_bytes` of its `describe`) as a line, so that a plan can be made
without asking it: from a scale factor of 1 on it differs by less than a thousandth, at the smallest by a twentieth.
"""

from __future__ import annotations

BYTES = 2_234_420_000  # at scale factor 1
EMBEDDED_BYTES = 400 * 2**20  # a guess: compressed columns, no keys and no indexes


def estimated_bytes(scale_factor: float, *, embedded: bool = False) -> int:
    """All tables with their keys and indexes, as loaded; `embedded`: as DuckDB keeps them."""
    return round((EMBEDDED_BYTES if embedded else BYTES) * scale_factor)
