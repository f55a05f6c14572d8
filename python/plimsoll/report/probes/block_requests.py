"""Requests of the server's disks by what they carry: a table by class and operation, and what took most, in words."""

from collections.abc import Iterable
from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metrics import unit_of_work
from plimsoll.analysis.probes.block_requests import depth_mean, dominant, rates, spent_share, time_of_all
from plimsoll.analysis.probes.document import BlockRequests, EndCount, Ends, Requests
from plimsoll.report.drawing.tables import number, trials_words
from plimsoll.report.probes import syscalls

Json = dict[str, Any]
_SHARE_MIN = 0.01  # of the time of all requests: less is not worth a sentence
_MB, _US, _MS, _KIB = 1e-6, 1e-3, 1e-6, 1 / 1024
CLASSES = {
    **syscalls.CLASSES,
    "metadata": "metadata of the file system",
    "journal": "journal of the file system",
    "swap": "swap",
    "direct": "direct, file unknown",
    "none": "no pages",
    "unknown": "unknown",
}
OPERATIONS = {
    "read": "reads",
    "write": "writes",
    "flush": "flushes",
    "discard": "discards",
    "write_zeroes": "zeroes",
    "other": "other",
}
_COUNTS: Final[tuple[EndCount, ...]] = ("issued", "completed", "requeued", "under_way", "unseen", "no_room")
_BESIDE: Final[tuple[EndCount, ...]] = ("before", "flush_asks", "bios_merged", "requests_merged", "splits")
_SHORT = {"wal": "WAL", "data": "data", "none": "", "elsewhere": "others'"}


def block_part(verdict: Json) -> Json | None:
    """What the template draws; None where the probe was not asked for."""
    block: dict[str, BlockRequests] | None = verdict.get("block")
    if not block:
        return None
    labels, unit = treatment_labels(verdict), unit_of_work(verdict)
    return {"treatments": [_treatment(labels.get(name, name), unit, one) for name, one in block.items()]}


def _treatment(label: str, unit: str, one: BlockRequests) -> Json:
    lost = ", ".join(f"{count:,} {what}" for what, count in one["lost"].items())
    return {
        "label": label,
        "of": f"{trials_words(one['trials'])}, {number(one['transactions'], ',.0f')} {unit}s",
        "file_systems": ", ".join(one["file_systems"]),
        "lost": f"Lower bounds: the probe lost events ({lost})." if lost else "",
        "absent": " ".join(f"Not measured: {what}: {why}." for what, why in one["absent"].items()),
        "lines": words(one),
        "rows": [
            _row(disk, name, operation, sums, one["transactions"])
            for disk, entry in one["disks"].items()
            for name, operations in entry["classes"].items()
            for operation, sums in operations.items()
        ],
        "disks": [_disk(disk, entry["ends"]) for disk, entry in one["disks"].items()],
    }


def name_of(name: str, operation: str) -> str:
    """WAL writes, flushes, reads of metadata..."""
    short = _SHORT.get(name, name)
    return f"{short} {OPERATIONS.get(operation, operation)}".strip()


def words(one: BlockRequests) -> list[str]:
    """What took most of the requests' time, and how it was spent."""
    whole, lines = time_of_all(one), []
    for disk, name, operation, sums in dominant(one):
        share, at_device = spent_share(sums, whole), sums["device_ns_mean"]
        if share is None or share < _SHARE_MIN or at_device is None:
            continue
        queued = sums["queue_ns_mean"]
        waited = "queued for an unknown time" if queued is None else f"waited {queued * _MS:.3g} ms in the queue"
        lines.append(
            f"{name_of(name, operation)} on {disk} {waited} and {at_device * _MS:.3g} ms at the device "
            f"(means of {sums['count']:,}): {share:.0%} of the time of all requests."
        )
    return [line[0].upper() + line[1:] for line in lines]


def _times(cells: Iterable[float | None], count: int) -> list[str]:
    return [number(cell if count else None, ",.1f", _US) for cell in cells]


def _row(disk: str, name: str, operation: str, sums: Requests, transactions: int | None) -> Json:
    count, found = sums["count"], rates(sums, transactions)
    queue = (sums["queue_ns_mean"], sums["queue_ns_p50"], sums["queue_ns_p99"], sums.get("queue_ns_max"))
    device = (sums["device_ns_mean"], sums["device_ns_p50"], sums["device_ns_p99"], sums["device_ns_max"])
    carries = operation != "flush"
    return {
        "disk": disk,
        "class": CLASSES.get(name, name),
        "operation": OPERATIONS.get(operation, operation),
        "count": number(count, ",.0f"),
        "each": number(found["per_transaction"], ",.3g"),
        "megabytes": number(sums["bytes"] if carries else None, ",.1f", _MB),
        "size": number(sums["bytes_typical"] if carries else None, ",.4g", _KIB),
        "queue": _times(queue, sums["queued"]),
        "device": _times(device, count),
        "synchronous": number(found["synchronous_share"], ".0%"),
        "errors": number(sums["errors"], ",.0f"),
    }


def _disk(name: str, ends: Ends) -> Json:
    return {
        "name": name,
        "counts": [number(ends.get(key), ",.0f") for key in _COUNTS],
        "holds": "holds" if ends["holds"] else "DOES NOT HOLD",
        "beside": [number(ends.get(key), ",.0f") for key in _BESIDE],
        "depth": [number(depth_mean(ends), ",.3f"), number(ends["depth_max"], ",.0f")],
    }
