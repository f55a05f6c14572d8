"""Web serving as types: the `web_serving` of verdict.json (schema/verdict.md).

The fact that constrains it: what the record does not hold is null, and every key is there.
"""

from typing import TypedDict

from plimsoll.record.verdict import Mean


class Asked(TypedDict):
    """Requests of one kind or class against what the mix says; counts of all trials together."""

    name: str
    requests: int
    share: float
    target: float
    low: float  # of the share, by the number of requests
    high: float
    is_inside: bool
    latency_ns: dict[str, Mean | None]  # by percentile; empty of a class


class Kept(TypedDict):
    """A class's files and the page cache: what was asked of it, and what of all their bytes it had."""

    name: str
    asked_pages: int | None  # by reads and faults, of all trials together
    missed_pages: int | None
    brought_pages: int | None  # from the device, what was read ahead included
    hit_ratio: Mean | None
    before: Mean | None  # null of what is no part of the set of files
    after: Mean | None


class Errors(TypedDict):
    """Requests that had no right answer; counts of all trials together."""

    requests: int
    failed: int
    lost: int
    share: float | None
    kinds: dict[str, int]  # what was wrong, as totals count it, without what never was


class Serving(TypedDict):
    """One treatment."""

    trials: list[int]
    requested: int | None
    conforming: Mean | None
    conforming_share: Mean | None
    operations_per_second: Mean | None
    operation_ns: Mean | None
    connection_bits_per_second: Mean | None
    line_bits_per_second: Mean | None
    connections_opened: int
    errors: Errors
    kinds: list[Asked]
    classes: list[Asked]
    kept: list[Kept]
    hit_ratio: Mean | None


class WorkerTimes(TypedDict):
    """A process of the server, the busiest first, or what is left of those like it."""

    role: str  # "server", or "program" of what is behind it
    name: str
    number: int | None  # by how busy it was among those like it; null of all the others together
    processes: Mean | None
    threads: Mean | None
    shares: dict[str, Mean]  # by part, of the time of its threads; they add up to 1


class RequestTimes(TypedDict):
    """One treatment."""

    trials: int
    requests: int
    latency_ns: Mean | None  # in which a client waited for an answer or took it
    parts_ns: dict[str, Mean]  # of all processes together, by the requests
    workers: list[WorkerTimes]
    missed: int
    lost: int


class WebWorkers(TypedDict):
    """Where the time of the server's processes went."""

    treatments: dict[str, RequestTimes]


class WebServing(TypedDict):
    """The part."""

    like: str
    rule: str
    speed: str | None  # what a conforming connection is; null where no line has a speed
    treatments: dict[str, Serving]
