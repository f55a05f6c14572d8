"""What the kernel's log told during the measured segments, and what of its own memory grows and never falls.

The fact that constrains it: the kernel is one for all trials of a boot, so its memory is looked at over the whole
run, and what other programs of the machine make it hold is in it. Only what grows is kept, and what was too short
to tell is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from plimsoll.analysis.kernel.document import KernelOfRun, ToldEvent
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.soak.growth import GROWS, SETTLES, Watched, judge_growth
from plimsoll.record import Segment, Trial

KEY: Final = "kernel"
LOG: Final = "kernel_log"
WARM_UP: Final = "warmup"
EVENTS_MAX: Final = 200
_KIB, _MIB = 1024, 2**20
# Series, column, what it is called, its unit, what one of it is in that unit, and the rise below which nobody looks.
_WATCHED: Final = (
    ("kernel_memory", "s_unreclaim_kib", "slab that cannot be reclaimed", "bytes", _KIB, _MIB),
    ("kernel_memory", "kernel_stack_kib", "kernel stacks", "bytes", _KIB, _MIB),
    ("kernel_memory", "page_tables_kib", "page tables", "bytes", _KIB, _MIB),
    ("kernel_memory", "percpu_kib", "per-CPU memory", "bytes", _KIB, _MIB),
    ("kernel_memory", "vmalloc_used_kib", "vmalloc", "bytes", _KIB, _MIB),
    ("kernel_memory", "files_open", "open files", "files", 1, 50),
    ("host", "shmem_kib", "shared memory and tmpfs", "bytes", _KIB, 16 * _MIB),
)


def events_of(trial: int, segment: Segment) -> Iterator[tuple[ToldEvent, int]]:
    """The events of one segment, with their times, and their numbers in the log."""
    table, offset = segment.series(LOG), segment.told.get("epoch_minus_monotonic_ns")
    begin = None if table is None else int(table["t_ns"][0])
    for event in segment.probes.get(LOG, {}).get("events") or []:
        at = int(event["t_ns"])
        told: ToldEvent = {
            "trial": trial,
            "segment": segment.name,
            "what": event["class"],
            "seconds": None if begin is None else (at - begin) / 1e9,
            "epoch_ns": None if offset is None else at + int(offset),
            "by": event["by"],
            "text": event["text"],
        }
        yield told, int(event["sequence"])


def growing(segments: list[Segment]) -> dict[str, Watched]:
    """What may grow, over all segments, in their order."""
    found: dict[str, tuple[list[float], list[float], str, float]] = {}
    for segment in segments:
        for series, column, name, unit, times, least in _WATCHED:
            table, values = segment.series(series), segment.column(series, column)
            if table is not None and values is not None:
                _add(found, name, unit, least, table["t_ns"] / 1e9, values * times)
        table, names = segment.series("slabs"), segment.probes.get("slabs", {}).get("slabs") or []
        for place, name in enumerate(names if table is not None else []):
            assert table is not None
            rows = table[table["slab"] == place]
            if len(rows):
                _add(found, f"slab {name}", "bytes", _MIB, rows["t_ns"] / 1e9, rows["bytes"].astype(float))
    return {name: Watched(times, values, unit, least) for name, (times, values, unit, least) in found.items()}


def _add(found: dict[str, Any], name: str, unit: str, least: float, times: np.ndarray, values: np.ndarray) -> None:
    all_times, all_values, *_ = found.setdefault(name, ([], [], unit, least))
    all_times += times.tolist()
    all_values += values.tolist()


def kernel_of(trials: list[Trial]) -> KernelOfRun | None:
    """Of the measured segments, in the order in which they ran; None where none watched the kernel."""
    measured = [(trial, segment) for trial in trials for segment in trial.every_segment if segment.name != WARM_UP]
    watched = [(trial, segment) for trial, segment in measured if LOG in segment.probes]
    if not watched:
        return None
    lost: dict[str, int] = {}
    events: list[ToldEvent] = []
    refused: list[str] = []
    seen: set[Any] = set()
    for trial, segment in watched:
        told = segment.probes[LOG]
        if told.get("reason"):
            refused.append(str(told["reason"]))
        for name, count in (told.get("lost") or {}).items():
            lost[name] = lost.get(name, 0) + int(count)
        for event, sequence in events_of(trial.number, segment):
            known = (told.get("boot_id"), sequence)
            if known not in seen:
                seen.add(known)
                events.append(event)
    counts = _counted([segment.probes[LOG] for _, segment in watched])
    lost["events"] = lost.get("events", 0) + max(0, len(events) - EVENTS_MAX)
    judged = judge_growth(growing(_of_last_boot([segment for _, segment in watched])))
    return {
        "trials": list(dict.fromkeys(trial.number for trial, _ in watched)),
        "counts": counts,
        "events": events[:EVENTS_MAX],
        "lost": lost,
        "refused": list(dict.fromkeys(refused)),
        "growth": [one for one in judged if one["verdict"] in (GROWS, SETTLES)],
    }


def _counted(logs: list[Any]) -> dict[str, int]:
    """Records by class. Segments of servers that are up at once have read the same log, which counts once.

    Of those the records that were kept are told apart by their numbers; of what was not, the most that one of them has
    counted is the least that there were.
    """
    total: Counter[str] = Counter()
    together: list[Any] = []
    upto: Any = None
    for told in sorted(logs, key=lambda one: (str(one.get("boot_id")), one.get("before") or 0)):
        begin, end = ((str(told.get("boot_id")), told.get(name) or 0) for name in ("before", "last"))
        if together and begin >= upto:
            total += _at_least(together)
            together = []
        upto = max(upto, end) if together else end
        together.append(told)
    return dict(total + _at_least(together))


def _at_least(logs: list[Any]) -> Counter[str]:
    kept = {event["sequence"]: event["class"] for told in logs for event in told.get("events") or []}
    most = Counter(kept.values())
    for told in logs:
        most |= Counter(told.get("counts") or {})
    return most


def _of_last_boot(segments: list[Segment]) -> list[Segment]:
    """A boot begins the clock and the kernel's memory anew."""
    last = segments[-1].probes[LOG].get("boot_id")
    return [segment for segment in segments if segment.probes[LOG].get("boot_id") == last]


def _judge(context: Context) -> KernelOfRun | None:
    return kernel_of(list(context.run.trials))


PART = Part(KEY, judge=_judge)
