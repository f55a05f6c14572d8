"""Record: everything one run left behind, read and written.

The only thing that passes from measuring to judging; schema/record.md is the contract. This package knows files and
no statistics, and its import is quick: each name loads its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.record.format import FORMAT, HISTORY, MISSING, FormatTooNew, RecordError
    from plimsoll.record.npy import read_table
    from plimsoll.record.parquet import compact
    from plimsoll.record.redaction import redact
    from plimsoll.record.run import Run, Segment, Trial, open_run

_WHERE = {
    "FORMAT": "format",
    "HISTORY": "format",
    "MISSING": "format",
    "RecordError": "format",
    "FormatTooNew": "format",
    "read_table": "npy",
    "redact": "redaction",
    "Run": "run",
    "Trial": "run",
    "Segment": "run",
    "open_run": "run",
    "compact": "parquet",
}
_MODULES = ("format", "npy", "redaction", "run", "parquet", "transactions", "writer")

__all__ = [
    "FORMAT",
    "HISTORY",
    "MISSING",
    "FormatTooNew",
    "RecordError",
    "Run",
    "Segment",
    "Trial",
    "compact",
    "open_run",
    "read_table",
    "redact",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
