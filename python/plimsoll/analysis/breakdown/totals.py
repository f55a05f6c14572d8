"""Sums over the trials of a breakdown: what it cost, what it lost and how it closes, what became of every request."""

from collections.abc import Iterable, Mapping, Sequence

from plimsoll.analysis.breakdown.document import OfTrial, OfType, RequestsCounted
from plimsoll.analysis.breakdown.reading import Reads
from plimsoll.analysis.breakdown.trial import MEAN


def added(counts: Iterable[Mapping[str, int | None]]) -> dict[str, int]:
    """Counts by name, added up; of a name that ends in _max the largest."""
    sums: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            many = int(count or 0)
            sums[name] = max(sums.get(name, 0), many) if name.endswith("_max") else sums.get(name, 0) + many
    return sums


def requests(trials: Sequence[OfTrial]) -> RequestsCounted:
    """How many requests were seen coming and going; null unless every trial tells both.

    They are to be equal only where all of the time was watched.
    """
    counted = [(one["requests"]["seen"], one["requests"]["sent"]) for one in trials]
    known = [(seen, sent) for seen, sent in counted if seen is not None and sent is not None]
    if len(known) < len(counted):
        return {"seen": None, "sent": None, "differ": False}
    whole = [pair for pair, one in zip(known, trials, strict=True) if one["sampling"]["one_in_max"] == 1]
    return {
        "seen": sum(seen for seen, _ in known),
        "sent": sum(sent for _, sent in known),
        "differ": any(seen != sent for seen, sent in whole),
    }


def probe_share(trial: OfTrial) -> float | None:
    """What the probe took of the machine's CPU time in a trial."""
    sampled = trial["sampling"]["share"]
    return trial["cost"]["cpu_share"] if sampled is None else sampled


def own_read_share(reads: Reads) -> float | None:
    """Of the waits for data whose cause is known, the share that the backend asked for itself; None of none."""
    known = reads["own_ns"] + reads["on_its_way_ns"]
    return reads["own_ns"] / known if known else None


def on_nfs(of_type: OfType) -> tuple[float | None, float | None]:
    """Of a type's latency the share that was spent on NFS, and what one of the slowest hundredth spent there, ns."""
    parts, mean = of_type["nfs"].values(), of_type["bands"][MEAN]
    latency = mean["latency"]["value"] if mean else 0
    slowest = [sums["ns_per_slowest"] for sums in parts if sums["ns_per_slowest"] is not None]
    whole = sum(sums["ns_per_transaction"] for sums in parts)
    return whole / latency if latency else None, sum(slowest) if slowest else None


def shares(amounts_ns: dict[str, float]) -> dict[str, float | None]:
    """Each amount's share of all of them; None where they are nothing."""
    whole = sum(amounts_ns.values())
    return {name: ns / whole if whole else None for name, ns in amounts_ns.items()}
