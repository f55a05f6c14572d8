"""What one trial's record of the breakdown adds up to, as types: sums in nanoseconds over its transactions."""

from typing import Any, Literal, NotRequired, TypedDict

Json = dict[str, Any]
# The bands of latency of which waits are known: all transactions of a type, and the slowest hundredth.
Told = Literal["all", "beyond p99"]


class WaitSums(TypedDict):
    """How often, and how long."""

    count: int
    ns: int


class Wait(WaitSums):
    """A wait event within a part."""

    name: str
    bucket: str


class Reads(TypedDict):
    """Waits for data, by whether the backend asked the device itself; `untold`: the kernel did not say."""

    own_count: int
    own_ns: int
    on_its_way_count: int
    on_its_way_ns: int
    untold_count: int
    untold_ns: int


class Waits(TypedDict):
    """What transactions waited for, who ended their waits for another's sync (by role), and what reads were for.

    `nfs`: of the waits, those on NFS, by what was asked of the server.
    """

    waits: list[Wait]
    payers: dict[str, WaitSums]
    data_read: Reads
    nfs: dict[str, WaitSums]


class BandSums(TypedDict):
    """The transactions of a band of latency; `ns` by part."""

    transactions: int
    requests: int
    latency_ns: int
    ns: dict[str, int]
    user_ns: int
    system_ns: int
    cpu_can_be_split: bool


class Closure(TypedDict):
    """What the parts leave of the time, and what of it has no bucket of its own."""

    error_ns: int
    of_ns: int
    share: float | None
    absolute_share: float | None
    unnamed_share: float | None


# A type of transaction: its bands, and the waits of all and of the slowest (trial.py, MEAN and SLOWEST).
TypeSums = TypedDict("TypeSums", {"bands": dict[str, BandSums], "closure": Closure, "all": Waits, "beyond p99": Waits})


class Segment(TypedDict):
    """A stretch of a transaction, from its planned start; within a row of the record its number, from 1."""

    part: str
    at_ns: int
    ns: int
    row: NotRequired[int]
    requests: NotRequired[int]
    wait: NotRequired[str]


class SlowOne(TypedDict):
    """One of the slowest transactions of a trial."""

    index: int
    kind: str
    backend_pid: int
    latency_ns: int
    requests: int
    segments: list[Segment]
    cut: bool  # whether there were more segments


class Cost(TypedDict):
    """What the probe took; the share is of the machine's CPU time."""

    run_ns: int | None
    ns_per_transaction: float | None
    cpu_share: float | None


class Sampling(TypedDict):
    """How much of the time was watched; shares are of the machine's CPU time, null where not known."""

    one_in_max: int
    budget_share: float | None
    share: float | None
    cut: int


class RequestsSeen(TypedDict):
    """Requests of the load, as the probe saw them and as they were sent."""

    seen: int | None
    sent: int | None


class ProbeSays(TypedDict, total=False):
    """What the probe says of itself, if it was on; `checks` and `processes` are as summary.json has them."""

    lost: dict[str, int]
    checks: list[Json]
    boundaries: dict[str, str]
    absent: dict[str, str]
    counts: dict[str, int]
    processes: list[Json]
    syncs: dict[str, int]
    done: int | None
    cost: Cost


class Split(TypedDict, total=False):
    """The time of a trial's transactions, if it was on; with `faults` (time counted twice) there are no types."""

    joined: dict[str, int]
    sampled: bool
    faults: dict[str, int]
    types: dict[str, TypeSums]
    requests: RequestsSeen
    sampling: Sampling
    slowest: list[SlowOne]


class Said(TypedDict):
    """Whether a trial has a breakdown; `status` as in the record, or "missing"; `reason`: why it has none."""

    number: int
    status: str
    remedy: str | None
    reason: str | None


class Reading(Said, ProbeSays, Split):
    """A trial's breakdown; of a probe that was not on there is only why."""
