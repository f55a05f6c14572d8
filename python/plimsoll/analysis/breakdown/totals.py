"""Sums over the trials of a breakdown: what it cost, what it lost and how it closes, what became of every request."""

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def added(counts: Iterable[Json]) -> dict[str, int]:
    """Counts by name, added up; of a name that ends in _max the largest."""
    sums: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            many = int(count or 0)
            sums[name] = max(sums.get(name, 0), many) if name.endswith("_max") else sums.get(name, 0) + many
    return sums


def requests(trials: list[Json]) -> Json:
    """How many requests were seen coming and going: {`seen`, `sent`, `differ`}, null unless every trial tells both.

    They are to be equal only where all of the time was watched.
    """
    counted = [(one["requests"].get("seen"), one["requests"].get("sent")) for one in trials]
    if any(seen is None or sent is None for seen, sent in counted):
        return {"seen": None, "sent": None, "differ": False}
    whole = [pair for pair, one in zip(counted, trials, strict=True) if one["sampling"]["one_in_max"] == 1]
    return {
        "seen": sum(seen for seen, _ in counted),
        "sent": sum(sent for _, sent in counted),
        "differ": any(seen != sent for seen, sent in whole),
    }


def probe_share(trial: Json) -> float | None:
    """What the probe took of the machine's CPU time in a trial."""
    sampled: float | None = trial["sampling"]["share"]
    known: float | None = trial["cost"]["cpu_share"]
    return known if sampled is None else sampled


def own_read_share(reads: Json) -> float | None:
    """Of the waits for data whose cause is known, the share that the backend asked for itself; None of none."""
    known = reads["own_ns"] + reads["on_its_way_ns"]
    return reads["own_ns"] / known if known else None


def shares(amounts_ns: dict[str, float]) -> dict[str, float | None]:
    """Each amount's share of all of them; None where they are nothing."""
    whole = sum(amounts_ns.values())
    return {name: ns / whole if whole else None for name, ns in amounts_ns.items()}
