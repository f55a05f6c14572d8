"""System calls and syncs of the server, by what the file is to the database: sums over the trials of each treatment.

Counts are of every call of the measured segment, or estimates from slices of it with their standard errors; what a file
system does not tell stays absent. A sum over trials is only made of trials whose probe was on.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, Literal, TypedDict, get_args

import numpy as np

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.document import Call, Calls, Summed, Sync, Syncs, SystemCalls, Timed
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.analysis.trial.readings import done_count
from plimsoll.record import Run, Trial
from plimsoll.record.summary import Probe
from plimsoll.record.verdict import Used

Json = dict[str, Any]
PARTS = ("writeback", "writing", "write_io", "journal", "metadata", "flush", "commit", "run_queue", "cpu", "other_wait")
_TimedSum = Literal["count", "errors", "ns"]
_CallSum = Literal[_TimedSum, "asked_bytes", "returned_bytes", "sequential"]
_TIMED: Final[tuple[_TimedSum, ...]] = get_args(_TimedSum)
_SUMS: Final[tuple[_CallSum, ...]] = get_args(_CallSum)
_TOLD: Final[tuple[Literal["journal_flush_ns", "pages"], ...]] = ("journal_flush_ns", "pages")  # by some file systems
_OTHERS_KEPT = 12
# Of a normal distribution: 95 % of it lies within so many standard errors. A segment has some tens of slices at least.
_NORMAL_95 = 1.96


class Together(TypedDict):
    """Calls of several kinds as one."""

    bytes: int
    bucket: int | None  # log2 of the median size
    sequential_share: float | None


class Rates(TypedDict):
    """What follows from a count and a time; null if not known."""

    per_transaction: float | None
    ns_mean: float | None
    count_margin: float | None  # half the 95 % interval of an estimate


class SyncPart(TypedDict):
    """One part of a sync: mean of a call, and share of the whole."""

    ns: float
    share: float


class SyncParts(TypedDict):
    """What a sync consists of, mean of a call."""

    parts: dict[str, SyncPart]
    closure: float | None  # the sum's share of the whole
    journal_flush_ns: float | None
    pages: float | None


SingleSync = TypedDict("SingleSync", {"place": int, "ns": int, "call": str, "class": str})  # `place` from 1


def system_calls(run: Run, used: Used) -> SystemCalls | None:
    """The `syscalls` of verdict.json: {"calls", "syncs"} by treatment; None where neither probe was on."""
    trials = {trial.number: trial for trial in run.trials}
    calls: dict[str, Calls] = {}
    syncs: dict[str, Syncs] = {}
    for name in run.plan.get("treatments") or {}:
        of_treatment = [trials[entry["number"]] for (_, treatment), entry in sorted(used.items()) if treatment == name]
        if of_calls := calls_of(of_treatment):
            calls[name] = of_calls
        if of_syncs := syncs_of(of_treatment):
            syncs[name] = of_syncs
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


def head_of(entries: list[tuple[Trial, Probe]]) -> Summed:
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


def calls_of(trials: Iterable[Trial]) -> Calls | None:
    """Calls of these trials by class and kind, and the most frequent of all others."""
    entries = probes_on(trials, "syscalls")
    if not entries:
        return None
    by_class: dict[str, dict[str, Call]] = {}
    others: dict[str, Timed] = {}
    for _, entry in entries:
        for name, kinds in (entry.get("call_totals") or {}).items():
            for kind, sums in kinds.items():
                _add_call(by_class.setdefault(name, {}).setdefault(kind, _no_calls(sums)), sums)
        for name, sums in (entry.get("other_calls") or {}).items():
            other = others.setdefault(name, {"count": 0, "errors": 0, "ns": 0})
            for key in _TIMED:
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


def _no_calls(first: Json) -> Call:
    """Nothing yet, with a standard error where the first has one."""
    none: Call = {
        "count": 0,
        "errors": 0,
        "asked_bytes": 0,
        "returned_bytes": 0,
        "ns": 0,
        "sequential": 0,
        "count_se": 0.0,
        "ns_log2": [],
        "bytes_log2": [],
    }
    if first.get("count_se") is None:
        del none["count_se"]
    return none


def _add_call(into: Call, sums: Json) -> None:
    for key in _SUMS:
        into[key] += int(sums.get(key) or 0)
    if (error := sums.get("count_se")) is not None:
        into["count_se"] = math.hypot(into.get("count_se", 0.0), float(error))
    into["ns_log2"] = added(into["ns_log2"], sums.get("ns_log2") or [])
    into["bytes_log2"] = added(into["bytes_log2"], sums.get("bytes_log2") or [])


def syncs_of(trials: Iterable[Trial]) -> Syncs | None:
    """Syncs of these trials by class and call."""
    entries = probes_on(trials, "sync")
    if not entries:
        return None
    by_class: dict[str, dict[str, Sync]] = {}
    for _, entry in entries:
        for name, calls in (entry.get("sync_totals") or {}).items():
            for call, sums in calls.items():
                _add_sync(by_class.setdefault(name, {}).setdefault(call, _no_syncs(sums)), sums)
    entry = entries[0][1]
    opens = [int(entry["open_ns_max"]) for _, entry in entries if entry.get("open_ns_max") is not None]
    return {
        **head_of(entries),
        "classes": {name: by_class[name] for name in entry.get("classes") or [] if name in by_class},
        "absent": {key: why for _, entry in entries for key, why in (entry.get("absent") or {}).items()},
        "file_systems": sorted({str(system.get("type")) for system in entry.get("file_systems") or []}),
        "open_ns_max": max(opens, default=None),
    }


def _ends(sums: Json) -> tuple[int, int]:
    """The shortest and the longest."""
    return int(sums.get("ns_min") or 0), int(sums.get("ns_max") or 0)


def _no_syncs(first: Json) -> Sync:
    """Nothing yet; least and most as of the first."""
    least, most = _ends(first)
    return {"count": 0, "errors": 0, "ns": 0, "ns_min": least, "ns_max": most, "ns_log2": [], "parts_ns": {}}


def _add_sync(into: Sync, sums: Json) -> None:
    for key in _TIMED:
        into[key] += int(sums.get(key) or 0)
    least, most = _ends(sums)
    into["ns_min"], into["ns_max"] = min(into["ns_min"], least), max(into["ns_max"], most)
    into["ns_log2"] = added(into["ns_log2"], sums.get("ns_log2") or [])
    parts = into["parts_ns"]
    for part, ns in (sums.get("parts_ns") or {}).items():
        parts[part] = parts.get(part, 0) + int(ns)
    for told in _TOLD:
        if sums.get(told) is not None:
            into[told] = into.get(told, 0) + int(sums[told])


def together(calls: Iterable[Call]) -> Together:
    """Calls of several kinds as one."""
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


def call_rates(sums: Timed, transactions: int | None) -> Rates:
    """How often and how long, of calls or of syncs."""
    count = sums["count"]
    return {
        "per_transaction": count / transactions if transactions else None,
        "ns_mean": sums["ns"] / count if count else None,
        "count_margin": _NORMAL_95 * sums["count_se"] if "count_se" in sums else None,
    }


def sync_parts(sums: Sync) -> SyncParts:
    """What these syncs consist of."""
    count, whole, parts = sums["count"], sums["ns"], sums["parts_ns"]
    flushed, pages = sums.get("journal_flush_ns"), sums.get("pages")
    return {
        "parts": {name: {"ns": ns / count, "share": ns / whole if whole else 0.0} for name, ns in parts.items()},
        "closure": sum(parts.values()) / whole if whole else None,
        "journal_flush_ns": None if flushed is None else flushed / count,
        "pages": None if pages is None else pages / count,
    }


def sync_sequence(trial: Trial, most: int) -> list[SingleSync]:
    """Single syncs in the order in which they were entered."""
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


def _judge(context: Context) -> SystemCalls | None:
    return system_calls(context.run, context.used)


PART = Part("syscalls", _judge)
