"""What verdict.json says of the probes, as types (schema/verdict.md). Trials stand by their numbers.

The fact that constrains it: what a kernel or a file system does not tell is absent or null, and never 0. Sums are over
the trials of a treatment whose probe was on.
"""

from typing import Literal, NotRequired, TypedDict

TimeBuckets = Literal["queue_ns_buckets", "device_ns_buckets"]
Buckets = list[list[int]]  # [least value, count] of each, in the order of the values


class Refusal(TypedDict):
    """Trials whose probe was refused for one reason."""

    reason: str
    remedy: str | None
    trials: list[int]


class SelfTest(TypedDict):
    """How many trials tested themselves and passed; each figure from its least to its most."""

    trials: int
    passed: int
    pages: NotRequired[list[int]]
    missed_cold: NotRequired[list[int]]
    missed_warm: NotRequired[list[int]]
    sequential_pages: NotRequired[list[int]]
    sequential_added: NotRequired[list[int]]


SelfTestFigure = Literal["pages", "missed_cold", "missed_warm", "sequential_pages", "sequential_added"]


class Accounting(TypedDict):
    """Pages whose addition was counted apart, against the sum of their kinds."""

    trials: int
    broken: list[int]
    added: int
    accounted: int


class ProgramCost(TypedDict):
    """Runs of one program in the kernel."""

    runs: int
    run_ns: int
    ns_per_run: float | None


class Cost(TypedDict):
    """Run time of a probe's programs, over all trials."""

    run_ns: int
    programs: dict[str, ProgramCost]


class Instrument(TypedDict):
    """What one probe says of itself; where no trial mentions it the first three keys alone."""

    on: list[int]
    refused: list[Refusal]
    why_absent: str | None  # null where it was on in some trial
    programs: NotRequired[list[str]]
    requests: NotRequired[list[str]]
    self_test: NotRequired[SelfTest | None]
    absent: NotRequired[dict[str, str]]  # why, by column
    file_systems: NotRequired[list[str]]
    lost: NotRequired[dict[str, int]]  # events by kind: then its counts are lower bounds
    lost_trials: NotRequired[list[int]]
    identity: NotRequired[Accounting | None]
    cost: NotRequired[Cost | None]
    note: NotRequired[str | None]  # what a figure that rests on it has to say beside itself


class Share(TypedDict):
    """A share with its binomial interval."""

    value: float
    low: float
    high: float


# A box of a flame graph, in the unit of its stacks: samples of `profile`, nanoseconds of `off_cpu`.
Box = TypedDict("Box", {"name": str, "depth": int, "from": float, "to": float})


class Function(TypedDict):
    """Samples in a function itself, and in what it calls."""

    name: str
    self: int
    total: int
    share: Share | None


class NamelessFile(TypedDict):
    """A file in which functions have no name, and what would name them."""

    path: str
    unnamed: int  # samples
    samples: int
    symbols: str
    remedy: str | None


class LockWait(TypedDict):
    """Waits for the kernel's locks of one kind, or of one kind at one place."""

    kind: str
    caller: str
    stack: str
    count: int
    total_ns: int
    max_ns: int


class Locks(TypedDict):
    """Waits for the kernel's locks."""

    kinds: list[LockWait]
    sites: list[LockWait]


class Spinlocks(TypedDict):
    """Samples that were waiting for a spinlock: of the server's own, null where its functions have no names, and of the
    kernel's."""

    server: Share | None
    kernel: Share | None


class Ticks(TypedDict):
    """Of the sampling clock, of all CPUs: those due while a CPU was not idle, by the kernel's own account of idle time,
    and those that came."""

    due: int
    came: int


class TreatmentProfile(TypedDict):
    """Where the server was when it was on a CPU, under one treatment."""

    trials: list[int]
    hz: list[int]
    samples: int
    in_kernel: Share | None
    named: Share | None
    complete: Share | None
    roles: dict[str, int]  # samples
    functions: list[Function]
    boxes: list[Box]
    nameless: list[NamelessFile]
    locks: Locks | None  # null where they were not asked for
    spinlocks: Spinlocks
    lost: dict[str, int]
    ticks: Ticks | None  # null where a trial does not tell
    cost_ns: int
    agent_cpu_ns: int
    segment_ns: int


class RefusedProfile(TypedDict):
    """One trial whose profile was refused."""

    trial: int
    reason: str | None
    remedy: str | None


class Profile(TypedDict):
    """The `profile` of a verdict."""

    refused: list[RefusedProfile]
    why_absent: str | None
    treatments: dict[str, TreatmentProfile]


class Summed(TypedDict):
    """Of which trials and how many transactions sums are, and which events were lost."""

    trials: list[int]
    transactions: int | None
    lost: dict[str, int]


class Timed(TypedDict):
    """Calls with their time."""

    count: int
    errors: int
    ns: int
    count_se: NotRequired[float]  # the standard error of a count that is an estimate


class Call(Timed):
    """System calls of one kind on files of one class."""

    asked_bytes: int
    returned_bytes: int
    sequential: int
    ns_log2: list[int]  # calls by the power of two of their time
    bytes_log2: list[int]


class Calls(Summed):
    """System calls under one treatment."""

    classes: dict[str, dict[str, Call]]  # by file class and call
    order: list[str]  # of the calls
    others: dict[str, Timed]
    others_left_out: int
    # The share of the time in which they were counted, where they are estimates; absent from earlier versions.
    calls_share: NotRequired[float | None]
    others_share: NotRequired[float | None]


class Sync(Timed):
    """Syncs by one call of files of one class."""

    ns_min: int
    ns_max: int
    ns_log2: list[int]
    parts_ns: dict[str, int]
    journal_flush_ns: NotRequired[int]
    pages: NotRequired[int]


class Syncs(Summed):
    """Syncs under one treatment."""

    classes: dict[str, dict[str, Sync]]  # by file class and call
    absent: dict[str, str]  # why, by part
    file_systems: list[str]
    open_ns_max: int | None  # by how much the parts of one call miss it at most


class SystemCalls(TypedDict):
    """The `syscalls` of a verdict, by treatment."""

    calls: dict[str, Calls]
    syncs: dict[str, Syncs]


class RequestSums(TypedDict):
    """Requests of one operation for pages of one class."""

    count: int
    errors: int
    synchronous: int
    meta: int
    fua: int
    ahead: int
    queued: int  # whose time in the queue is known
    bytes: int
    queue_ns: int
    device_ns: int
    bytes_min: int
    bytes_max: int
    queue_ns_min: NotRequired[int]
    queue_ns_max: NotRequired[int]
    device_ns_min: int
    device_ns_max: int
    queue_ns_buckets: Buckets
    device_ns_buckets: Buckets


class Requests(RequestSums):
    """The same with their means and percentiles."""

    bytes_typical: float | None
    queue_ns_mean: float | None
    device_ns_mean: float | None
    queue_ns_p50: float | None
    queue_ns_p99: float | None
    device_ns_p50: float | None
    device_ns_p99: float | None


class EndCounts(TypedDict, total=False):
    """What became of a disk's requests, and what was merged before; a count that is not told is absent."""

    issued: int
    completed: int
    requeued: int
    under_way: int
    unseen: int
    no_room: int
    before: int
    flush_asks: int
    bios_merged: int
    requests_merged: int
    splits: int
    depth_ns: int
    segment_ns: int


EndCount = Literal[
    "issued", "completed", "requeued", "under_way", "unseen", "no_room", "before", "flush_asks", "bios_merged",
    "requests_merged", "splits", "depth_ns", "segment_ns",
]  # fmt: skip


class Ends(EndCounts):
    """The same with the most at once, and whether they add up."""

    depth_max: int
    holds: bool


class Disk(TypedDict):
    """Requests of one disk."""

    classes: dict[str, dict[str, Requests]]  # by class of page and operation
    ends: Ends


class BlockRequests(Summed):
    """Requests of the disks under one treatment: an entry of the `block` of a verdict."""

    disks: dict[str, Disk]
    absent: dict[str, str]
    file_systems: list[str]
