"""The picture again, from the record: lines and looks as they came, in the order of their time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from plimsoll.analysis.watch.heard import Activity, AgentLine, LockLook, Look, ProcessGrown, SeenRow, WaitGrown
from plimsoll.analysis.watch.live import Picture
from plimsoll.record import MISSING, RecordError, Segment, read_table
from plimsoll.record.run import read_json


def activity(segment: Segment) -> Activity:
    """The names that the tables have places of."""
    document = read_json(segment.path / "activity.json")
    if document is None:
        raise RecordError(f"{segment.path}: no activity.json: the watch was killed before its end; watch again")
    return cast(Activity, document)


def replay(segment: Segment) -> Picture:
    """What the terminal showed at the end."""
    names = activity(segment)
    picture = Picture(set(names["own_pids"]))
    picture.names |= names["wait_names"]
    picture.texts |= {int(number): text for number, text in names["queries"].items()}
    picture.sessions |= {int(number): session for number, session in names["sessions"].items()}
    lines, looks = list(_lines(segment, names)), list(_looks(segment, names))
    at = 0
    for line in lines:
        while at < len(looks) and looks[at]["t_ns"] < line["t_ns"]:
            picture.look(looks[at])
            at += 1
        picture.line(line)
    for look in looks[at:]:
        picture.look(look)
    picture.close()
    return picture


def _table(segment: Segment, name: str) -> np.ndarray:
    table = read_table(Path(segment.path) / f"{name}.npy")
    if table is None:
        raise RecordError(f"{segment.path / name}.npy is missing: the watch was killed before its end; watch again")
    return table


def _lines(segment: Segment, names: Activity) -> Iterator[AgentLine]:
    """The agent's lines; the last one also has what each process was doing then."""
    waits: dict[tuple[int, int], list[WaitGrown]] = defaultdict(list)
    for at, pid, wait, bucket, count, ns in _table(segment, "live_waits").tolist():
        waits[at, pid].append({"event": wait, "bucket": names["buckets"][bucket], "count": count, "ns": ns})
    last = names["last_line"]
    now = {process["pid"]: process.get("now") for process in last["processes"]} if last else {}
    line: AgentLine | None = None
    for at, lasted, watched, pid, role, transactions, requests, cpu, queued in _table(segment, "live").tolist():
        if pid == 0:
            if line is not None:
                yield line
            line = {"t_ns": at, "lasted_ns": lasted, "watched_ns": watched, "processes": []}
            continue
        assert line is not None
        process: ProcessGrown = {
            "pid": pid,
            "what": names["roles"][role],
            "transactions": transactions,
            "requests": requests,
            "cpu_ns": cpu,
            "run_queue_ns": queued,
            "waits": waits.get((at, pid), []),
        }
        if last and at == last["t_ns"]:
            process["now"] = now.get(pid)
        line["processes"].append(process)
    if line is not None:
        yield line


def _looks(segment: Segment, names: Activity) -> Iterator[Look]:
    seen: dict[int, list[SeenRow]] = defaultdict(list)
    for look, pid, kind, state, query, event, leader, since, transaction, session in _table(segment, "seen").tolist():
        words = (names["kinds"][kind], names["states"][state])
        times = (_known(since), _known(transaction))
        seen[look].append((pid, *words, query, names["events"][event], leader or None, *times, session))
    locks: dict[int, dict[tuple[Any, ...], list[int]]] = defaultdict(dict)
    for look, pid, blocker, kind, mode, relation, since in _table(segment, "locks").tolist():
        locks[look].setdefault((pid, kind, mode, relation, since), []).append(blocker)
    for look, at, took, idle, locks_at in _table(segment, "looks").tolist():
        sample: Look = {"t_ns": at, "took_ns": took, "idle": idle, "seen": seen.get(look, [])}
        if locks_at != MISSING:
            sample["locks_t_ns"] = locks_at
            sample["locks"] = [_lock(names, key, blockers) for key, blockers in locks[look].items()]
        yield sample


def _lock(names: Activity, key: tuple[Any, ...], blockers: list[int]) -> LockLook:
    pid, kind, mode, relation, since = key
    return {
        "pid": pid,
        "blockers": blockers,
        "kind": names["lock_kinds"][kind],
        "mode": names["modes"][mode],
        "relation": names["relations"][relation],
        "since_ns": _known(since),
    }


def _known(value: int) -> int | None:
    return None if value == MISSING else value
