"""System calls that changed between two treatments or runs: number and time a transaction, by kind and file class.

From the totals of the probe `syscalls`. A process that has nothing to do, or waits for a heavyweight lock, sits in
epoll_wait or its like, and the call's time is that of the wait: such calls are counted, and in no time.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from plimsoll.analysis.breakdown.changes import Amounts, Key, common_blocks, whole_of
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.analysis.runs.changes_many import ranked
from plimsoll.analysis.runs.document import CallsChange, RankedWhole
from plimsoll.analysis.trial.readings import done_count
from plimsoll.record import Trial
from plimsoll.record.summary import Probe

Json = dict[str, Any]
NAME = "syscalls"
IDLE = {
    *("epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "pause", "wait4", "waitid"),
    *("nanosleep", "clock_nanosleep", "rt_sigsuspend", "rt_sigtimedwait"),
}


class _OfBlock(TypedDict):
    """Calls a transaction, by kind and class."""

    time: dict[Key, float]
    count: dict[Key, float]
    lost: bool


def of_calls(
    first: Mapping[int, Trial], second: Mapping[int, Trial], is_paired: bool, spread: float | None = None
) -> CallsChange | None:
    """From the trials of each side by block; None where a side has none with the probe. `lost`: its figures are lower
    bounds. The ratio by which equal trials differ is one of times: it bears on the time and not on the count.
    """
    sides = common_blocks([_amounts(trials) for trials in (first, second)], is_paired)
    if not all(sides):
        return None
    time = [{block: amounts["time"] for block, amounts in side.items()} for side in sides]
    count = [{block: amounts["count"] for block, amounts in side.items()} for side in sides]
    return {
        "lost": any(one["lost"] for side in sides for one in side.values()),
        "time": _whole(time[0], time[1], is_paired, spread),
        "count": _whole(count[0], count[1], is_paired, None),
    }


def _whole(first: Amounts, second: Amounts, is_paired: bool, spread: float | None) -> RankedWhole:
    whole = whole_of([_sums(first), _sums(second)], is_paired, spread)
    return {**whole, **ranked(first, second, whole, is_paired)}


def _sums(amounts: Amounts) -> dict[int, float]:
    return {block: sum(one.values()) for block, one in amounts.items()}


def _amounts(trials: Mapping[int, Trial]) -> dict[int, _OfBlock]:
    """By block."""
    found: dict[int, _OfBlock] = {}
    for block, trial in trials.items():
        entry, done = probe(trial.measure, NAME), done_count(trial.measure)
        if entry is not None and entry.get("status") == "on" and done:
            calls = _calls(entry)
            found[block] = {
                "time": {key: int(one["ns"]) / done for key, one in calls.items() if key[0] not in IDLE},
                "count": {key: int(one["count"]) / done for key, one in calls.items()},
                "lost": bool(lost_events(entry)),
            }
    return found


def _calls(entry: Probe) -> dict[Key, Json]:
    by_class = entry.get("call_totals") or {}
    found = {(str(kind), str(name)): one for name, kinds in by_class.items() for kind, one in kinds.items()}
    return found | {(str(name), ""): one for name, one in (entry.get("other_calls") or {}).items()}
