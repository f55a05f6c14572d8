"""A plugin of pytest: a line of JSON for each part of each test, written as soon as it has ended.

The constraint: a guest that hangs is killed, and what had ended until then has to be outside. `text` is what the test
printed and, if it failed, why.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Setup and teardown tell only of trouble; the call always."""
    if report.when != "call" and report.passed:
        return
    why = "" if report.passed else str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    told = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "seconds": round(report.duration, 2),
        "text": "\n".join(part for part in (report.capstdout.strip(), why) if part),
    }
    with Path(os.environ["PLIMSOLL_ROOM"], "results").open("a") as out:
        out.write(json.dumps(told) + "\n")
