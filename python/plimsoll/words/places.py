"""What one program was promised by a storage and what the database got of it, in sentences."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.places.document import Promise, PromiseRow
from plimsoll.record.verdict import Mean
from plimsoll.words.part import Sentences

Json = dict[str, Any]
SECTION: Final = "promise"
SAID: Final = {
    "arrived": "it arrived at the database",
    "less than promised": "less of it arrived at the database",
    "did not arrive": "it did not arrive at the database",
    "cannot tell": "whether it arrived cannot be told",
    "nothing promised": "that is no difference that could arrive",
    "too few blocks": "whether it arrived takes three blocks of each run",
}


def promise_lines(verdict: Json) -> list[str]:
    """A line a storage, the first being what the others are set against."""
    found: Promise | None = verdict.get("promise")
    if not found:
        return []
    first = found["rows"][0]["storage"]
    return [_line(row, first, found["judged"]) for row in found["rows"][1:]]


def _line(row: PromiseRow, first: str, judged: str) -> str:
    given = row["phases"].get(judged)
    times = _times(given["ratio"]) if given and given["ratio"] else "not known"
    got = _times(row["ratio"]) if row["ratio"] else "not known"
    said = SAID[row["verdict"] or "too few blocks"]
    return f"{row['storage']}, against {first}: Bonnie's {judged} {times}, the database's transactions {got}: {said}"


def _times(mean: Mean) -> str:
    value = f"{mean['value']:.2f} x"
    return value if mean["low"] is None else f"{value} [{mean['low']:.2f}, {mean['high']:.2f}]"


def _warns(verdict: Json) -> list[str]:
    found: Promise | None = verdict.get("promise")
    if not found or not found["differences"]:
        return []
    shown = ", ".join(found["differences"][:3])
    return [f"what Bonnie promised was measured on another machine, or on this one in another state ({shown})"]


PROMISE = Sentences("promise", explains=promise_lines, warns=_warns, section=SECTION)
