"""Requests of the disks that hold the server's files: sums over trials, percentiles, what took most.

Counts are of every request that was issued and completed in the measured segment. A percentile comes from buckets that
are at most 1/32 wide, so it is right to about 3 %; sums, least and most are exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, get_args

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.document import (
    BlockRequests,
    Buckets,
    EndCount,
    EndCounts,
    Ends,
    Requests,
    RequestSums,
    TimeBuckets,
)
from plimsoll.analysis.probes.syscalls import head_of, probes_on
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Used

Json = dict[str, Any]
_PARTS_LOG2 = 5
_Sum = Literal["count", "errors", "synchronous", "meta", "fua", "ahead", "queued", "bytes", "queue_ns", "device_ns"]
_SUMS: Final[tuple[_Sum, ...]] = get_args(_Sum)
_Least = Literal["bytes_min", "queue_ns_min", "device_ns_min"]
_Most = Literal["bytes_max", "queue_ns_max", "device_ns_max"]
_EXTREMES: Final[tuple[tuple[_Least, _Most], ...]] = (
    ("bytes_min", "bytes_max"),
    ("queue_ns_min", "queue_ns_max"),
    ("device_ns_min", "device_ns_max"),
)
_BUCKETS: Final[tuple[TimeBuckets, ...]] = get_args(TimeBuckets)
_COUNTS: Final[tuple[EndCount, ...]] = get_args(EndCount)


@dataclass
class _Gathered:
    """What is summed of one operation; of the sizes the median alone is kept."""

    sums: RequestSums
    sizes: Buckets


class Rates(TypedDict):
    """What follows from a count; null where there is nothing."""

    per_transaction: float | None
    synchronous_share: float | None  # of those that somebody waited for


def block_requests(run: Run, used: Used) -> dict[str, BlockRequests] | None:
    """The `block` of verdict.json, by treatment; None where the probe was not on."""
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: dict[str, BlockRequests] = {}
    for name in run.plan.get("treatments") or {}:
        of_treatment = [trials[entry["number"]] for (_, treatment), entry in sorted(used.items()) if treatment == name]
        if requests := requests_of(of_treatment):
            by_treatment[name] = requests
    return by_treatment or None


def width_of(least: int) -> int:
    """How wide the bucket is that begins there: one part of 32 of a power of two."""
    return 1 << max(0, least.bit_length() - 1 - _PARTS_LOG2)


def added_buckets(into: Buckets, more: Iterable[Iterable[int]]) -> Buckets:
    """Two distributions, in the order of their values."""
    sums: dict[int, int] = {}
    for least, count in (*into, *more):
        sums[least] = sums.get(least, 0) + count
    return [[least, sums[least]] for least in sorted(sums)]


def percentile(buckets: Buckets, share: float) -> float | None:
    """The value that so large a share lies at or below, as if each bucket were filled evenly; None of nothing."""
    total = sum(count for _, count in buckets)
    wanted, seen = share * total, 0
    for least, count in buckets:
        if count and seen + count >= wanted:
            # A bucket one wide has but the one value.
            return least + (width_of(least) - 1) * max(0.0, wanted - seen) / count
        seen += count
    return None


def _no_requests(first: Json) -> RequestSums:
    """Nothing yet; least and most as of the first, and of the queue none where its times are not told."""
    none: RequestSums = {
        "count": 0,
        "errors": 0,
        "synchronous": 0,
        "meta": 0,
        "fua": 0,
        "ahead": 0,
        "queued": 0,
        "bytes": 0,
        "queue_ns": 0,
        "device_ns": 0,
        "bytes_min": _number(first, "bytes_min"),
        "bytes_max": _number(first, "bytes_max"),
        "queue_ns_min": _number(first, "queue_ns_min"),
        "queue_ns_max": _number(first, "queue_ns_max"),
        "device_ns_min": _number(first, "device_ns_min"),
        "device_ns_max": _number(first, "device_ns_max"),
        "queue_ns_buckets": [],
        "device_ns_buckets": [],
    }
    if not first.get("queued"):
        del none["queue_ns_min"], none["queue_ns_max"]
    return none


def _number(counted: Json, key: str) -> int:
    return int(counted.get(key) or 0)


def _add(into: _Gathered, counted: Json) -> None:
    sums = into.sums
    for key in _SUMS:
        sums[key] += _number(counted, key)
    for least, most in _EXTREMES:
        if least == "queue_ns_min" and not counted.get("queued"):
            continue
        lowest, highest = _number(counted, least), _number(counted, most)
        sums[least], sums[most] = min(sums.get(least, lowest), lowest), max(sums.get(most, highest), highest)
    into.sizes = added_buckets(into.sizes, counted.get("bytes_buckets") or [])
    for buckets in _BUCKETS:
        sums[buckets] = added_buckets(sums[buckets], counted.get(buckets) or [])


def _finished(gathered: _Gathered) -> Requests:
    """With means and percentiles; the buckets of times stay, for the figure."""
    sums = gathered.sums
    count, queued = sums["count"], sums["queued"]
    return {
        **sums,
        "bytes_typical": percentile(gathered.sizes, 0.5),
        "queue_ns_mean": sums["queue_ns"] / queued if queued else None,
        "device_ns_mean": sums["device_ns"] / count if count else None,
        "queue_ns_p50": percentile(sums["queue_ns_buckets"], 0.5),
        "queue_ns_p99": percentile(sums["queue_ns_buckets"], 0.99),
        "device_ns_p50": percentile(sums["device_ns_buckets"], 0.5),
        "device_ns_p99": percentile(sums["device_ns_buckets"], 0.99),
    }


def requests_of(trials: Iterable[Trial]) -> BlockRequests | None:
    """Requests of these trials by disk, class and operation, and what became of those that are in no row."""
    entries = probes_on(trials, "block")
    if not entries:
        return None
    by_disk: dict[str, dict[str, dict[str, _Gathered]]] = {}
    ends: dict[str, Ends] = {}
    for _, entry in entries:
        for disk, classes in (entry.get("request_totals") or {}).items():
            for name, operations in classes.items():
                for operation, sums in operations.items():
                    of_class = by_disk.setdefault(disk, {}).setdefault(name, {})
                    _add(of_class.setdefault(operation, _Gathered(_no_requests(sums), [])), sums)
        for disk, counted in (entry.get("disk_requests") or {}).items():
            if disk in ends:
                _add_ends(ends[disk], _ends(counted))
            else:
                ends[disk] = _ends(counted)
    order = entries[0][1].get("classes") or []
    return {
        **head_of(entries),
        "disks": {
            disk: {
                "classes": {
                    name: {operation: _finished(gathered) for operation, gathered in by_disk[disk][name].items()}
                    for name in order
                    if name in by_disk.get(disk, {})
                },
                "ends": ends_of_disk,
            }
            for disk, ends_of_disk in ends.items()
        },
        "absent": {key: why for _, entry in entries for key, why in (entry.get("absent") or {}).items()},
        "file_systems": sorted(
            {str(system.get("type")) for _, entry in entries for system in entry.get("file_systems") or []}
        ),
    }


def _ends(counted: Json) -> Ends:
    counts: EndCounts = {}
    for key in _COUNTS:
        if counted.get(key) is not None:
            counts[key] = int(counted[key])
    return {**counts, "depth_max": int(counted.get("depth_max") or 0), "holds": bool(counted.get("holds"))}


def _add_ends(into: Ends, more: Ends) -> None:
    for key in _COUNTS:
        if key in more:
            into[key] = into.get(key, 0) + more[key]
    into["depth_max"] = max(into["depth_max"], more["depth_max"])
    into["holds"] = into["holds"] and more["holds"]


def dominant(requests: BlockRequests, most: int = 3) -> list[tuple[str, str, str, Requests]]:
    """What took most of the time of all requests, queued and at the device: disk, class, operation, sums."""
    rows = [
        (disk, name, operation, sums)
        for disk, entry in requests["disks"].items()
        for name, operations in entry["classes"].items()
        for operation, sums in operations.items()
    ]
    rows.sort(key=lambda row: -(row[3]["queue_ns"] + row[3]["device_ns"]))
    return rows[:most]


def time_of_all(requests: BlockRequests) -> int:
    """Queued and at the device, of all requests together."""
    return sum(
        sums["queue_ns"] + sums["device_ns"]
        for entry in requests["disks"].values()
        for operations in entry["classes"].values()
        for sums in operations.values()
    )


def spent_share(sums: RequestSums, whole_ns: int) -> float | None:
    """The share of all requests' time, queued and at the device, that these took; None of no time."""
    return (sums["queue_ns"] + sums["device_ns"]) / whole_ns if whole_ns else None


def rates(sums: RequestSums, transactions: int | None) -> Rates:
    """How often, and how many of them were waited for."""
    count = sums["count"]
    return {
        "per_transaction": count / transactions if transactions else None,
        "synchronous_share": sums["synchronous"] / count if count else None,
    }


def depth_mean(ends: Ends) -> float | None:
    """Requests at the device, mean over the measured segment."""
    return ends["depth_ns"] / ends["segment_ns"] if ends.get("segment_ns") else None


def _judge(context: Context) -> dict[str, BlockRequests] | None:
    return block_requests(context.run, context.used)


PART = Part("block", _judge)
