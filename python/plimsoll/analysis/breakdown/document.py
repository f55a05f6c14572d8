"""The `breakdown` of verdict.json, and what changed between two treatments or runs, as types (schema/verdict.md).

Means and differences are nanoseconds a transaction over blocks; what ends in _ns, and `ns`, are sums in nanoseconds.
"""

from typing import NotRequired, TypedDict

from plimsoll.analysis.breakdown.reading import (
    Closure,
    Cost,
    Json,
    Reads,
    RequestsSeen,
    Sampling,
    SlowOne,
    Wait,
    WaitSums,
)
from plimsoll.record.verdict import Mean


class Whole(TypedDict):
    """A whole in two treatments, its difference, and whether there is more or less of it in the second."""

    first: float
    second: float
    total: Mean
    ratio: float | None
    word: str


class Change(TypedDict):
    """An amount in two treatments: a part, a wait event in its part, a system call, a function."""

    name: str
    part: str | None
    first: float
    second: float
    difference: Mean
    share: float | None  # of the whole's difference; null where that cannot be told
    word: str
    stack: NotRequired[list[str]]  # of a function: where it changed most, the process's role first


class LatencyChange(Whole):
    """What changed of the latency of a type."""

    parts: list[Change]
    waits: list[Change]
    waits_left_out: int
    closure_error: Mean | None


class CpuChange(Whole):
    """What changed of the CPU's time, by who took it."""

    users: list[Change]
    others_known: bool


class PartsDifference(TypedDict):
    """Second less first by part, within blocks: parts and closure error add up to the total."""

    blocks: int
    total: Mean
    ratio: float | None
    parts: dict[str, Mean]
    closure_error: Mean


class Sides(PartsDifference):
    """A difference, and the treatments and the type that it is of."""

    first: str
    second: str
    kind: str


class Difference(Sides):
    """A difference of two treatments, with the wait events that changed."""

    band: str
    first_label: str
    second_label: str
    at: dict[str, str]
    about: str
    verdict: str | None
    clients: NotRequired[float]
    waits: NotRequired[list[Change]]  # absent from verdicts of earlier versions


class Band(TypedDict):
    """A band of the latency of a type."""

    transactions: int
    requests: int
    latency: Mean
    parts: dict[str, Mean]
    split: bool


class TypeWait(Wait):
    """A wait event within its part; `bucket` is empty where it stands for several."""

    times_per_transaction: float
    ns_per_transaction: float
    ns_per_slowest: float | None


class TypeReads(Reads):
    """Waits for data, by whether the backend asked the device itself."""

    own_ns_per_transaction: float
    own_ns_per_slowest: float | None
    on_its_way_ns_per_transaction: float
    on_its_way_ns_per_slowest: float | None
    untold_ns_per_transaction: float
    untold_ns_per_slowest: float | None


class TypeSpent(WaitSums):
    """Waits with what they are of a transaction, and of one of the slowest hundredth."""

    ns_per_transaction: float
    ns_per_slowest: float | None


class TypeWaits(TypedDict):
    """What transactions of a type waited for, who ended those for another's sync, and what reads were for.

    `nfs`: of the waits, those on NFS, by what was asked of the server; empty where there were none.
    """

    waits: list[TypeWait]
    payers: dict[str, WaitSums]
    data_read: TypeReads
    nfs: dict[str, TypeSpent]


class OfType(TypeWaits):
    """A type of a treatment; `beyond_mean` is the slowest hundredth less the mean."""

    bands: dict[str, Band | None]
    beyond_mean: PartsDifference | None
    closure_share_worst: float | None
    absolute_share_max: float | None
    unnamed_share_max: float | None


class Slowest(SlowOne):
    """One of the slowest transactions of a treatment."""

    trial: int


class System(TypedDict):
    """Processes of the server of one kind that carry no client's requests."""

    what: str
    processes: int
    cpu_ns: int
    run_queue_ns: int
    waits: dict[str, WaitSums]
    cpu_ns_per_transaction: float | None


class Syncs(TypedDict):
    """Calls that synced one kind of files."""

    count: int
    per_transaction: float | None


class OfTreatment(TypedDict):
    """A treatment over its trials."""

    trials: list[int]
    types: dict[str, OfType]
    slowest: list[Slowest]
    system: list[System]
    one_in_max: int
    syncs: dict[str, Syncs]


class RequestsCounted(RequestsSeen):
    """The same over trials; `differ`: of trials of which all of the time was watched."""

    differ: bool


class OfTrial(TypedDict):
    """What the probe says of itself in one trial, and what became of its requests and transactions."""

    number: int
    lost: dict[str, int]
    checks: list[Json]
    boundaries: dict[str, str]
    absent: dict[str, str]  # what cannot be told, and why
    counts: dict[str, int]
    requests: RequestsSeen
    done: int | None
    cost: Cost
    joined: dict[str, int]
    sampled: bool
    sampling: Sampling
    syncs: dict[str, int]
    faults: dict[str, int]
    closure: dict[str, Closure]


class Refused(TypedDict):
    """Why trials have no breakdown."""

    reason: str
    remedy: str | None
    trials: list[int]


class Breakdown(TypedDict):
    """Where each transaction's time goes, over a run."""

    parts: dict[str, str]
    bands: list[str]
    refused: list[Refused]
    why_absent: str | None
    trials: list[OfTrial]
    treatments: dict[str, OfTreatment]
    differences: list[Difference]
