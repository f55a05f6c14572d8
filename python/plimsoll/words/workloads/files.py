"""Loads on files in sentences: what each phase moved, which never left memory, what a mix of operations carried."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.files.document import FileWaits, Operations, OperationTimes, Phase, Phases
from plimsoll.analysis.files.metrics import MB, SEEKS, name_of
from plimsoll.words.part import Sentences

Json = dict[str, Any]
_FROM_MEMORY = "never left"
_TREATMENTS_SHOWN = 2
_KINDS_SHOWN = 3
_LEAST_SHARE = 0.1
# What each part of an operation's time is called; the rest is called as in the record.
PART_NAMES: Final = {
    "lag": "waiting for a session",
    "cpu": "on a CPU",
    "run_queue": "waiting for a CPU",
    "page": "waiting for a page",
    "writeback": "waiting for writeback",
    "throttled": "throttled",
    "journal": "waiting for the journal",
    "lock": "waiting for a lock",
    "device": "waiting for the device",
    "frozen": "file system frozen",
    "socket": "waiting for a socket",
    "pause": "asleep by itself",
    "nfs_read": "waiting for a read by NFS",
    "nfs_write": "waiting for a write by NFS",
    "nfs_commit": "waiting for a commit by NFS",
    "nfs_attributes": "waiting for attributes by NFS",
    "nfs_call": "waiting for another call of NFS",
    "other_wait": "other waits",
    "completion": "waiting for the completion",
}


def phase_lines(verdict: Json) -> list[str]:
    """One line a treatment, a few of them; then which phases never left memory."""
    found: Phases | None = verdict.get("phases")
    if not found:
        return []
    labels, lines = treatment_labels(verdict), []
    for name, mine in list(found["treatments"].items())[:_TREATMENTS_SHOWN]:
        said = [text for phase in found["phases"] if (text := _rate(phase, mine.get(phase)))]
        if said:
            lines.append(f"{labels.get(name, name)}: {', '.join(said)}")
    more = len(found["treatments"]) - _TREATMENTS_SHOWN
    if more > 0 and lines:
        lines[-1] += f" (and {more} more treatments in the table)"
    return [*lines, *_memory_lines(found), *not_verified_lines(verdict)]


def _rate(phase: str, one: Phase | None) -> str:
    rate = one["operations_per_second" if phase == SEEKS else "bytes_per_second"] if one else None
    if not rate:
        return ""
    return f"{rate['value']:,.0f} seeks/s" if phase == SEEKS else f"{name_of(phase)} {rate['value'] / MB:,.0f} MB/s"


def _memory_lines(found: Phases) -> list[str]:
    never = [phase for phase in found["phases"] if _stayed(found, phase)]
    if not never:
        return []
    return [f"Never left memory in any trial: {', '.join(name_of(phase) for phase in never)}"]


def not_verified_lines(verdict: Json) -> list[str]:
    """Which phases read without comparing, and in which treatments where that is not the same in all."""
    found: Phases | None = verdict.get("phases")
    if not found:
        return []
    labels = treatment_labels(verdict)
    not_compared = {
        labels.get(name, name): [name_of(phase) for phase in found["phases"] if not _is_verified(mine.get(phase))]
        for name, mine in found["treatments"].items()
    }
    of_all = list(not_compared.values())
    if not any(of_all):
        return []
    if all(phases == of_all[0] for phases in of_all):
        said = ", ".join(of_all[0])
    else:
        said = "; ".join(f"{label}: {', '.join(phases)}" for label, phases in not_compared.items() if phases)
    return [f"Not verified, for what was read was not compared with what was written: {said}"]


def _is_verified(one: Phase | None) -> bool:
    return one is None or one["is_verified"]


def _stayed(found: Phases, phase: str) -> bool:
    """Whether in every trial what it read came from memory and no more than that is said of it."""
    there = [mine[phase] for mine in found["treatments"].values() if phase in mine]
    said = [row["what"] for one in there for row in one["cache"]]
    return bool(said) and all(_FROM_MEMORY in text and ";" not in text for text in said)


def operation_lines(verdict: Json) -> list[str]:
    """One line a treatment, a few of them."""
    found: Operations | None = verdict.get("operations")
    if not found:
        return []
    labels, lines = treatment_labels(verdict), []
    for name, mine in list(found["treatments"].items())[:_TREATMENTS_SHOWN]:
        rate, moved = mine["operations_per_second"], mine["bytes_per_second"]
        if rate:
            text = f"{labels.get(name, name)}: {rate['value']:,.0f} operations/s"
            lines.append(text + (f", {moved['value'] / MB:,.1f} MB/s" if moved else ""))
    return [f"Files ({found['like']}): {'; '.join(lines)}"] if lines else []


def wait_lines(verdict: Json) -> list[str]:
    """What most of an operation's time went into, one line a treatment, a few of them."""
    found: FileWaits | None = verdict.get("file_waits")
    if not found:
        return []
    labels = treatment_labels(verdict)
    lines = []
    for name, mine in list(found["treatments"].items())[:_TREATMENTS_SHOWN]:
        said = [text for one in mine["operations"][:_KINDS_SHOWN] if (text := _most_of(one))]
        if said:
            lines.append(f"{labels.get(name, name)}: {'; '.join(said)}")
    return [f"Of an operation's time: {' | '.join(lines)}"] if lines else []


def _most_of(one: OperationTimes) -> str:
    """The parts that make at least a tenth of the mean, the largest first."""
    whole = one["latency_ns"]
    if not whole or not whole["value"]:
        return ""
    shares = sorted(((mean["value"] / whole["value"], name) for name, mean in one["parts_ns"].items()), reverse=True)
    shown = [f"{share:.0%} {PART_NAMES.get(name, name)}" for share, name in shares if share >= _LEAST_SHARE]
    return f"{one['kind']} {', '.join(shown)}" if shown else ""


PHASES = Sentences("phases", adds=phase_lines, section="phases")
OPERATIONS = Sentences("operations", adds=operation_lines, section="operations")
WAITS = Sentences("file_waits", adds=wait_lines, section="file_waits")
