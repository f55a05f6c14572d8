"""Which trial stands for a treatment in a block, and its duplicate."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.record.verdict import TrialEntry, Used


def chosen(entries: Iterable[TrialEntry]) -> dict[tuple[int, str], TrialEntry]:
    """The trial that stands for each (block, treatment): the original, or its duplicate where that did not enter."""
    result: dict[tuple[int, str], TrialEntry] = {}
    for entry in sorted(entries, key=lambda entry: bool(entry["duplicate"])):
        if entry["admitted"]:
            result.setdefault((entry["block"], entry["treatment"]), entry)
    return result


def twins(entries: Iterable[TrialEntry]) -> Used:
    """The duplicates whose originals were admitted as well, by (block, treatment)."""
    every = list(entries)
    places = {(entry["block"], entry["treatment"]) for entry in every if entry["admitted"] and not entry["duplicate"]}
    found = {(entry["block"], entry["treatment"]): entry for entry in every if entry["duplicate"]}
    return {place: entry for place, entry in found.items() if entry["admitted"] and place in places}
