"""A window of a trial as a Perfetto trace: a track a backend, a slice a transaction, arrows for group commit, counters.

The fact that constrains it: of a transaction's waits the record has sums by kind and not when they were. They are the
arguments of its slice, and no slices of their own. An arrow needs the waker's transaction, which is known where only
one of its transactions comes into question.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.breakdown import join as breakdown_join
from plimsoll.analysis.breakdown import sampling as breakdown_sampling
from plimsoll.analysis.breakdown.parts import BUCKETS, CPU, RUN_QUEUE
from plimsoll.analysis.breakdown.waits import GROUP_COMMIT, roles, wait_name
from plimsoll.export import ExportError
from plimsoll.export.counters import write_counters
from plimsoll.export.trace import Argument, Trace
from plimsoll.record import Run, Segment, Trial
from plimsoll.record.summary import Probe, Summary

Json = dict[str, Any]
SECONDS = 60.0
_NO_TRANSACTIONS = np.dtype(
    [
        *(("index", "<u8"), ("planned_ns", "<i8"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("backend_pid", "<u4")),
        *(("kind", "u1"), ("outcome", "u1")),
    ]
)
_OUTCOMES = ("", " (failed)", " (skipped)", " (lost)")


@dataclass(frozen=True)
class Arrows:
    """Who woke whom, by place of the rows: `out_of` and `into` have the arrows of each; `not_drawn` by why."""

    out_of: dict[int, list[int]]
    into: dict[int, list[int]]
    not_drawn: dict[str, int]

    @property
    def drawn(self) -> int:
        return len(self.into) and sum(map(len, self.into.values()))


def write_trace(run: Run, trial: Trial, window: tuple[float, float], out: Path) -> Json:
    """Writes the transactions that begin within so many seconds of the measured segment; returns what was written."""
    segment = trial.measure
    summary = segment.told
    probed = (summary.get("probes") or {}).get("breakdown") or {}
    if segment.breakdown is None or segment.breakdown_waits is None or probed.get("status") != "on":
        why = probed.get("reason") or "its backends were not watched (probes.breakdown)"
        raise ExportError(f"trial {trial.number} of {run.path.name} has no breakdown: {why}")
    begin = int(summary.get("started_ns") or segment.breakdown["arrived_ns"].min(initial=0))
    until = begin + int((window[0] + window[1]) * 1e9)
    # The end is the trial's where that comes first; a record that was cut short does not tell it.
    span = (begin + int(window[0] * 1e9), min(until, int(summary.get("ended_ns") or until)))
    buckets = [str(name) for name in probed.get("buckets") or BUCKETS]
    joined = _joined(segment, span, probed)
    wrong = breakdown_join.faults(joined, buckets)
    if wrong:
        raise ExportError(f"trial {trial.number} of {run.path.name} counts time twice: {', '.join(wrong)}")
    if not len(joined.rows):
        raise ExportError(f"no transaction of trial {trial.number} begins there; it lasted {_lasted(summary)}")
    arrows = arrows_of(joined, buckets, probed)
    with out.open("wb") as file, Trace(file, span[0], int(summary.get("epoch_minus_monotonic_ns") or 0)) as trace:
        label = (run.plan.get("treatments") or {}).get(trial.treatment, {}).get("label") or trial.treatment
        about = trace.slice_name(f"{run.path.name}, trial {trial.number}: {label}")
        trace.slice(trace.track("run"), span, about)
        counted = write_counters(trace, segment, span)
        _write_backends(trace, joined, probed, [str(kind) for kind in summary.get("kinds") or []], buckets, arrows)
    return {
        "trial": trial.number,
        "seconds": list(window),
        "server_transactions": len(joined.rows),
        "client_transactions": len(joined.transactions),
        "backends": len(np.unique(joined.rows["backend_pid"])),
        "arrows": arrows.drawn,
        "arrows_not_drawn": arrows.not_drawn,
        "counters": counted,
        "bytes": out.stat().st_size,
    }


def _lasted(summary: Summary) -> str:
    return f"{(int(summary.get('ended_ns') or 0) - int(summary.get('started_ns') or 0)) / 1e9:.1f} s"


def _joined(segment: Segment, span: tuple[int, int], probed: Probe) -> breakdown_join.Joined:
    rows, waits = segment.breakdown, segment.breakdown_waits
    assert rows is not None
    assert waits is not None
    rows = rows[(rows["arrived_ns"] >= span[0]) & (rows["arrived_ns"] < span[1])]
    if len(rows):
        first, last = rows["request"].min(), rows["request"].max()
        waits = waits[(waits["request"] >= first) & (waits["request"] <= last)]
    waits = waits[np.isin(waits["request"], rows["request"])]
    done = segment.transactions
    done = np.zeros(0, _NO_TRANSACTIONS) if done is None else done
    done = done[(done["start_ns"] >= span[0]) & (done["start_ns"] < span[1])]
    sampling = breakdown_sampling.sampling_of(probed, rows)
    return breakdown_join.join(done, rows, waits, segment.told.get("backend_pids"), sampling["one_in_max"])


def arrows_of(joined: breakdown_join.Joined, buckets: list[str], probed: Probe) -> Arrows:
    """From the transaction of who synced to those that waited for it, where it is known which that was."""
    rows, waits = joined.rows, joined.waits
    arrows = Arrows({}, {}, {})
    if GROUP_COMMIT not in buckets:
        return arrows
    chosen = (waits["bucket"] == buckets.index(GROUP_COMMIT)) & (joined.wait_row >= 0)
    known = roles(probed, rows["backend_pid"])
    pids, first = np.unique(rows["backend_pid"], return_index=True)
    ends = [*first[1:].tolist(), len(rows)]
    spans = dict(zip(pids.tolist(), zip(first.tolist(), ends, strict=True), strict=True))
    places = np.nonzero(chosen)[0]
    numbers = np.arange(1, len(places) + 1)
    for waker in np.unique(waits["waker_pid"][places]).tolist():
        is_of_waker = waits["waker_pid"][places] == waker
        woken = joined.wait_row[places[is_of_waker]]
        if waker in spans:
            _of_waker(arrows, rows, spans[waker], woken, numbers[is_of_waker])
        else:
            by = f"by the {known[waker]}, of which no times are known" if waker in known else "waker unknown"
            _count(arrows, by, len(woken))
    return arrows


def _of_waker(arrows: Arrows, rows: np.ndarray, span: tuple[int, int], woken: np.ndarray, numbers: np.ndarray) -> None:
    """Arrows from one backend's rows, which are those from `span[0]` up to `span[1]`, to rows that it woke."""
    low, high = span
    begins, ends = rows["arrived_ns"], rows["ended_ns"]
    # Of the waker's rows those from `over` up to `begun` come into question: they end after the woken one's begin, and
    # begin before its end.
    begun = low + np.searchsorted(begins[low:high], ends[woken], "left")
    over = low + np.searchsorted(ends[low:high], begins[woken], "right")
    first = np.minimum(over, high - 1)
    covers = (begins[first] <= begins[woken]) & (ends[first] >= ends[woken])
    is_one, is_watched = begun - over == 1, breakdown_sampling.one_in(rows[woken]) == 1
    _count(arrows, "by one of several transactions of the waker", int((begun - over > 1).sum()))
    _count(arrows, "by one not recorded", int((begun <= over).sum()))
    unsure = "only slices of time were watched, and the waker may have had other transactions"
    _count(arrows, unsure, int((is_one & ~is_watched & ~covers).sum()))
    drawn = is_one & (is_watched | covers)
    for number, source, sink in zip(numbers[drawn].tolist(), over[drawn].tolist(), woken[drawn].tolist(), strict=True):
        arrows.out_of.setdefault(source, []).append(number)
        arrows.into.setdefault(sink, []).append(number)


def _count(arrows: Arrows, why: str, count: int) -> None:
    if count:
        arrows.not_drawn[why] = arrows.not_drawn.get(why, 0) + count


def _write_backends(
    trace: Trace, joined: breakdown_join.Joined, probed: Probe, kinds: list[str], buckets: list[str], arrows: Arrows
) -> None:
    rows, done = joined.rows, joined.transactions
    pids = np.unique(np.concatenate([rows["backend_pid"], done["backend_pid"]])).tolist()
    above = {pid: trace.track(f"backend {pid}") for pid in pids}
    clients = {pid: trace.track(f"backend {pid}: its client", track) for pid, track in above.items()}
    servers = {pid: trace.track(f"backend {pid}: the server", track) for pid, track in above.items()}
    lag = trace.argument_name("lag, ns")
    index = trace.argument_name("index")
    columns = (done[name].tolist() for name in ("backend_pid", "kind", "outcome", "planned_ns", "start_ns", "end_ns"))
    names: dict[tuple[int, int], bytes] = {}
    for number, pid, kind, outcome, planned, start, end in zip(done["index"].tolist(), *columns, strict=True):
        name = names.get((kind, outcome))
        if name is None:
            word = kinds[kind] if kind < len(kinds) else f"kind {kind}"
            name = trace.slice_name(word + (_OUTCOMES[outcome] if outcome < len(_OUTCOMES) else ""))
            names[kind, outcome] = name
        trace.slice(clients[pid], (start, end), name, ((index, number), (lag, max(0, start - planned))))
    for place, (pid, span, name, arguments) in enumerate(_slices(trace, joined, probed, buckets)):
        into, out_of = arrows.into.get(place, ()), arrows.out_of.get(place, ())
        trace.slice(servers[pid], span, name, arguments, out_of, into)


def _slices(
    trace: Trace, joined: breakdown_join.Joined, probed: Probe, buckets: list[str]
) -> Iterator[tuple[int, tuple[int, int], bytes, list[Argument]]]:
    """Each row's backend, times, name (its longest part) and arguments (all its parts)."""
    names = {part: trace.slice_name(part) for part in (CPU, RUN_QUEUE, *buckets)}
    cpu, queue, woken = (trace.argument_name(word) for word in (f"{CPU}, ns", f"{RUN_QUEUE}, ns", "last woken by pid"))
    requests = trace.argument_name("requests")
    kinds: dict[tuple[int, int, int], tuple[str, bytes, bytes]] = {}
    order = np.argsort(joined.wait_row, kind="stable")
    waits = joined.waits[order]
    first = np.searchsorted(joined.wait_row[order], np.arange(len(joined.rows) + 1)).tolist()
    columns = ("wait", "bucket", "cause", "count", "ns", "waker_pid")
    listed = list(zip(*(waits[name].tolist() for name in columns), strict=True))
    spelled = probed.get("wait_names") or {}
    rows = joined.rows
    asked = breakdown_sampling.requests_in(rows).tolist()
    of_row = (rows[name].tolist() for name in ("backend_pid", "arrived_ns", "ended_ns", "cpu_ns", "run_queue_ns"))
    for place, (pid, begin, end, on_cpu, queued) in enumerate(zip(*of_row, strict=True)):
        longest, most = (CPU, on_cpu) if on_cpu >= queued else (RUN_QUEUE, queued)
        arguments = [(cpu, on_cpu), (queue, queued)]
        if asked[place] != 1:
            arguments.append((requests, asked[place]))
        for wait, bucket, cause, count, ns, waker in listed[first[place] : first[place + 1]]:
            known = kinds.get((wait, bucket, cause))
            if known is None:
                part = buckets[bucket]
                word = f"{part}: {wait_name(wait, part, cause, spelled)}"
                known = (part, trace.argument_name(f"{word}, ns"), trace.argument_name(f"{word}, times"))
                kinds[wait, bucket, cause] = known
            arguments.append((known[1], ns))
            if count != 1:
                arguments.append((known[2], count))
            if waker and known[0] == GROUP_COMMIT:
                arguments.append((woken, waker))
            if ns > most:
                longest, most = known[0], ns
        yield pid, (begin, end), names[longest], arguments
