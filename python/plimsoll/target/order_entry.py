"""The order-entry tables: how large they get.

The agent's own arithmetic over pages (`estimated_bytes` of its `describe`) as a line, so that a plan can be made
without asking it: it differs by less than a thousandth, which tests/flow/test_order_entry.py holds it to.
"""

from __future__ import annotations

WAREHOUSE_BYTES = 103_730_000
ITEMS_BYTES = 13_750_000  # the items, of which there are as many whatever the warehouses


def estimated_bytes(warehouses: int) -> int:
    """All nine tables with their indexes, as loaded."""
    return ITEMS_BYTES + warehouses * WAREHOUSE_BYTES
