"""The load tests of a treatment, over blocks: by phase and by table. Phases overlap, and so do the works on tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from plimsoll.analysis.decision_support.document import Load, LoadTable, TrialReading
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record.trial import LoadWork
from plimsoll.record.verdict import Mean


def load_test(blocks: Mapping[int, TrialReading]) -> Load | None:
    """The load test by phase and by table, over blocks; None where there was none."""
    tests = [trial["load_test"] for trial in blocks.values() if trial["load_test"]]
    if not tests:
        return None
    phases: dict[str, list[float]] = {}
    tables: dict[str, list[LoadWork]] = {}
    for test in tests:
        for phase in test.get("phases") or []:
            phases.setdefault(str(phase["phase"]), []).append(float(phase["ended_s"]) - float(phase["began_s"]))
        for work in test.get("work") or []:
            if work.get("rows") is not None:
                tables.setdefault(str(work["table"]), []).append(work)
    return {
        "phases": [{"phase": name, "seconds": _over(values)} for name, values in phases.items()],
        "tables": [_table(name, rows) for name, rows in tables.items()],
    }


def _table(name: str, rows: list[LoadWork]) -> LoadTable:
    lasted = [float(row["ended_s"]) - float(row["began_s"]) for row in rows]

    def rate(key: Literal["rows", "bytes"]) -> Mean | None:
        each = [float(row[key]) / each_s for row, each_s in zip(rows, lasted, strict=True) if row.get(key) and each_s]
        return _over(each)

    return {
        "table": name,
        "rows": int(rows[0]["rows"]),
        "seconds": _over(lasted),
        "rows_per_second": rate("rows"),
        "bytes_per_second": rate("bytes"),
    }


def _over(values: list[float]) -> Mean | None:
    return as_mean(over_blocks(values, log=True))
