"""Where a sync of the log spends its time, in a sentence a treatment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.places.document import Cells
from plimsoll.analysis.probes.document import Syncs, SystemCalls
from plimsoll.words.part import Sentences

Json = dict[str, Any]
PLAIN = {
    "writeback": "waiting for pages already under writeback",
    "writing": "writing dirty pages",
    "write_io": "waiting for their I/O",
    "journal": "the journal's commit",
    "metadata": "its own metadata",
    "flush": "the device's flush",
    "commit": "the commit by NFS",
    "run_queue": "ready to run, and no CPU free",
    "cpu": "on a CPU",
    "other_wait": "other waits",
}
LOG = "wal"
LOAD = ("workload.scale", "workload.clients", "measure.transactions_per_client")
NAMED_MAX = 4
SHARE_MIN, CLOSED = 0.05, 0.05


def _duration(ns: float) -> str:
    return f"{ns * 1e-6:,.2f} ms" if ns >= 1e5 else f"{ns * 1e-3:,.1f} µs"


def lines(verdict: Json, labels: Mapping[str, str]) -> list[str]:
    """One for each treatment (by its label) whose log was synced; none where that was not asked for."""
    syscalls: SystemCalls | None = verdict.get("syscalls")
    said = (_line(labels.get(name, name), one) for name, one in (syscalls["syncs"] if syscalls else {}).items())
    return [line for line in said if line]


def _line(label: str, one: Syncs) -> str | None:
    calls = one["classes"].get(LOG) or {}
    call = max(calls, key=lambda name: calls[name]["count"], default=None)
    if call is None or not calls[call]["count"]:
        return None
    count, whole, parts = calls[call]["count"], calls[call]["ns"], calls[call]["parts_ns"]
    if not whole:
        return None
    named = sorted((part for part in parts if parts[part] >= SHARE_MIN * whole), key=lambda part: -parts[part])
    of_which = ", ".join(f"{_duration(parts[part] / count)} {PLAIN.get(part, part)}" for part in named)
    closed = sum(parts.values()) / whole
    untold = f"; not measured on {', '.join(one['file_systems'])}: {', '.join(one['absent'])}" if one["absent"] else ""
    wrong = "" if abs(closed - 1) <= CLOSED else ", which leaves part of them unexplained"
    return (
        f"{label}: an {call} of the WAL takes {_duration(whole / count)} ({count:,} calls), of which {of_which}; "
        f"the parts sum to {closed:.1%} of the calls{wrong}{untold}"
    )


def _leads(verdict: Json) -> list[str]:
    return lines(verdict, treatment_labels(verdict))


def _explains(verdict: Json) -> list[str]:
    """Of layouts, which lead: what a sync of the log took in each under its first load, and the dearest by parts."""
    syscalls: SystemCalls | None = verdict.get("syscalls")
    storage: Cells | None = verdict.get("storage")
    if not storage or not syscalls:
        return []
    first = storage["cells"][0]
    of_cell = {cell["treatments"][0]: cell["cell"] for cell in storage["cells"]
               if cell["scale"] == first["scale"] and cell.get("treatments")}  # fmt: skip
    syncs = {name: syscalls["syncs"][name] for name in of_cell if name in syscalls["syncs"]}
    took = {name: mean for name, one in syncs.items() if (mean := _mean(one))}
    if not took:
        return []
    dearest = max(took, key=lambda name: took[name])
    each = [f"{_duration(took[name])} ({of_cell[name]})" for name in took]
    more = f", and {len(each) - NAMED_MAX} more" if len(each) > NAMED_MAX else ""
    line = _line(of_cell[dearest], syncs[dearest]) if len(took) > 1 else None
    load = _load_words(verdict["treatments"][dearest]["levels"])
    return [f"{load}a sync of the WAL takes {', '.join(each[:NAMED_MAX])}{more}", *([line] if line else [])]


def _load_words(levels: Mapping[str, str]) -> str:
    """Such as "with clients 4, transactions per client 500 "; empty where none varies."""
    named = [f"{path.rpartition('.')[2].replace('_', ' ')} {levels[path]}" for path in LOAD if path in levels]
    return f"with {', '.join(named)} " if named else ""


def _mean(one: Syncs) -> float | None:
    """Nanoseconds of the call that syncs the log most often."""
    calls = one["classes"].get(LOG) or {}
    most = max(calls.values(), key=lambda call: call["count"], default=None)
    return most["ns"] / most["count"] if most and most["count"] and most["ns"] else None


SENTENCES = Sentences("syscalls", leads=_leads, explains=_explains, section="system-calls")
