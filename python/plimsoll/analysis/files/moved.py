"""What one segment of a load on files moved, what of the machine that took, and what reached the devices.

The fact that constrains it: bytes that the load moved are payload, and bytes at the devices are the machine's, with
read-ahead, metadata, the journal and whoever else uses the device in them. Their ratio tells what the page cache did to
within that; below NEVER_LEFT it is called none. Where the probe of disk requests watched, only pages of the load's own
files count, read ahead or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll.analysis.files.document import Moved
from plimsoll.analysis.files.metrics import MB
from plimsoll.analysis.trial.readings import (
    SECTOR_BYTES,
    done_count,
    fact,
    grown,
    grown_of_devices,
    per,
    seconds_measured,
)
from plimsoll.record import Segment
from plimsoll.record.summary import Probe

_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TICK_NS = 10_000_000  # of USER_HZ, the unit of /proc/stat: 100 a second
READ_SECTORS, WRITTEN_SECTORS = 2, 6  # places in a line of /proc/diskstats, after the name
NEVER_LEFT = 0.01
ALL_OF_IT = 0.9
UNKNOWN = "not known: the files are on no block device of this machine"
RULE = (
    f"a phase whose devices moved less than {NEVER_LEFT:.0%} of its bytes never left memory; from {ALL_OF_IT:.0%} on "
    "all of it went to the devices. Devices are read at a phase's first operation and at its last one's end, whoever "
    "used them: what is written back after that is no part of it; where the probe block watched, requests for the "
    "load's own files alone are counted"
)
BLOCK: Final = "block"
# Of the probe's classes those of the load's files: by its folder, and a program's memory, whose file is not told.
_OWN = ("data", "wal", "global", "temp", "other", "direct")


def moved(segment: Segment, readings: Mapping[str, Any], *, is_in_place: bool = False) -> Moved | None:
    """One segment in numbers; None where it left no summary.

    `readings`: `device_counters` and, of a phase, `host_cpu_ticks`, each with `before` and `after`. `is_in_place`: what
    is written was read there just before, and counts once. Bytes, seconds and nanoseconds; what the record does not
    hold is None.
    """
    seconds, totals = seconds_measured(segment), segment.told.get("totals") or {}
    if segment.summary is None or seconds is None:
        return None
    read, written = totals.get("bytes_read"), totals.get("bytes_written")
    # What failed operations moved reached the devices as any, and is no payload.
    ways = [(totals.get(f"bytes_{way}") or 0) - (totals.get(f"bytes_{way}_failed") or 0) for way in ("read", "written")]
    is_known = read is not None or written is not None
    payload = float(max(ways) if is_in_place else sum(ways)) if is_known else None
    user, system = fact(segment, "load_cpu_user_ns"), fact(segment, "load_cpu_system_ns")
    done = done_count(segment)
    if done is not None:
        # The end of a file is in the time, and moves nothing.
        of_ends = ((segment.told.get("facts") or {}).get("closings") or []) if segment.told else []
        done -= sum(int((segment.by_kind.get(kind) or {}).get("done") or 0) for kind in of_ends)
    busy_ns, all_ns = _machine(segment, readings.get("host_cpu_ticks"))
    from_devices, to_devices = _at_devices(segment, readings.get("device_counters"))
    return {
        "seconds": seconds,
        "operations": done,
        "bytes_read": read,
        "bytes_written": written,
        "bytes_per_second": per(payload, seconds),
        "operations_per_second": per(None if done is None else float(done), seconds),
        "system_calls": totals.get("system_calls") or None,
        "cpu_user_share": per(user, seconds * 1e9),
        "cpu_system_share": per(system, seconds * 1e9),
        "cpu_share": None if user is None or system is None else (user + system) / (seconds * 1e9),
        "load_ns_per_mb": None if user is None or system is None or not payload else (user + system) * MB / payload,
        "machine_share": per(busy_ns, all_ns),
        "machine_ns_per_mb": None if busy_ns is None or not payload else busy_ns * MB / payload,
        "device_read_share": per(from_devices, read),
        "device_write_share": per(to_devices, written),
        "cache": what_the_cache_did(read, written, from_devices, to_devices),
    }


def _machine(segment: Segment, ticks: Mapping[str, Any] | None) -> tuple[float | None, float | None]:
    """Time that all CPUs were busy, and all of it: by the series, whose ends are those of the segment; where it has too
    few rows by the readings around it."""
    grew = {name: grown(segment, "host", f"cpu_{name}") for name in _COLUMNS}
    if grew["idle"] is None and ticks and "before" in ticks and "after" in ticks:
        pairs = zip(_COLUMNS, ticks["before"], ticks["after"], strict=False)
        grew = {name: float(after - before) for name, before, after in pairs}
    if grew.get("idle") is None:
        return None, None
    total = sum(value or 0.0 for value in grew.values())
    busy = total - sum(grew.get(name) or 0.0 for name in ("idle", "iowait", "steal"))
    return busy * _TICK_NS, total * _TICK_NS


def _at_devices(segment: Segment, counters: Mapping[str, Any] | None) -> tuple[float | None, float | None]:
    """Bytes read and written there: by the requests for the load's files, or whoever used them.

    The series ends with the segment. The readings around it hold what comes after it, too: a pass that is over has its
    files synced, which would make every write one that went to the device.
    """
    entry = segment.probes.get(BLOCK) or {}
    if entry.get("status") == "on" and not any((entry.get("lost") or {}).values()):
        return _requested(entry, "read"), _requested(entry, "write")
    read, written = (grown_of_devices(segment, column) for column in ("read_sectors", "write_sectors"))
    if read is not None and written is not None:
        return read * SECTOR_BYTES, written * SECTOR_BYTES
    return _sectors(counters, READ_SECTORS), _sectors(counters, WRITTEN_SECTORS)


def _requested(entry: Probe, operation: str) -> float:
    """Bytes of the load's files, of all disks."""
    of_disks: Iterable[Mapping[str, Any]] = (entry.get("request_totals") or {}).values()
    return float(
        sum(((classes.get(name) or {}).get(operation) or {}).get("bytes") or 0 for classes in of_disks for name in _OWN)
    )


def _sectors(readings: Mapping[str, Any] | None, place: int) -> float | None:
    """Bytes of all watched devices between two readings; None where there is no device."""
    before, after = ((readings or {}).get(name) or {} for name in ("before", "after"))
    known = [name for name in after if name in before and len(after[name]) > place]
    return float(sum(after[name][place] - before[name][place] for name in known)) * SECTOR_BYTES if known else None


def what_the_cache_did(
    read: float | None, written: float | None, from_devices: float | None, to_devices: float | None
) -> str:
    """In a few words."""
    if from_devices is None or to_devices is None:
        return UNKNOWN
    said = []
    if read:
        said.append(_one("read", from_devices / read))
    if written:
        said.append(_one("written", to_devices / written))
    return "; ".join(said) or "nothing moved"


def _one(what: str, share: float) -> str:
    if share < NEVER_LEFT:
        return "read from memory: it never left it" if what == "read" else "written to memory: it has not left it yet"
    where = "from" if what == "read" else "to"
    if share >= ALL_OF_IT:
        return f"{what} {where} the device{f', {share:.1f} times over' if share >= 1.1 else ''}"
    return f"{what}: {share:.0%} {where} the device, the rest {'from' if what == 'read' else 'still in'} memory"
