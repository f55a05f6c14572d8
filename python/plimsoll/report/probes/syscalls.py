"""System calls by file class and the parts of a sync, as tables in the terms of study S2."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.syscalls import PARTS, typical
from plimsoll.report.drawing.tables import NONE, number, trials_words

Json = dict[str, Any]
_MIB, _US, _MS = 1 / 2**20, 1e-3, 1e-6
# Of a normal distribution: 95 % of it lies within so many standard errors. A segment has some tens of slices at least.
_NORMAL_95 = 1.96
CLASSES = {
    "data": "data (base)",
    "wal": "WAL",
    "global": "global",
    "temp": "temporary",
    "other": "other files of the server",
    "elsewhere": "files elsewhere",
    "none": "no file (sockets, pipes)",
}
COLUMNS = {
    "open": "opens",
    "read": "reads",
    "pread": "positioned<br>reads",
    "write": "writes",
    "pwrite": "positioned<br>writes",
    "lseek": "seeks",
    "close": "closes",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
}
PART_NAMES = {
    "writeback": "pages already<br>under writeback",
    "writing": "writing<br>dirty pages",
    "write_io": "waiting for<br>their I/O",
    "journal": "journal<br>commit",
    "metadata": "own<br>metadata",
    "flush": "device<br>flush",
    "run_queue": "run<br>queue",
    "cpu": "other<br>CPU",
    "other_wait": "other<br>wait",
}


def system_calls_part(verdict: Json) -> Json | None:
    """What the template draws; None where neither probe was asked for."""
    found = verdict.get("syscalls")
    if not found:
        return None
    labels = treatment_labels(verdict)
    return {
        "columns": list(COLUMNS.values()),
        "parts": list(PART_NAMES.values()),
        "calls": [_calls(labels.get(name, name), one) for name, one in found["calls"].items()],
        "syncs": [_syncs(labels.get(name, name), one) for name, one in found["syncs"].items()],
    }


def _head(label: str, one: Json) -> Json:
    lost = ", ".join(f"{count:,} {what}" for what, count in one["lost"].items())
    return {
        "label": label,
        "of": f"{trials_words(one['trials'])}, {number(one['transactions'], ',.0f')} transactions",
        "lost": f"Lower bounds: the probe lost events ({lost})." if lost else "",
    }


def _calls(label: str, one: Json) -> Json:
    return {
        **_head(label, one),
        "rows": [_class_row(name, kinds) for name, kinds in one["classes"].items()],
        "details": [
            _call_row(name, kind, kinds[kind], one["transactions"])
            for name, kinds in one["classes"].items()
            for kind in one["order"]
            if kind in kinds
        ],
        "others": [_call_row("", name, calls, one["transactions"]) for name, calls in one["others"].items()],
        "others_left_out": number(one["others_left_out"], ",.0f") if one["others_left_out"] else "",
        "calls_note": _calls_note(one),
        "others_note": _others_note(one),
    }


def _slices(share: float) -> str:
    return f"slices of 100 ms, {number(100 * share, '.3g')} % of the time, which stand for all of it"


def _calls_note(one: Json) -> str:
    if one.get("calls_share") is None:
        return ""
    return f"Estimates: counted in {_slices(one['calls_share'])}. The table of every call has their 95 % intervals."


def _others_note(one: Json) -> str:
    if one.get("others_share") is None:
        return ""
    return (
        f"All others are estimates: they were counted in {_slices(one['others_share'])}; "
        "their times are of calls that began and ended within one."
    )


def _class_row(name: str, kinds: Json) -> Json:
    def of(*wanted: str) -> list[Json]:
        return [kinds[kind] for kind in wanted if kind in kinds]

    reads, writes = of("read", "pread"), of("write", "pwrite")
    return {
        "label": CLASSES.get(name, name),
        "counts": [number(kinds[kind]["count"] if kind in kinds else 0, ",.0f") for kind in COLUMNS],
        "read": number(sum(one["returned_bytes"] for one in reads), ",.1f", _MIB),
        "written": number(sum(one["returned_bytes"] for one in writes), ",.1f", _MIB),
        "read_size": _typical_size(reads),
        "write_size": _typical_size(writes),
        "read_order": _in_order(reads, name),
        "write_order": _in_order(writes, name),
    }


def size_of(bucket: int) -> str:
    """The sizes that a bucket holds: none, or from a power of two to the next."""
    if bucket == 0:
        return "0"
    least = 1 << (bucket - 1)
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if least >= unit:
            return f"{least // unit} {name}"
    return f"{least} B"


def _typical_size(calls: list[Json]) -> str:
    histogram: list[int] = []
    for one in calls:
        longer, shorter = sorted((histogram, one["bytes_log2"]), key=len, reverse=True)
        histogram = [count + (shorter[at] if at < len(shorter) else 0) for at, count in enumerate(longer)]
    bucket = typical(histogram)
    return NONE if bucket is None else size_of(bucket)


def _in_order(calls: list[Json], name: str) -> str:
    count = sum(one["count"] for one in calls)
    if not count or name in ("elsewhere", "none"):
        return NONE
    return f"{sum(one['sequential'] for one in calls) / count:.1%}"


def _per(count: int, transactions: int | None) -> str:
    return NONE if not transactions else f"{count / transactions:,.3g}"


def _estimate(one: Json) -> str:
    count = number(one["count"], ",.0f")
    return f"{count} ± {number(_NORMAL_95 * one['count_se'], ',.0f')}" if "count_se" in one else count


def _call_row(name: str, kind: str, one: Json, transactions: int | None) -> Json:
    return {
        "class": CLASSES.get(name, name),
        "call": kind,
        "count": _estimate(one),
        "each": _per(one["count"], transactions),
        "errors": number(one["errors"], ",.0f"),
        "total": number(one["ns"], ",.1f", _MS),
        "mean": number(one["ns"] / one["count"] if one["count"] else None, ",.2f", _US),
    }


def _syncs(label: str, one: Json) -> Json:
    absent = ", ".join(one["absent"])
    why = next(iter(one["absent"].values()), "")
    return {
        **_head(label, one),
        "rows": [
            _sync_row(name, call, found, one["transactions"])
            for name, calls in one["classes"].items()
            for call, found in calls.items()
        ],
        "absent": f"Not measured: {absent}: {why}." if absent else "",
        "file_systems": ", ".join(one["file_systems"]),
        "open": number(one["open_ns_max"], ",.0f"),
    }


def _sync_row(name: str, call: str, one: Json, transactions: int | None) -> Json:
    count, whole = one["count"], one["ns"]
    parts = one["parts_ns"]

    def cell(part: str) -> str:
        if part not in parts:
            return NONE
        share = parts[part] / whole if whole else 0.0
        return f"{parts[part] / count * _US:,.1f} ({share:.0%})"

    flushed = one.get("journal_flush_ns")
    return {
        "label": CLASSES.get(name, name),
        "call": call,
        "count": number(count, ",.0f"),
        "each": _per(count, transactions),
        "mean": number(whole / count, ",.1f", _US),
        "min": number(one["ns_min"], ",.1f", _US),
        "max": number(one["ns_max"], ",.1f", _US),
        "parts": [cell(part) for part in PARTS],
        "closure": f"{sum(parts.values()) / whole:.2%}" if whole else NONE,
        "flushed": number(flushed / count if flushed is not None else None, ",.1f", _US),
        "pages": number(one["pages"] / count if one.get("pages") is not None else None, ",.1f"),
    }
