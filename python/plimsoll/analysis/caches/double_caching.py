"""What both caches held of each relation, over the blocks of a treatment.

A record holds for each relation its size, what the server's cache holds, what the page cache holds and what both do;
from these follow the four parts that a figure stacks. Relations that are nowhere large are put together.
"""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.analysis.caches.document import (
    Held,
    HeldParts,
    HeldSums,
    NotRead,
    Reading,
    Readings,
    Relation,
    Shares,
    When,
)
from plimsoll.analysis.part import Context, Part
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import TrialEntry

Json = dict[str, Any]
WHEN: Final[dict[When, str]] = {"after": "after the measured segment", "before_measure": "before it"}
OTHERS = "(all other relations)"
SHOWN_MAX = 10


def _parts(row: HeldSums) -> HeldParts:
    """The four parts of a relation. What the server holds and the file does not yet have counts as the server's."""
    either = row["server_bytes"] + row["page_cache_bytes"] - row["both_bytes"]
    return {
        "server_only_bytes": row["server_bytes"] - row["both_bytes"],
        "both_bytes": row["both_bytes"],
        "page_cache_only_bytes": row["page_cache_bytes"] - row["both_bytes"],
        "neither_bytes": max(0.0, row["bytes"] - either),
    }


def _shares(row: HeldSums) -> Shares:
    """The part that is held twice, of what each cache holds of the database."""
    return {
        "share_of_server": row["both_bytes"] / row["server_bytes"] if row["server_bytes"] else None,
        "share_of_page_cache": row["both_bytes"] / row["page_cache_bytes"] if row["page_cache_bytes"] else None,
    }


def _mean(rows: list[Json], trials: int) -> Held:
    """Mean over the trials; a relation that one of them does not list held nothing there."""

    def mean(key: str) -> float:
        return sum(float(row.get(key) or 0) for row in rows) / trials

    sums: HeldSums = {
        "bytes": mean("bytes"),
        "server_bytes": mean("server_bytes"),
        "page_cache_bytes": mean("page_cache_bytes"),
        "both_bytes": mean("both_bytes"),
    }
    return {**sums, **_parts(sums)}


def _reading(trials: list[Trial], when: When, shown: list[str]) -> Reading | None:
    """One reading, before or after, as the mean over a treatment's trials."""
    found = [reading for trial in trials if (reading := (trial.data.get("double_caching") or {}).get(when))]
    if not found:
        return None
    relations: list[Relation] = []
    for name in [*shown, OTHERS]:
        rows = [
            row
            for reading in found
            for row in reading.get("relations") or []
            if row["relation"] == name or (name == OTHERS and row["relation"] not in shown)
        ]
        if rows:
            kind = rows[0].get("kind") if name != OTHERS else "other"
            relations.append({"relation": name, "kind": kind, **_mean(rows, len(found))})
    total = _mean([reading["total"] for reading in found], len(found))
    return {
        "trials": len(found),
        "source": ", ".join(dict.fromkeys(str(reading.get("source")) for reading in found)),
        "relations": relations,
        "total": {**total, **_shares(total)},
        "elsewhere_bytes": sum(float(reading.get("elsewhere_bytes") or 0) for reading in found) / len(found),
    }


def shown_relations(trials: list[Trial]) -> list[str]:
    """The relations that get a row of their own: those of which most was held anywhere, largest first."""
    most: dict[str, float] = {}
    for trial in trials:
        for when in WHEN:
            for row in ((trial.data.get("double_caching") or {}).get(when) or {}).get("relations") or []:
                held = float(row["server_bytes"]) + float(row["page_cache_bytes"]) - float(row["both_bytes"])
                most[row["relation"]] = max(most.get(row["relation"], 0.0), held)
    ordered = sorted(most, key=lambda name: (-most[name], name))
    return ordered if len(ordered) <= SHOWN_MAX + 1 else ordered[:SHOWN_MAX]


def over_trials(trials: list[Trial], shown: list[str]) -> Readings | None:
    """Both readings of a treatment; None where no trial of it has any."""
    found: Readings = {
        "after": _reading(trials, "after", shown),
        "before_measure": _reading(trials, "before_measure", shown),
    }
    return found if any(found.values()) else None


def absent(trials: list[Trial]) -> list[NotRead]:
    """Why trials that ran have no reading: {reason, trials}."""
    reasons: dict[str, list[int]] = {}
    for trial in trials:
        entry = trial.data.get("double_caching")
        if trial.status != "finished" or (entry and entry.get("after")):
            continue
        why = "the record has none: it is of an earlier version" if entry is None else entry.get("absent")
        reasons.setdefault(str(why or "no reason recorded"), []).append(trial.number)
    return [{"reason": reason, "trials": numbers} for reason, numbers in reasons.items()]


def _of_treatments(run: Run, entries: Mapping[str, list[TrialEntry]]) -> dict[str, Readings | None]:
    trials = {trial.number: trial for trial in run.trials}
    by_treatment = {name: [trials[entry["number"]] for entry in mine] for name, mine in entries.items()}
    shown = shown_relations([trial for mine in by_treatment.values() for trial in mine])
    return {name: over_trials(mine, shown) for name, mine in by_treatment.items()}


def _judge_absent(context: Context) -> list[NotRead]:
    return absent(context.run.trials)


PART = Part("double_caching", of_treatments=_of_treatments)
ABSENT = Part("double_caching_absent", _judge_absent)
