"""Loads on files as types: what a segment moved, and the `phases` and `operations` of verdict.json (schema/verdict.md).

The fact that constrains it: what the record does not hold is null, and every key is there. Shares of CPU time are in
CPUs, of the machine's time of all of it; a MB is 1,000,000 bytes.
"""

from typing import TypedDict

from plimsoll.record.verdict import Mean


class Rates(TypedDict):
    """What a segment moved in a second, and the CPU time of a MB; `bytes_per_second` is of payload."""

    bytes_per_second: float | None
    operations_per_second: float | None
    load_ns_per_mb: float | None  # of the load's threads
    machine_ns_per_mb: float | None  # of all CPUs


class Moved(Rates):
    """One segment in numbers."""

    seconds: float
    operations: int | None
    bytes_read: int | None
    bytes_written: int | None
    system_calls: int | None
    cpu_user_share: float | None
    cpu_system_share: float | None
    cpu_share: float | None
    machine_share: float | None
    device_read_share: float | None  # bytes at the devices over bytes read
    device_write_share: float | None
    cache: str  # what the page cache did, in words


class Member(TypedDict):
    """What came to one member of an array."""

    member: int  # from 1
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int


class PhaseMoved(Moved):
    """A phase of one trial."""

    phase: str
    min_transfer_share: float | None  # the smallest transfer of a process, of its file
    wrong: int
    is_verified: bool  # whether what it read was compared with what was written
    members: list[Member]


class MixMoved(Moved):
    """The measured segment of a mix of operations."""

    system_calls_per_operation: float | None


class CacheDid(TypedDict):
    """What the page cache did, in words, and in how many trials."""

    what: str
    trials: int


class Flows(TypedDict):
    """What was moved and what that took, over blocks."""

    bytes_per_second: Mean | None
    operations_per_second: Mean | None
    load_ns_per_mb: Mean | None
    machine_ns_per_mb: Mean | None
    cpu_share: Mean | None
    machine_share: Mean | None
    device_read_share: Mean | None
    device_write_share: Mean | None
    cache: list[CacheDid]


class Phase(Flows):
    """A phase of one treatment."""

    seconds: Mean | None
    cpu_user_share: Mean | None
    cpu_system_share: Mean | None
    min_transfer_share: Mean | None
    is_verified: bool  # false: what was read in some of its trials was not compared with what was written
    members: list[Member]  # of an array: what came to each, of all trials together


class Phases(TypedDict):
    """`phases`: each phase's rate and cost by treatment."""

    workload: str
    like: str
    rule: str
    phases: list[str]  # those there are, in their order
    treatments: dict[str, dict[str, Phase]]


class Kind(TypedDict):
    """One kind of operation: counts of all trials together, latencies over blocks by "mean" and percentile."""

    kind: str
    done: int
    failed: int
    latency_ns: dict[str, Mean | None]


class Mix(Flows):
    """The operations of one treatment."""

    trials: list[int]
    system_calls_per_operation: Mean | None
    kinds: list[Kind]


class Operations(TypedDict):
    """`operations`: what a mix of operations moved, and each kind's count and latency, by treatment."""

    workload: str
    like: str
    rule: str
    treatments: dict[str, Mix]


class OperationTimes(TypedDict):
    """Where the time of one kind of operation went: means over blocks, whose parts add up to the latency."""

    kind: str
    operations: int  # performed, of all trials together
    latency_ns: Mean | None  # from the plan to the end
    parts_ns: dict[str, Mean]
    slowest_ns: Mean | None  # of the slowest share; null where those are too few
    slowest_parts_ns: dict[str, Mean]


class WaitPlace(TypedDict):
    """A function of the kernel in which threads of the load have slept, of all trials together."""

    bucket: str
    function: str
    count: int
    ns: int


class TimesOfTreatment(TypedDict):
    """The operations of one treatment."""

    trials: int
    operations: list[OperationTimes]
    straddling: int  # waits that lie across an operation's end: in no part
    missed: int  # switches that the kernel has counted and nobody has seen: time asleep taken for that on a CPU
    lost: int
    places: list[WaitPlace]  # with the longest waits


class FileWaits(TypedDict):
    """`file_waits`: where the time of operations on files went, by treatment."""

    slowest_share: float
    treatments: dict[str, TimesOfTreatment]
