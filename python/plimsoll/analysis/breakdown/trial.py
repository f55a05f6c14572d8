"""One trial's breakdown: exact sums of its transactions' parts by type and band of latency, and how well they close.

Sums are whole nanoseconds over the done transactions whose requests were all recorded, and of which thinning leaves
those of all rates alike (breakdown_sampling.py). The closure error is what the buckets leave of the time in which the
server or a gap had the transaction; it is never given to a bucket.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from plimsoll.analysis.breakdown import join as breakdown_join
from plimsoll.analysis.breakdown import sampling as breakdown_sampling
from plimsoll.analysis.breakdown import slowest as breakdown_slowest
from plimsoll.analysis.breakdown import waits as breakdown_waits
from plimsoll.analysis.breakdown.join import Joined
from plimsoll.analysis.breakdown.parts import BUCKETS, CPU, OTHER, TRANSPORT, UNATTRIBUTED, split_cpu
from plimsoll.analysis.breakdown.reading import BandSums, Closure, ProbeSays, Reading, Said, Split, Told, TypeSums
from plimsoll.analysis.probes.page_cache import cores_of, lost_events, probe
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.analysis.trial.readings import DONE, done_count, is_whole
from plimsoll.record import Segment, Trial
from plimsoll.record.summary import Probe

NAME = "breakdown"
MEAN: Final = "all"
SLOWEST: Final = "beyond p99"
TOLD: Final[tuple[Told, ...]] = (MEAN, SLOWEST)
# Bands of latency within a type: from the first share (exclusive) up to the second.
BANDS = {MEAN: (0.0, 1.0), "up to p50": (0.0, 0.5), "p50 to p90": (0.5, 0.9), "p90 to p99": (0.9, 0.99)} | {
    SLOWEST: (0.99, 1.0)
}
# User and system time are counted in ticks: fewer of them say nothing of how the time on a CPU is shared.
TICKS_MIN = 30


def reading(trial: Trial) -> Reading | None:
    """The trial's breakdown; None when its record does not mention one.

    `status` as in the record; of a probe that was on `types` ({kind: bands and closure}), `joined` (counts), `faults`
    ({what: how often}; with any there are no types), `slowest`, `processes`, `cost`, `requests` (of the load),
    `sampling` and `syncs` (by what was synced; empty where the file system does not tell).
    """
    probed = probe(trial.measure, NAME)
    if probed is None:
        return None
    said: Said = {
        "number": trial.number,
        "status": str(probed.get("status")),
        "remedy": probed.get("remedy"),
        "reason": None,
    }
    if probed.get("status") != "on":
        return {**said, "reason": str(probed.get("reason") or "no reason recorded")}
    segment = trial.measure
    rows, waits, transactions = segment.breakdown, segment.breakdown_waits, segment.transactions
    if rows is None or waits is None or transactions is None:
        return {**said, "status": "missing", "reason": "the record of its requests is missing"}
    probed = {"buckets": list(BUCKETS), **probed}
    return {**said, **_about(trial, probed), **_split(segment, transactions, rows, waits, probed)}


def _about(trial: Trial, probed: Probe) -> ProbeSays:
    """What the probe says of itself."""
    cost = probed.get("cost") or {}
    done, run_ns, segment_ns, count = (
        done_count(trial.measure),
        cost.get("run_ns"),
        cost.get("segment_ns"),
        cores_of(trial),
    )
    return {
        "lost": lost_events(probed),
        "checks": probed.get("checks") or [],
        "boundaries": probed.get("boundaries") or {},
        "absent": probed.get("absent") or {},
        "counts": probed.get("request_counts") or {},
        "processes": probed.get("processes") or [],
        "syncs": probed.get("syncs") or {},
        "done": done,
        "cost": {
            "run_ns": run_ns,
            "ns_per_transaction": run_ns / done if run_ns is not None and done else None,
            "cpu_share": run_ns / (segment_ns * count) if run_ns is not None and segment_ns and count else None,
        },
    }


def _split(segment: Segment, transactions: np.ndarray, rows: np.ndarray, waits: np.ndarray, probed: Probe) -> Split:
    buckets = [str(name) for name in probed["buckets"]]
    summary = segment.told
    sampling = breakdown_sampling.sampling_of(probed, rows)
    joined = breakdown_join.join(transactions, rows, waits, summary.get("backend_pids"), sampling["one_in_max"])
    wrong = breakdown_join.faults(joined, buckets)
    result: Split = {"joined": joined.counts, "sampled": not is_whole(segment), "faults": wrong, "types": {}}
    result["requests"] = {"seen": joined.counts["requests"], "sent": summary.get("requests_sent")}
    result["sampling"] = sampling
    if wrong:
        return {**result, "slowest": []}
    kinds = [str(kind) for kind in summary.get("kinds") or []]
    done = joined.transactions["outcome"] == DONE
    parts = breakdown_join.parts_of(joined, buckets)
    known = breakdown_waits.roles(probed, joined.rows["backend_pid"])
    for name, chosen in _kinds(joined, done & joined.served, kinds):
        result["types"][name] = _of_type(joined, parts, chosen, probed, known)
    return {**result, "slowest": breakdown_slowest.slowest(joined, done & joined.whole, kinds, probed)}


def _kinds(joined: Joined, done: np.ndarray, kinds: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """All types together, and each by itself where there are several."""
    yield ALL, done
    present = np.unique(joined.transactions["kind"][done]).tolist()
    for kind in present:
        name = kinds[kind] if kind < len(kinds) else f"kind {kind}"
        yield name, done & (joined.transactions["kind"] == kind)


def _of_type(
    joined: Joined, parts: dict[str, np.ndarray], chosen: np.ndarray, probed: Probe, known: dict[int, str]
) -> TypeSums:
    rows = joined.transactions
    latency = rows["end_ns"] - rows["planned_ns"]
    places = np.nonzero(chosen)[0]
    ordered = places[np.argsort(latency[places], kind="stable")]
    tick = _tick_ns(joined.rows)
    places_of = {
        band: ordered[_rank(low, len(ordered)) : _rank(high, len(ordered))] for band, (low, high) in BANDS.items()
    }
    beyond = np.zeros(len(rows), bool)
    beyond[places_of[SLOWEST]] = True
    return {
        "bands": {
            band: _sums(joined, parts, latency, chosen_places, tick) for band, chosen_places in places_of.items()
        },
        "closure": closure(parts, latency, places),
        MEAN: breakdown_waits.waits_of(joined, chosen, probed, known),
        SLOWEST: breakdown_waits.waits_of(joined, beyond, probed, known),
    }


def _rank(share: float, count: int) -> int:
    """How many of `count` are no slower than the percentile (nearest rank)."""
    return math.ceil(share * count - 1e-9)


def _sums(
    joined: Joined, parts: dict[str, np.ndarray], latency: np.ndarray, chosen: np.ndarray, tick_ns: float | None
) -> BandSums:
    user, system = (int(joined.over_rows(joined.rows[name])[chosen].sum()) for name in ("user_ns", "system_ns"))
    return {
        "transactions": len(chosen),
        "requests": int(joined.over_rows(breakdown_sampling.requests_in(joined.rows))[chosen].sum()),
        "latency_ns": int(latency[chosen].sum()),
        "ns": {name: total for name, values in parts.items() if (total := int(values[chosen].sum()))},
        "user_ns": user,
        "system_ns": system,
        "cpu_can_be_split": tick_ns is not None and user + system >= TICKS_MIN * tick_ns,
    }


def _tick_ns(rows: np.ndarray) -> float | None:
    """What the kernel counts user and system time by, as most rows that saw any of it show it, or more."""
    grown = np.concatenate([rows[name][rows[name] > 0] for name in ("user_ns", "system_ns")])
    return float(np.median(grown)) if len(grown) else None


def closure(parts: dict[str, np.ndarray], latency: np.ndarray, places: np.ndarray) -> Closure:
    """How the buckets close: what they leave of the wall time less the ways to the server and back.

    `share` lets transactions that leave some and that exceed it balance each other, `absolute_share` does not.
    `unnamed_share`: waits that the server does not name, or not so that they have a bucket.
    """
    transport = sum((parts[name][places] for name in TRANSPORT), np.zeros(len(places), np.int64))
    inside = latency[places] - transport
    within = (parts[name][places] for name in parts if name not in TRANSPORT)
    left = inside - sum(within, np.zeros(len(places), np.int64))
    whole, error, absolute = int(inside.sum()), int(left.sum()), int(np.abs(left).sum())
    unnamed = sum(int(parts[name][places].sum()) for name in (OTHER, UNATTRIBUTED) if name in parts)
    return {
        "error_ns": error,
        "of_ns": whole,
        "share": error / whole if whole else None,
        "absolute_share": absolute / whole if whole else None,
        "unnamed_share": unnamed / whole if whole else None,
    }


def mean_parts(band: BandSums, split: bool) -> dict[str, float]:
    """Nanoseconds a transaction by part of a band with transactions; the CPU in two where it is to be split."""
    parts = {name: total / band["transactions"] for name, total in band["ns"].items()}
    return split_cpu(parts, band["user_ns"], band["system_ns"]) if split and CPU in parts else parts


def mean_latency(band: BandSums) -> float:
    """Nanoseconds a transaction, of a band with transactions."""
    return float(band["latency_ns"] / band["transactions"])
