"""System calls by file class and the parts of a sync, as tables in the terms of study S2."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.syscalls import PARTS, call_rates, sync_parts, together
from plimsoll.report.drawing.tables import NONE, number, trials_words

Json = dict[str, Any]
_MIB, _US, _MS = 1 / 2**20, 1e-3, 1e-6
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
    syscalls = verdict.get("syscalls")
    if not syscalls:
        return None
    labels = treatment_labels(verdict)
    return {
        "columns": list(COLUMNS.values()),
        "parts": list(PART_NAMES.values()),
        "calls": [_calls(labels.get(name, name), one) for name, one in syscalls["calls"].items()],
        "syncs": [_syncs(labels.get(name, name), one) for name, one in syscalls["syncs"].items()],
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

    reads, writes = together(of("read", "pread")), together(of("write", "pwrite"))
    return {
        "label": CLASSES.get(name, name),
        "counts": [number(kinds[kind]["count"] if kind in kinds else 0, ",.0f") for kind in COLUMNS],
        "read": number(reads["bytes"], ",.1f", _MIB),
        "written": number(writes["bytes"], ",.1f", _MIB),
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


def _typical_size(calls: Json) -> str:
    return NONE if calls["bucket"] is None else size_of(calls["bucket"])


def _in_order(calls: Json, name: str) -> str:
    return NONE if name in ("elsewhere", "none") else number(calls["sequential_share"], ".1%")


def _call_row(name: str, kind: str, one: Json, transactions: int | None) -> Json:
    found, count = call_rates(one, transactions), number(one["count"], ",.0f")
    margin = found["count_margin"]
    return {
        "class": CLASSES.get(name, name),
        "call": kind,
        "count": count if margin is None else f"{count} ± {number(margin, ',.0f')}",
        "each": number(found["per_transaction"], ",.3g"),
        "errors": number(one["errors"], ",.0f"),
        "total": number(one["ns"], ",.1f", _MS),
        "mean": number(found["ns_mean"], ",.2f", _US),
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
    found, rates = sync_parts(one), call_rates(one, transactions)

    def cell(part: str) -> str:
        known = found["parts"].get(part)
        return NONE if known is None else f"{number(known['ns'], ',.1f', _US)} ({known['share']:.0%})"

    return {
        "label": CLASSES.get(name, name),
        "call": call,
        "count": number(one["count"], ",.0f"),
        "each": number(rates["per_transaction"], ",.3g"),
        "mean": number(rates["ns_mean"], ",.1f", _US),
        "min": number(one["ns_min"], ",.1f", _US),
        "max": number(one["ns_max"], ",.1f", _US),
        "parts": [cell(part) for part in PARTS],
        "closure": number(found["closure"], ".2%"),
        "flushed": number(found["journal_flush_ns"], ",.1f", _US),
        "pages": number(found["pages"], ",.1f"),
    }
