"""System calls by file class and the parts of a sync, as tables in the terms of study S2."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metrics import unit_of_work
from plimsoll.analysis.probes.document import Call, Calls, Summed, Sync, Syncs, SystemCalls, Timed
from plimsoll.analysis.probes.syscalls import PARTS, Together, call_rates, sync_parts, together
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
    "commit": "NFS<br>commit",
    "run_queue": "run<br>queue",
    "cpu": "other<br>CPU",
    "other_wait": "other<br>wait",
}


def system_calls_part(verdict: Json) -> Json | None:
    """What the template draws; None where neither probe was asked for."""
    syscalls: SystemCalls | None = verdict.get("syscalls")
    if not syscalls:
        return None
    labels, unit = treatment_labels(verdict), unit_of_work(verdict)
    return {
        "columns": list(COLUMNS.values()),
        "parts": list(PART_NAMES.values()),
        "calls": [_calls(labels.get(name, name), unit, sums) for name, sums in syscalls["calls"].items()],
        "syncs": [_syncs(labels.get(name, name), unit, sums) for name, sums in syscalls["syncs"].items()],
    }


def _head(label: str, unit: str, sums: Summed) -> Json:
    lost = ", ".join(f"{count:,} {what}" for what, count in sums["lost"].items())
    return {
        "label": label,
        "of": f"{trials_words(sums['trials'])}, {number(sums['transactions'], ',.0f')} {unit}s",
        "lost": f"Lower bounds: the probe lost events ({lost})." if lost else "",
    }


def _calls(label: str, unit: str, sums: Calls) -> Json:
    return {
        **_head(label, unit, sums),
        "rows": [_class_row(name, kinds) for name, kinds in sums["classes"].items()],
        "details": [
            _call_row(name, kind, kinds[kind], sums["transactions"])
            for name, kinds in sums["classes"].items()
            for kind in sums["order"]
            if kind in kinds
        ],
        "others": [_call_row("", name, calls, sums["transactions"]) for name, calls in sums["others"].items()],
        "others_left_out": number(sums["others_left_out"], ",.0f") if sums["others_left_out"] else "",
        "calls_note": _calls_note(sums),
        "others_note": _others_note(sums),
    }


def _slices(share: float) -> str:
    return f"slices of 100 ms, {number(100 * share, '.3g')} % of the time, which stand for all of it"


def _calls_note(sums: Calls) -> str:
    share = sums.get("calls_share")
    if share is None:
        return ""
    return f"Estimates: counted in {_slices(share)}. The table of every call has their 95 % intervals."


def _others_note(sums: Calls) -> str:
    share = sums.get("others_share")
    if share is None:
        return ""
    return (
        f"All others are estimates: they were counted in {_slices(share)}; "
        "their times are of calls that began and ended within one."
    )


def _class_row(name: str, kinds: dict[str, Call]) -> Json:
    def of(*wanted: str) -> list[Call]:
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


def _typical_size(calls: Together) -> str:
    return NONE if calls["bucket"] is None else size_of(calls["bucket"])


def _in_order(calls: Together, name: str) -> str:
    return NONE if name in ("elsewhere", "none") else number(calls["sequential_share"], ".1%")


def _call_row(name: str, kind: str, sums: Timed, transactions: int | None) -> Json:
    rates, count = call_rates(sums, transactions), number(sums["count"], ",.0f")
    margin = rates["count_margin"]
    return {
        "class": CLASSES.get(name, name),
        "call": kind,
        "count": count if margin is None else f"{count} ± {number(margin, ',.0f')}",
        "each": number(rates["per_transaction"], ",.3g"),
        "errors": number(sums["errors"], ",.0f"),
        "total": number(sums["ns"], ",.1f", _MS),
        "mean": number(rates["ns_mean"], ",.2f", _US),
    }


def _syncs(label: str, unit: str, sums: Syncs) -> Json:
    absent = ", ".join(sums["absent"])
    why = next(iter(sums["absent"].values()), "")
    return {
        **_head(label, unit, sums),
        "rows": [
            _sync_row(name, call, of_call, sums["transactions"])
            for name, calls in sums["classes"].items()
            for call, of_call in calls.items()
        ],
        "absent": f"Not measured: {absent}: {why}." if absent else "",
        "file_systems": ", ".join(sums["file_systems"]),
        "open": number(sums["open_ns_max"], ",.0f"),
    }


def _sync_row(name: str, call: str, sums: Sync, transactions: int | None) -> Json:
    whole, rates = sync_parts(sums), call_rates(sums, transactions)

    def cell(part: str) -> str:
        known = whole["parts"].get(part)
        return NONE if known is None else f"{number(known['ns'], ',.1f', _US)} ({known['share']:.0%})"

    return {
        "label": CLASSES.get(name, name),
        "call": call,
        "count": number(sums["count"], ",.0f"),
        "each": number(rates["per_transaction"], ",.3g"),
        "mean": number(rates["ns_mean"], ",.1f", _US),
        "min": number(sums["ns_min"], ",.1f", _US),
        "max": number(sums["ns_max"], ",.1f", _US),
        "parts": [cell(part) for part in PARTS],
        "closure": number(whole["closure"], ".2%"),
        "flushed": number(whole["journal_flush_ns"], ",.1f", _US),
        "pages": number(whole["pages"], ",.1f"),
    }
