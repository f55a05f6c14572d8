"""Requests of the disks that hold the server's files: sums over trials, percentiles, what took most.

Counts are of every request that was issued and completed in the measured segment. A percentile comes from buckets that
are at most 1/32 wide, so it is right to about 3 %; sums, least and most are exact.
"""

from collections.abc import Iterable
from typing import Any

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.syscalls import head_of, probes_on
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Used

Json = dict[str, Any]
Buckets = list[list[int]]
_PARTS_LOG2 = 5
_SPANS = ("bytes", "queue_ns", "device_ns")
_SUMS = ("count", "errors", "synchronous", "meta", "fua", "ahead", "queued", *_SPANS)
_ENDS = ("issued", "completed", "requeued", "under_way", "unseen", "no_room", "before", "flush_asks")
_MERGES = ("bios_merged", "requests_merged", "splits", "depth_ns", "segment_ns")


def block_requests(run: Run, used: Used) -> Json | None:
    """The `block` of verdict.json, by treatment; None where the probe was not on."""
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: Json = {}
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


def _add(into: Json, sums: Json) -> None:
    for key in _SUMS:
        into[key] = into.get(key, 0) + int(sums.get(key) or 0)
    for span in _SPANS:
        if span == "queue_ns" and not sums.get("queued"):
            continue
        least, most = int(sums.get(f"{span}_min") or 0), int(sums.get(f"{span}_max") or 0)
        into[f"{span}_min"] = min(into.get(f"{span}_min", least), least)
        into[f"{span}_max"] = max(into.get(f"{span}_max", most), most)
    for span in _SPANS:
        into[f"{span}_buckets"] = added_buckets(into.get(f"{span}_buckets", []), sums.get(f"{span}_buckets") or [])


def _finished(sums: Json) -> Json:
    """With means and percentiles; the buckets of times stay, for the figure."""
    count, queued = sums["count"], sums["queued"]
    sizes = sums.pop("bytes_buckets")
    return sums | {
        "bytes_typical": percentile(sizes, 0.5),
        "queue_ns_mean": sums["queue_ns"] / queued if queued else None,
        "device_ns_mean": sums["device_ns"] / count if count else None,
        **{
            f"{span}_{name}": percentile(sums[f"{span}_buckets"], share)
            for span in ("queue_ns", "device_ns")
            for name, share in (("p50", 0.5), ("p99", 0.99))
        },
    }


def requests_of(trials: Iterable[Trial]) -> Json | None:
    """Requests of these trials by disk, class and operation, and what became of those that are in no row."""
    entries = probes_on(trials, "block")
    if not entries:
        return None
    by_disk: dict[str, dict[str, dict[str, Json]]] = {}
    ends: dict[str, Json] = {}
    for _, entry in entries:
        for disk, classes in (entry.get("request_totals") or {}).items():
            for name, operations in classes.items():
                for operation, sums in operations.items():
                    of_class = by_disk.setdefault(disk, {}).setdefault(name, {})
                    _add(of_class.setdefault(operation, {}), sums)
        for disk, ends_of_disk in (entry.get("disk_requests") or {}).items():
            _add_ends(ends.setdefault(disk, {}), ends_of_disk)
    order = entries[0][1].get("classes") or []
    return {
        **head_of(entries),
        "disks": {
            disk: {
                "classes": {
                    name: {operation: _finished(sums) for operation, sums in by_disk[disk][name].items()}
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


def _add_ends(into: Json, sums: Json) -> None:
    for key in (*_ENDS, *_MERGES):
        if sums.get(key) is not None:
            into[key] = into.get(key, 0) + int(sums[key])
    into["depth_max"] = max(into.get("depth_max", 0), int(sums.get("depth_max") or 0))
    into["holds"] = into.get("holds", True) and bool(sums.get("holds"))


def dominant(requests: Json, most: int = 3) -> list[tuple[str, str, str, Json]]:
    """What took most of the time of all requests, queued and at the device: disk, class, operation, sums."""
    rows = [
        (disk, name, operation, sums)
        for disk, entry in requests["disks"].items()
        for name, operations in entry["classes"].items()
        for operation, sums in operations.items()
    ]
    rows.sort(key=lambda row: -(row[3]["queue_ns"] + row[3]["device_ns"]))
    return rows[:most]


def time_of_all(requests: Json) -> int:
    """Queued and at the device, of all requests together."""
    return sum(
        int(sums["queue_ns"]) + int(sums["device_ns"])
        for entry in requests["disks"].values()
        for operations in entry["classes"].values()
        for sums in operations.values()
    )


def spent_share(sums: Json, whole_ns: int) -> float | None:
    """The share of all requests' time, queued and at the device, that these took; None of no time."""
    return (sums["queue_ns"] + sums["device_ns"]) / whole_ns if whole_ns else None


def rates(sums: Json, transactions: int | None) -> Json:
    """{`per_transaction`, `synchronous_share` (of those that somebody waited for)}; null where there is nothing."""
    count = sums["count"]
    return {
        "per_transaction": count / transactions if transactions else None,
        "synchronous_share": sums["synchronous"] / count if count else None,
    }


def depth_mean(ends: Json) -> float | None:
    """Requests at the device, mean over the measured segment."""
    return ends["depth_ns"] / ends["segment_ns"] if ends.get("segment_ns") else None


def _judge(context: Context) -> Json | None:
    return block_requests(context.run, context.used)


PART = Part("block", _judge)
