"""System calls and syncs of the server, by what the file is to the database: sums over the trials of each treatment.

Counts are of every call of the measured segment, or estimates from slices of it with their standard errors; what a file
system does not tell stays absent. A sum over trials is only made of trials whose probe was on.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.analysis.trial.readings import done_count
from plimsoll.record import Run, Trial
from plimsoll.record.summary import Probe
from plimsoll.record.verdict import Used

Json = dict[str, Any]
PARTS = ("writeback", "writing", "write_io", "journal", "metadata", "flush", "run_queue", "cpu", "other_wait")
_SUMS = ("count", "errors", "asked_bytes", "returned_bytes", "ns", "sequential")
_OTHERS_KEPT = 12
# Of a normal distribution: 95 % of it lies within so many standard errors. A segment has some tens of slices at least.
_NORMAL_95 = 1.96


def system_calls(run: Run, used: Used) -> Json | None:
    """The `syscalls` of verdict.json: {"calls", "syncs"} by treatment; None where neither probe was on."""
    trials = {trial.number: trial for trial in run.trials}
    calls: Json = {}
    syncs: Json = {}
    for name in run.plan.get("treatments") or {}:
        of_treatment = [trials[entry["number"]] for (_, treatment), entry in sorted(used.items()) if treatment == name]
        if sums := calls_of(of_treatment):
            calls[name] = sums
        if sums := syncs_of(of_treatment):
            syncs[name] = sums
    return {"calls": calls, "syncs": syncs} if calls or syncs else None


def probes_on(trials: Iterable[Trial], name: str) -> list[tuple[Trial, Probe]]:
    """The trials whose probe of that name was on, with what it says."""
    known = [(trial, entry) for trial in trials if (entry := probe(trial.measure, name)) is not None]
    return [(trial, entry) for trial, entry in known if entry.get("status") == "on"]


def _lost(entries: list[tuple[Trial, Probe]]) -> dict[str, int]:
    lost: dict[str, int] = {}
    for _, entry in entries:
        for what, count in lost_events(entry).items():
            lost[what] = lost.get(what, 0) + count
    return lost


def head_of(entries: list[tuple[Trial, Probe]]) -> Json:
    """Of how many trials and transactions the sums are, and what was lost."""
    done = [done_count(trial.measure) for trial, _ in entries]
    return {
        "trials": [trial.number for trial, _ in entries],
        "transactions": None if any(count is None for count in done) else sum(int(count or 0) for count in done),
        "lost": _lost(entries),
    }


def added(into: list[int], more: Iterable[int]) -> list[int]:
    """Two histograms with buckets of the same widths, each as long as it needs to be."""
    more = list(more)
    length = max(len(into), len(more))
    return [sum(histogram[at] for histogram in (into, more) if at < len(histogram)) for at in range(length)]


def typical(histogram: list[int]) -> int | None:
    """The bucket that holds the median; None of an empty one."""
    seen, half = 0, sum(histogram) / 2
    for bucket, count in enumerate(histogram):
        seen += count
        if count and seen >= half:
            return bucket
    return None


def calls_of(trials: Iterable[Trial]) -> Json | None:
    """Calls of these trials by class and kind, and the most frequent of all others."""
    entries = probes_on(trials, "syscalls")
    if not entries:
        return None
    by_class: dict[str, dict[str, Json]] = {}
    others: dict[str, Json] = {}
    for _, entry in entries:
        for name, kinds in (entry.get("call_totals") or {}).items():
            for kind, sums in kinds.items():
                _add_call(by_class.setdefault(name, {}).setdefault(kind, {}), sums)
        for name, sums in (entry.get("other_calls") or {}).items():
            other = others.setdefault(name, dict.fromkeys(("count", "errors", "ns"), 0))
            for key in other:
                other[key] += int(sums.get(key) or 0)

    def least(shares: Iterable[float | None]) -> float | None:
        return min((float(share) for share in shares if share is not None), default=None)

    most = sorted(others, key=lambda name: (-others[name]["count"], name))
    order = entries[0][1]
    return {
        **head_of(entries),
        "classes": {name: by_class[name] for name in order.get("classes") or [] if name in by_class},
        "order": list(order.get("calls") or []),
        "others": {name: others[name] for name in most[:_OTHERS_KEPT]},
        "others_left_out": sum(others[name]["count"] for name in most[_OTHERS_KEPT:]),
        "calls_share": least(entry.get("calls_share") for _, entry in entries),
        "others_share": least(entry.get("others_share") for _, entry in entries),
    }


def _add_call(into: Json, sums: Json) -> None:
    for key in _SUMS:
        into[key] = into.get(key, 0) + int(sums.get(key) or 0)
    if (error := sums.get("count_se")) is not None:
        into["count_se"] = math.hypot(into.get("count_se", 0), float(error))
    for key in ("ns_log2", "bytes_log2"):
        into[key] = added(into.get(key, []), sums.get(key) or [])


def syncs_of(trials: Iterable[Trial]) -> Json | None:
    """Syncs of these trials by class and call."""
    entries = probes_on(trials, "sync")
    if not entries:
        return None
    by_class: dict[str, dict[str, Json]] = {}
    for _, entry in entries:
        for name, calls in (entry.get("sync_totals") or {}).items():
            for call, sums in calls.items():
                _add_sync(by_class.setdefault(name, {}).setdefault(call, {}), sums)
    entry = entries[0][1]
    opens = [int(entry["open_ns_max"]) for _, entry in entries if entry.get("open_ns_max") is not None]
    return {
        **head_of(entries),
        "classes": {name: by_class[name] for name in entry.get("classes") or [] if name in by_class},
        "absent": {key: why for _, entry in entries for key, why in (entry.get("absent") or {}).items()},
        "file_systems": sorted({str(system.get("type")) for system in entry.get("file_systems") or []}),
        "open_ns_max": max(opens, default=None),
    }


def _add_sync(into: Json, sums: Json) -> None:
    for key in ("count", "errors", "ns"):
        into[key] = into.get(key, 0) + int(sums.get(key) or 0)
    least, most = int(sums.get("ns_min") or 0), int(sums.get("ns_max") or 0)
    into["ns_min"] = min(into.get("ns_min", least), least)
    into["ns_max"] = max(into.get("ns_max", most), most)
    into["ns_log2"] = added(into.get("ns_log2", []), sums.get("ns_log2") or [])
    parts = into.setdefault("parts_ns", {})
    for part, ns in (sums.get("parts_ns") or {}).items():
        parts[part] = parts.get(part, 0) + int(ns)
    for key in ("journal_flush_ns", "pages"):
        if sums.get(key) is not None:
            into[key] = into.get(key, 0) + int(sums[key])


def together(calls: Iterable[Json]) -> Json:
    """Calls of several kinds as one: {`bytes`, `bucket` (log2 of the median size), `sequential_share`}."""
    calls = list(calls)
    sizes: list[int] = []
    for call in calls:
        sizes = added(sizes, call["bytes_log2"])
    count = sum(call["count"] for call in calls)
    return {
        "bytes": sum(call["returned_bytes"] for call in calls),
        "bucket": typical(sizes),
        "sequential_share": sum(call["sequential"] for call in calls) / count if count else None,
    }


def call_rates(sums: Json, transactions: int | None) -> Json:
    """{`per_transaction`, `ns_mean`, `count_margin` (half the 95 % interval of an estimate)}; null if not known."""
    count = sums["count"]
    return {
        "per_transaction": count / transactions if transactions else None,
        "ns_mean": sums["ns"] / count if count else None,
        "count_margin": _NORMAL_95 * sums["count_se"] if "count_se" in sums else None,
    }


def sync_parts(sums: Json) -> Json:
    """What a sync consists of, mean ns a call: {`parts`: {name: {ns, share}}, `closure` (the sum's share of the whole),
    `journal_flush_ns`, `pages`}."""
    count, whole, parts = sums["count"], sums["ns"], sums["parts_ns"]
    flushed, pages = sums.get("journal_flush_ns"), sums.get("pages")
    return {
        "parts": {name: {"ns": ns / count, "share": ns / whole if whole else 0.0} for name, ns in parts.items()},
        "closure": sum(parts.values()) / whole if whole else None,
        "journal_flush_ns": None if flushed is None else flushed / count,
        "pages": None if pages is None else pages / count,
    }


def sync_sequence(trial: Trial, most: int) -> list[Json]:
    """Single syncs in the order in which they were entered: {`place` (from 1), `ns`, `call`, `class`}."""
    table = trial.measure.syncs
    if table is None or not len(table):
        return []
    entry = ((trial.measure.summary or {}).get("probes") or {}).get("sync") or {}
    classes, calls = entry.get("classes") or [], entry.get("calls") or []
    first = table[np.argsort(table["t_ns"], kind="stable")][:most]
    return [
        {"place": place, "ns": int(row["ns"]), "call": calls[row["call"]], "class": classes[row["class"]]}
        for place, row in enumerate(first, start=1)
    ]


def _judge(context: Context) -> Json | None:
    return system_calls(context.run, context.used)


PART = Part("syscalls", _judge)
