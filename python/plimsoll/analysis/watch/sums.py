"""Sums of time by bucket and by wait event, as the agent's live lines add to them.

All of it is nanoseconds of backends with a client and of their parallel workers. `client`, the wait for the client
inside a transaction, is kept with the others but is no busy time: whoever waits for its client takes nothing of the
server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.analysis.breakdown.parts import CLIENT, CPU, RUN_QUEUE, in_order
from plimsoll.analysis.watch.document import BucketRow, Part, WaitRow
from plimsoll.analysis.watch.heard import ProcessGrown

WORKER = "parallel worker"
NO_NAME = "(no name)"


def event_name(event: int | str | None, names: Mapping[str, str]) -> str:
    """The server's name of a wait event; a text is one already."""
    if isinstance(event, str) and not event.isdigit():
        return event
    number = int(event or 0)
    return names.get(str(number)) or (f"event {number:#010x}" if number else NO_NAME)


def is_watched(process: ProcessGrown) -> bool:
    """Whether a process's time counts: it has a client, or works for one that has."""
    return process["what"] in (None, WORKER)


@dataclass
class Sums:
    """What one process, or all of them, did."""

    transactions: int = 0
    requests: int = 0
    buckets: dict[str, int] = field(default_factory=dict)
    events: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # (name, bucket): count and nanoseconds

    @classmethod
    def of(cls, process: ProcessGrown, names: Mapping[str, str]) -> Sums:
        """Those of one process in one line."""
        found = cls(int(process.get("transactions") or 0), int(process.get("requests") or 0))
        for bucket, ns in ((CPU, process.get("cpu_ns")), (RUN_QUEUE, process.get("run_queue_ns"))):
            if ns:
                found.buckets[bucket] = int(ns)
        for wait in process.get("waits", []):
            key, ns = (event_name(wait["event"], names), str(wait["bucket"])), int(wait["ns"])
            found.buckets[key[1]] = found.buckets.get(key[1], 0) + ns
            event = found.events.setdefault(key, [0, 0])
            event[0] += int(wait["count"])
            event[1] += ns
        return found

    def add(self, other: Sums) -> None:
        """Adds the other's."""
        self.transactions += other.transactions
        self.requests += other.requests
        for bucket, ns in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + ns
        for key, (count, ns) in other.events.items():
            event = self.events.setdefault(key, [0, 0])
            event[0] += count
            event[1] += ns

    @property
    def busy_ns(self) -> int:
        """All but the waits for the client."""
        return sum(ns for bucket, ns in self.buckets.items() if bucket != CLIENT)

    @property
    def client_ns(self) -> int:
        """In a transaction, waiting for the client."""
        return self.buckets.get(CLIENT, 0)


def bucket_rows(sums: Sums, lasted_ns: int) -> list[BucketRow]:
    """A row a bucket, in order: its share of the busy time, how many backends were in it, a transaction's part."""
    busy = sums.busy_ns
    rows: list[BucketRow] = []
    for name in in_order(set(sums.buckets)):
        ns = sums.buckets[name]
        rows.append(
            {
                "bucket": name,
                "ns": ns,
                "share": ns / busy if busy and name != CLIENT else None,
                "backends": ns / lasted_ns if lasted_ns else None,
                "ns_per_transaction": ns / sums.transactions if sums.transactions else None,
            }
        )
    return rows


def wait_rows(sums: Sums, lasted_ns: int, most: int) -> list[WaitRow]:
    """The waits that took the longest, by the server's own names."""
    busy = sums.busy_ns
    rows: list[WaitRow] = [
        {
            "event": name,
            "bucket": bucket,
            "count": count,
            "ns": ns,
            "ns_each": ns / count if count else None,
            "per_second": count / lasted_ns * 1e9 if lasted_ns else None,
            "share": ns / busy if busy and bucket != CLIENT else None,
        }
        for (name, bucket), (count, ns) in sums.events.items()
    ]
    rows.sort(key=lambda row: (row["bucket"] == CLIENT, -row["ns"], row["event"]))
    return rows[:most]


def largest(buckets: Mapping[str, float], most: int = 3) -> list[Part]:
    """The buckets of something with the most time, and their shares of it, but for those below one in a hundred."""
    whole = sum(buckets.values())
    found = sorted(((name, ns / whole) for name, ns in buckets.items() if whole and ns / whole >= 0.01), key=_by_share)
    return found[:most]


def _by_share(item: Part) -> tuple[float, str]:
    return -item[1], item[0]


def together(sums: Iterable[Sums]) -> Sums:
    """All of them added up."""
    whole = Sums()
    for one in sums:
        whole.add(one)
    return whole
