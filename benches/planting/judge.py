"""Whether a soak has told of each fault that was planted, by its verdict alone; and whether one without any is calm.

The constraint: it is told what was planted and what the soak says, and looks at neither the machine nor the record, so
that known cases show that it finds what is missing (tests/unit/benches). What was told belongs to one fault: two
faults are never both answered by one interruption, crash or record of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from planting.journal import Fault
from planting.plan import AGENT, BACKEND, FRONT, LEAK, LOAD, SERVER, WARNING
from plimsoll.analysis.soak.growth import GROWS
from plimsoll.words.kernel.sentences import event_words, growth_words
from plimsoll.words.soak import sentences

Json = dict[str, Any]
NS: Final = 10**9
# A clock of the server's log, or of the kernel's, against that of whoever planted; a backend dies when it next runs.
LATE_S_MAX: Final = 30.0
TMPFS: Final = "shared memory and tmpfs"


@dataclass(frozen=True)
class Row:
    """One fault of the table. `told_ns`, `told_as`: None where the soak does not say."""

    fault: Fault
    told_ns: int | None = None
    told_as: str | None = None

    @property
    def is_told(self) -> bool:
        return self.told_ns is not None


def judged(faults: Sequence[Fault], verdict: Json) -> list[Row]:
    """A row for each fault, in the order in which they were planted."""
    used: set[tuple[str, int]] = set()
    return [FINDERS[fault.what](fault, verdict, used) for fault in faults]


def alarms(verdict: Json) -> list[str]:
    """What a soak without faults must not say; empty where it is calm and bounds its drift."""
    found = sentences.soak_of(verdict)
    if found is None:
        return ["it is no soak, or was not judged"]
    drift = found["drift"]
    said = [] if drift["verdict"].startswith("no drift larger than") else [sentences.drift_words(found)]
    said += [sentences.step_words(one, found) for one in drift["steps"]]
    said += [sentences.inside_words(one, found) for one in found["inside"] if not one["by_machine"]]
    said += [f"crash: {sentences.crash_words(one)}" for one in found["crashes"]]
    said += [f"interrupted: {sentences.interruption_words(one)}" for one in found["interruptions"]]
    said += [f"the disk of the record was full at {sentences.when(one['epoch_ns'])}" for one in found["full"]]
    said += [sentences.disk_words(one) for one in found["disks"]]
    kernel = verdict.get("kernel")
    if kernel is None:
        return [*said, "the kernel was not watched"]
    said += [event_words(one) for one in kernel["events"]]
    said += [f"the kernel's log was not read: {reason}" for reason in kernel["refused"]]
    grows = [one for one in [*found["growth"], *kernel["growth"]] if one["verdict"] == GROWS]
    return said + [f"grows: {growth_words(one)}" for one in grows]


# --- one kind of fault each -------------------------------------------------------------------------------------------


def _cut(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    """A part that was killed ends the attempt at a round that was under way, which tells when it had begun and why."""
    named = {FRONT: "the run was killed", AGENT: "the agent's"}[fault.what]
    for place, one in enumerate(verdict["soak"]["interruptions"]):
        began = one["began_epoch_ns"]
        is_it = (one["round"], one["attempt"]) == (fault.round, fault.attempt) and named in one["why"]
        if is_it and began is not None and began <= fault.epoch_ns and _is_new(used, "cut", place):
            return Row(fault, began, f"interrupted: {sentences.interruption_words(one)}")
    return Row(fault)


def _backend(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    """A crash in the server's own words, which name the process."""
    words = f"(PID {fault.pid}) was terminated by signal 9"
    return _crashed(fault, verdict, used, lambda one: words in one["text"])


def _server(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    """A server that is gone says nothing: the soak says it, and in which round."""
    words = f"the server ended in {fault.round}"
    return _crashed(fault, verdict, used, lambda one: words in one["text"])


def _crashed(fault: Fault, verdict: Json, used: set[tuple[str, int]], is_it: Callable[[Any], bool]) -> Row:
    for place, one in enumerate(verdict["soak"]["crashes"]):
        if is_it(one) and _is_near(fault, one["epoch_ns"]) and _is_new(used, "crash", place):
            return Row(fault, one["epoch_ns"], f"crash: {sentences.crash_words(one)}")
    return Row(fault)


def _warning(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    for place, one in enumerate((verdict.get("kernel") or {}).get("events") or []):
        if one["text"] == fault.text and _is_near(fault, one["epoch_ns"]) and _is_new(used, "event", place):
            return Row(fault, one["epoch_ns"], event_words(one))
    return Row(fault)


def _load(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    """Throughput that fell, and the first round that was told to be lower than the first for good."""
    del used
    found = verdict["soak"]
    drift = found["drift"]
    if drift["verdict"] != "lower":
        return Row(fault)
    began = {one["round"]: one["began_epoch_ns"] for one in found["each"]}
    lower: list[int] = []  # of the last rounds those that are lower, without a gap
    for one in reversed(drift["rounds"]):
        if one["change"] is None:
            continue
        if one["change"]["high"] >= 0:
            break
        lower.insert(0, one["round"])
    a_round = drift["a_round"]
    each = "" if a_round is None else f"; a round {sentences.share_words(a_round)}"
    told = next((began[number] for number in lower if (began[number] or 0) >= fault.epoch_ns), None)
    return Row(fault, told, f"{sentences.drift_words(found)}{each}") if told is not None else Row(fault)


def _leak(fault: Fault, verdict: Json, used: set[tuple[str, int]]) -> Row:
    """What grows and never falls; it is told over the hours of the soak, and so with their begin."""
    del used
    grown = [one for one in (verdict.get("kernel") or {}).get("growth") or [] if one["name"] == TMPFS]
    first = next((one["began_epoch_ns"] for one in verdict["soak"]["each"] if one["began_epoch_ns"]), None)
    for one in grown:
        if one["verdict"] == GROWS and first is not None:
            floors = one["floors"]
            kept = _never_given_back([at["value"] for at in floors])
            tenth = kept[0] + (kept[-1] - kept[0]) / 10
            risen = next(at["t_s"] for at, least in zip(floors, kept, strict=True) if least >= tenth)
            return Row(fault, first + round((risen - floors[0]["t_s"]) * NS), f"grows: {growth_words(one)}")
    return Row(fault)


def _never_given_back(floors: Sequence[float]) -> list[float]:
    """The lowest from each floor on: others that hold memory for a while and give it back do not raise it."""
    return list(accumulate(reversed(floors), min))[::-1]


FINDERS: Final[dict[str, Callable[[Fault, Json, set[tuple[str, int]]], Row]]] = {
    FRONT: _cut,
    AGENT: _cut,
    BACKEND: _backend,
    SERVER: _server,
    WARNING: _warning,
    LOAD: _load,
    LEAK: _leak,
}


def _is_new(used: set[tuple[str, int]], what: str, place: int) -> bool:
    if (what, place) in used:
        return False
    used.add((what, place))
    return True


def _is_near(fault: Fault, told_ns: int | None) -> bool:
    return told_ns is not None and abs(told_ns - fault.epoch_ns) <= LATE_S_MAX * NS
