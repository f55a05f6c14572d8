"""Did what one program was given by a storage reach the database? Two runs over the same storages, set side by side.

The constraint: a verdict is a function of its own record. So what the other run found is written into this one's
(`promised.json`, by `report --promised`), and ratios are taken within the blocks of each run, never between them.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.places.document import Cells, Promise, Promised, PromiseRow
from plimsoll.analysis.places.layout import factors_of_places, storage_of
from plimsoll.record.verdict import Mean

Json = dict[str, Any]
#: In the order in which Bonnie prints them; the first is the one that a promise is judged by.
PHASES: Final = ("write", "rewrite", "read", "seeks")
JUDGED: Final = PHASES[0]


def storages_of(plan: Json) -> dict[str, str]:
    """The storage of each treatment, by the levels of what decides where files lie; empty where they do not vary."""
    names = (plan.get("treatments") or {}) if factors_of_places(plan) else {}
    return {name: storage_of(plan, name) for name in names}


def promise(found: Promised, cells: Cells) -> Promise | None:
    """Both runs' figures of the storages that they share; None where these are fewer than two."""
    scales = sorted({cell["scale"] for cell in cells["cells"]})
    database = {cell["cell"]: cell for cell in cells["cells"] if cell["scale"] == scales[0]}
    rows: list[PromiseRow] = []
    for one in found["storages"]:
        cell = database.get(one["storage"])
        if cell is not None:
            given = one["phases"].get(JUDGED)
            rows.append(
                {
                    "storage": one["storage"],
                    "phases": one["phases"],
                    "rate": cell["rate"],
                    "ratio": cell["ratio"],
                    "verdict": None if cell["ratio"] is None else _judged(given and given["ratio"], cell["ratio"]),
                }
            )
    if len(rows) < 2:
        return None
    missing = [one["storage"] for one in found["storages"] if one["storage"] not in database]
    return {
        "run": found["run"],
        "at": found["at"],
        "judged": JUDGED,
        "phases": [phase for phase in PHASES if any(phase in row["phases"] for row in rows)],
        "rows": rows,
        "missing": missing,
        "differences": found["differences"],
    }


def _judged(given: Mean | None, reached: Mean) -> str:
    """Whether the database gained as the program did, against the first storage."""
    if given is None or given["low"] is None or given["high"] is None:
        return "too few blocks"
    if reached["low"] is None or reached["high"] is None:
        return "too few blocks"
    if given["low"] <= 1 <= given["high"]:
        return "nothing promised"
    if given["low"] > 1:
        return _word(is_less=reached["high"] < given["low"], is_more=reached["low"] > 1)
    return _word(is_less=reached["low"] > given["high"], is_more=reached["high"] < 1)


def _word(*, is_less: bool, is_more: bool) -> str:
    if is_less:
        return "less than promised" if is_more else "did not arrive"
    return "arrived" if is_more else "cannot tell"


def _judge(context: Context) -> Promise | None:
    found, cells = context.run.promised, context.parts.get("storage")
    return promise(found, cells) if found and cells else None  # type: ignore[arg-type]


PART = Part("promise", _judge, needs=("storage",))
