"""summary.json as types: what a segment's load and probes say, written by the agent (crates/record/src/summary.rs).

The fact that constrains it: a record may be cut short or of an earlier agent, so a reader counts on no key. REQUIRED
are those that every agent has written; schema/record.md says what each means. Times are nanoseconds of CLOCK_MONOTONIC.
"""

from collections.abc import Sequence
from typing import Any, Final, TypedDict

Json = dict[str, Any]
REQUIRED: Final = frozenset(
    (
        *("format", "workload", "kinds", "first_index", "next_index", "started_ns", "ended_ns", "ended_by"),
        *("epoch_minus_monotonic_ns", "identity", "by_kind", "errors", "health", "verification", "totals"),
        *("backend_pids", "devices"),
    )
)


class Identity(TypedDict, total=False):
    """What became of the transactions: planned is the sum of the others."""

    planned: int
    done: int
    failed: int
    skipped: int
    lost: int


class ByKind(TypedDict, total=False):
    """The same of one kind, without what was skipped before its kind was drawn."""

    done: int
    failed: int
    skipped: int
    lost: int
    statements: int
    retries: int


class ErrorEntry(TypedDict):
    """A way to fail, with its first message."""

    sqlstate: str
    message: str
    count: int


class LagNs(TypedDict):
    """Lag of the transactions that were started."""

    p50: int
    p99: int
    max: int


class Health(TypedDict, total=False):
    """What the generator says of itself."""

    cpu_user_ns: int
    cpu_system_ns: int
    load_cpu_user_ns: int
    load_cpu_system_ns: int
    threads: int
    thread_cpus: list[int]
    lag_ns: LagNs
    records_dropped: int
    samples: int
    sample_late_ns_max: int
    cpus_allowed: list[int] | str  # of an embedded server the list as text
    memory_bytes_max: int
    connections_lost: int


class WrongAnswer(TypedDict):
    """An answer that differs from the seed's."""

    index: int
    message: str


class Verification(TypedDict, total=False):
    """Answers that were compared."""

    checked: int
    wrong: int
    examples: list[WrongAnswer]


class Rows(TypedDict):
    """Which transactions have a row in transactions.npy."""

    recorded: int
    all_below_index: int
    sample_one_in: int


class Windows(TypedDict):
    """The windows of a segment all together; windows.npy has them one by one."""

    count: int
    open_ns: int


# A record of the kernel's log that is no good news; `class` is a word of Python's own. `by`: "kernel" or "program".
KernelEvent = TypedDict(
    "KernelEvent", {"class": str, "t_ns": int, "sequence": int, "level": int, "by": str, "text": str}
)


class WaitPlace(TypedDict):
    """A place in the kernel where threads of a load on files have slept."""

    bucket: str
    function: str
    stack: str
    count: int
    ns: int


class Probe(TypedDict, total=False):
    """What a probe in the kernel says of itself and counted; which keys it has depends on the probe."""

    status: str
    reason: str | None
    remedy: str | None
    absent: dict[str, str]
    programs: str
    requests: str
    self_test: Json
    classes: list[str]
    part_of: dict[str, str]
    devices: list[str]
    page_bytes: int
    block_bytes: int
    file_systems: list[Json]
    totals: dict[str, dict[str, int]]
    lost: dict[str, int]
    identity: dict[str, Json]
    cost: Json
    # of file_waits
    places: list[WaitPlace]
    arrivals_unseen: int
    # of worker_waits
    workers: list[Json]
    # of the breakdown
    buckets: list[str]
    wait_names: dict[str, str]
    boundaries: dict[str, str]
    sampling: Json
    syncs: dict[str, int]
    request_counts: dict[str, int]
    processes: list[Json]
    server_ended_ns: int
    checks: list[Json]
    # of the profile
    profile: Json
    # of system calls and syncs
    calls: list[str]
    call_totals: dict[str, dict[str, Json]]
    calls_share: float
    other_calls: dict[str, Json]
    others_share: float
    sync_totals: dict[str, dict[str, Json]]
    open_ns_max: int
    # of block devices
    operations: list[str]
    request_totals: dict[str, dict[str, dict[str, Json]]]
    disk_requests: dict[str, Json]
    # of calls of NFS
    mounts: list[Json]
    interfaces: list[str]
    packets: int
    packets_elsewhere: int
    ring_bytes: int
    handles: int
    handles_untold: int
    before_ns: list[int]
    after_ns: list[int]
    thread_cpu_ns: int
    tasks: Json  # the client's own calls, absent where they cannot be had
    # of the kernel's log and of its caches
    boot_id: str
    before: int | None
    last: int | None
    records: int
    counts: dict[str, int]
    events: list[KernelEvent]
    slabs: list[str]
    bytes_min: int
    # of the machine's own speed
    cpus: list[int]
    every_ms: int
    multiplications: int
    additions: int
    memory_steps: int
    memory_bytes: int
    memory_page_bytes: int
    missed: int


class Summary(TypedDict, total=False):
    """summary.json of one segment."""

    format: int
    workload: str
    kinds: list[str]
    first_index: int
    next_index: int
    indexes_left_out: int
    started_ns: int
    ended_ns: int
    epoch_minus_monotonic_ns: int
    ended_by: str
    identity: Identity
    by_kind: dict[str, ByKind]
    errors: list[ErrorEntry]
    health: Health
    verification: Verification
    totals: dict[str, int]
    backend_pids: list[int]
    devices: list[str]
    server_commits_beside: int
    rows: Rows
    windows: Windows
    schedule: Json
    planned_rate: float | None
    mode: str
    describe: bool
    retries: int
    reconnects: int
    requests_sent: int | None
    facts: Json
    probes: dict[str, Probe]
    instrument: Json  # of a watch: the CPU time that Plimsoll's own processes took (breakdown.md)
    synthetic: str  # of a record that was made for tests: by what


def summed(identities: Sequence[Identity]) -> Identity:
    """Transactions of several segments together."""
    return {
        "planned": sum(int(one.get("planned") or 0) for one in identities),
        "done": sum(int(one.get("done") or 0) for one in identities),
        "failed": sum(int(one.get("failed") or 0) for one in identities),
        "skipped": sum(int(one.get("skipped") or 0) for one in identities),
        "lost": sum(int(one.get("lost") or 0) for one in identities),
    }


def accounted(identity: Identity) -> int:
    """How many transactions have an outcome."""
    whole = summed([identity])
    return whole["done"] + whole["failed"] + whole["skipped"] + whole["lost"]
