"""Report: verdicts drawn and written.

Computes nothing: every number on the page stands in verdict.json or comes from a function of the analysis, and is only
given a unit and a place here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.report.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    if name == "write_report":
        value = import_module(f"{__name__}.page").write_report
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
