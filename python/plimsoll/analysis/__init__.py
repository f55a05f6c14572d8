"""Analysis: pure functions from record to verdict.

Nothing here touches a machine, a clock or a random number: the same record gives the same verdict, byte for byte.
Imports neither environment nor run nor report; schema/verdict.md is the contract of what comes out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.analysis.runs.runs import NotComparable, Unknown, compare_runs, compare_treatments
    from plimsoll.analysis.verdict import analyse

_WHERE = {
    "analyse": "verdict",
    "compare_runs": "runs.runs",
    "compare_treatments": "runs.runs",
    "NotComparable": "runs.runs",
    "Unknown": "runs.runs",
}

__all__ = ["NotComparable", "Unknown", "analyse", "compare_runs", "compare_treatments"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
