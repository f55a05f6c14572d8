"""Rows of transactions.npy, where a load that is not the agent's writes them; schema/record.md says what they hold.

The fact that constrains it: the agent's rows (crates/record/src/transaction.rs) have the same columns in the same
order, or a table would mean something else by who wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from plimsoll.record.table import Table

NAME: Final = "transactions.npy"
COLUMNS: Final = (
    ("index", "<u8"),
    ("planned_ns", "<i8"),
    ("start_ns", "<i8"),
    ("end_ns", "<i8"),
    ("bytes", "<u8"),
    ("connection", "<u4"),
    ("backend_pid", "<u4"),
    ("statements", "<u4"),
    ("requests", "<u4"),
    ("retries", "<u4"),
    ("error", "<u2"),
    ("kind", "u1"),
    ("outcome", "u1"),
)
# By their numbers in a row.
OUTCOMES: Final = ("done", "failed", "skipped", "lost")


def write(folder: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """The whole table, its rows in the order of COLUMNS."""
    table = Table(folder / NAME, COLUMNS)
    try:
        table.add(rows)
    finally:
        table.close()
