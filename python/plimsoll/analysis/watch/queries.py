"""Whose time it was: the exact time of backends, from the kernel, joined with looks at pg_stat_activity.

Where a backend was at one query through a whole interval between two lines, the looks before and after say so, and all
its time in that interval is that query's: exact. The rest is shared out by looks that saw a backend in the same kind
of time: each look that saw a wait stands for an equal part of what was waited in that bucket, each other look for an
equal part of the time on a CPU and in the run queue. So the parts add up to the exact sums of the buckets, and how they
fall on queries is a sample with so many looks. A bucket that no look saw stays unshared, and is said.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.analysis.breakdown.parts import CLIENT, CPU, RUN_QUEUE
from plimsoll.analysis.watch.document import QueryRow, Sharing

ACTIVE = "active"
CONFIDENCE_Z = 1.96
_EXACT = 0.995
KEPT_NS = 10_000_000_000  # of looks that no line has come for


@dataclass(frozen=True)
class Seen:
    """A process in a look: which query (a number), its wait event, and since when it has been at it."""

    query: int
    state: str
    event: str | None
    since_ns: int | None


@dataclass
class _Interval:
    begin_ns: int
    end_ns: int
    grown: dict[int, dict[str, int]]  # nanoseconds by process and bucket


@dataclass
class Query:
    """What is known of one query's time, by bucket."""

    exact: dict[str, float] = field(default_factory=dict)
    sampled: dict[str, float] = field(default_factory=dict)
    looks: int = 0
    backends: set[int] = field(default_factory=set)
    sessions: Counter[int] = field(default_factory=Counter)

    @property
    def buckets(self) -> dict[str, float]:
        """Exact and sampled together."""
        return {name: self.exact.get(name, 0) + self.sampled.get(name, 0) for name in {**self.exact, **self.sampled}}

    @property
    def busy_ns(self) -> float:
        """All but the waits for the client."""
        return sum(ns for name, ns in self.buckets.items() if name != CLIENT)


class Queries:
    """Takes intervals and looks as they come; `shares` may be asked at any time."""

    def __init__(self) -> None:
        self.looks = 0
        self._looks: deque[tuple[int, dict[int, Seen]]] = deque()
        self._intervals: deque[_Interval] = deque()
        self._exact: dict[int, dict[str, int]] = {}
        self._rest: dict[str, int] = {}
        self._counted: Counter[tuple[int, str | None, bool]] = Counter()
        self._backends: dict[int, set[int]] = {}
        self._sessions: dict[int, Counter[int]] = {}
        self._looks_of: Counter[int] = Counter()

    def interval(self, begin_ns: int, end_ns: int, grown: dict[int, dict[str, int]]) -> None:
        """What each process grew by between two lines."""
        self._intervals.append(_Interval(begin_ns, end_ns, grown))

    def look(self, at_ns: int, seen: dict[int, Seen], sessions: Mapping[int, int]) -> None:
        """One look. Intervals that ended before it can be settled now."""
        self.looks += 1
        for pid, sample in seen.items():
            self._looks_of[sample.query] += 1
            self._backends.setdefault(sample.query, set()).add(pid)
            self._sessions.setdefault(sample.query, Counter())[sessions.get(pid, -1)] += 1
        self._looks.append((at_ns, seen))
        while self._intervals and self._intervals[0].end_ns <= at_ns:
            self._settle(self._intervals.popleft(), seen)
        while self._looks and not self._intervals and self._looks[0][0] < at_ns - KEPT_NS:
            self._looks.popleft()

    def close(self) -> None:
        """No look comes any more: what is left is settled without one after it."""
        while self._intervals:
            self._settle(self._intervals.popleft(), {})

    def _settle(self, one: _Interval, after: Mapping[int, Seen]) -> None:
        while self._looks and self._looks[0][0] <= one.begin_ns:
            self._looks.popleft()
        within = [seen for at, seen in self._looks if at <= one.end_ns]
        for pid, grown in one.grown.items():
            query = _one_query(pid, one, within, after)
            mine = self._rest if query is None else self._exact.setdefault(query, {})
            for bucket, ns in grown.items():
                mine[bucket] = mine.get(bucket, 0) + ns
            if query is None:
                for seen in within:
                    if (found := seen.get(pid)) is not None:
                        self._counted[found.query, found.event, found.state == ACTIVE] += 1

    def shares(self, bucket_of: Mapping[str, str]) -> tuple[dict[int, Query], Sharing]:
        """Every query's time, and what is to be said of the sharing. `bucket_of`: buckets by name of a wait event."""
        looks: Counter[tuple[int, str]] = Counter()
        for (query, event, active), count in self._counted.items():
            looks[query, _bucket(event, active, bucket_of)] += count
        seen: Counter[str] = Counter()
        for (_, bucket), count in looks.items():
            seen[bucket] += count
        found = {
            query: Query(
                exact=dict(self._exact.get(query, {})),
                looks=self._looks_of[query],
                backends=self._backends[query],
                sessions=self._sessions[query],
            )
            for query in self._looks_of
        }
        for (query, kind), count in looks.items():
            for bucket in (CPU, RUN_QUEUE) if kind == CPU else (kind,):
                if rest := self._rest.get(bucket):
                    part = rest * count / seen[kind]
                    found[query].sampled[bucket] = found[query].sampled.get(bucket, 0.0) + part
        unshared = {
            bucket: ns for bucket, ns in self._rest.items() if ns and not seen[CPU if bucket == RUN_QUEUE else bucket]
        }
        exact = sum(ns for mine in self._exact.values() for name, ns in mine.items() if name != CLIENT)
        rest = sum(ns for name, ns in self._rest.items() if name != CLIENT)
        counted = sum(looks.values())
        sharing: Sharing = {
            "looks": self.looks,
            "sessions_seen": counted,
            "exact_ns": exact,
            "sampled_ns": rest,
            "unshared": unshared,
        }
        return found, sharing


def exact_share(row: QueryRow) -> float:
    """The share of a query's busy time that is exact and not distributed by samples."""
    return float(row["exact_ns"] / row["busy_ns"]) if row["busy_ns"] else 0.0


def is_exact(row: QueryRow) -> bool:
    """Whether next to nothing of a query's busy time was distributed by samples."""
    return exact_share(row) > _EXACT


def margin(query: Query, counted: int, busy_ns: float, sampled_ns: float) -> float | None:
    """Half the 95 % interval of a query's share of the busy time, from the number of looks at sessions at work."""
    part = sum(ns for name, ns in query.sampled.items() if name != CLIENT)
    if not busy_ns or not counted or not sampled_ns:
        return None
    share = min(1.0, part / sampled_ns)
    return CONFIDENCE_Z * math.sqrt(share * (1 - share) / counted) * sampled_ns / busy_ns


def _one_query(pid: int, one: _Interval, within: list[dict[int, Seen]], after: Mapping[int, Seen]) -> int | None:
    """The query that a process was at from before an interval's begin to after its end, if it was only one."""
    last = after.get(pid)
    if last is None or last.since_ns is None or last.since_ns > one.begin_ns:
        return None
    same = all((found := seen.get(pid)) is not None and found.query == last.query for seen in within)
    return last.query if same else None


def _bucket(event: str | None, active: bool, bucket_of: Mapping[str, str]) -> str:
    """The kind of time that a look saw. An event that nobody was ever seen blocked in is set on a CPU too."""
    if event is None:
        return CPU
    if event == "Client:ClientRead":
        return CLIENT
    return bucket_of.get(event, CPU) if active else CLIENT
