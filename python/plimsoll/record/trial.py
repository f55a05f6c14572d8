"""trial.json as a type: what became of one trial, written by the run stage.

The fact that constrains it: whatever a machine could not give is null or absent, never 0, and a trial that failed early
has little of it. schema/record.md says what each means.
"""

from typing import Any, Final, TypedDict

Json = dict[str, Any]
FINISHED: Final = "finished"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"  # a design left it out because it was not needed: no loss
RESULTS: Final = (
    FINISHED,
    FAILED,
    SKIPPED,
)  # a trial that has none of these, as one that was stopped, is still to be done


class Check(TypedDict, total=False):
    """One thing that has to hold of the data."""

    name: str
    expected: str | int
    found: str | int
    ok: bool


class Cpus(TypedDict, total=False):
    """CPUs that server and load were kept on, as lists in text; null: anywhere."""

    target: str | None
    load: str | None


class Group(TypedDict, total=False):
    """The server's control group."""

    version: int
    limit_bytes: int | None
    swap_limit_bytes: int | None
    oom_kills: int | None


class Server(TypedDict, total=False):
    """The server's version and settings."""

    version: str
    settings: Json
    durability: Json


class DoubleCaching(TypedDict, total=False):
    """What both caches held, before and after the measured segment; or why that is not known."""

    before_measure: Json | None
    after: Json | None
    absent: str | None


class Windows(TypedDict, total=False):
    """Of a server that took turns with others: how long its windows were, and what freezing took."""

    seconds: float
    lead_in_seconds: float
    rounds: int
    thaw_ns: Json | None
    freeze_ns: Json | None
    frozen_seconds: float
    stood_still_seconds: float  # only of one that failed because a window's transactions did not end
    at_turns: Json


class LoadPhase(TypedDict):
    """A phase of a load test, in seconds since it began."""

    phase: str
    began_s: float
    ended_s: float


class LoadWork(TypedDict, total=False):
    """What a phase did with one table; `rows` and `bytes` of the phase that loads rows."""

    phase: str
    table: str
    rows: int
    bytes: int
    began_s: float
    ended_s: float


class LoadTest(TypedDict, total=False):
    """How the tables were made and filled, as the agent's `populate` tells it; phases and work overlap."""

    tables: dict[str, int]  # rows
    bytes: int
    table_bytes: dict[str, int]
    seconds: float
    phases: list[LoadPhase]
    work: list[LoadWork]


class Answers(TypedDict):
    """Answers to the queries, compared with right ones: "known", or those of "duckdb"."""

    against: str
    checks: list[Check]


class Searched(TypedDict, total=False):
    """A trial's place in a search for the load line; `rate` null: the closed loop."""

    role: str
    rate: float | None
    seconds: float
    clients: int
    late_limit_ms: float


class TrialDocument(TypedDict, total=False):
    """trial.json."""

    number: int
    block: int
    treatment: str
    duplicate: bool
    status: str
    reason: str | None
    again: Json
    server_log_tail: str | None
    phases: list[Json]
    epoch_minus_monotonic_ns: int
    stationary: Json | None
    counters: Json
    device_counters: Json
    member_counters: Json
    group_counters: Json | None
    residency: Json | None
    double_caching: DoubleCaching
    checks: list[Check]
    ledger: Json | None
    server: Server
    cache: Json
    repeated: Json
    cpus: Cpus
    group: Group | None
    caveats: list[str]
    windows: Windows
    layout: Json  # where the files lay
    silences: list[Json]  # of the servers of its mounts by NFS
    synthetic: str  # of a record that was made for tests: by what
    # of decision support
    tests: list[Json]
    measured_segment: str
    load_test: LoadTest | None
    load_checks: list[Check] | None
    answers: Answers | None
    sittings: int
    cut: list[Json]
    # of phases over files
    passes: list[Json]
    # of a soak: of the trial, and of each of its rounds (round.json)
    soak: Json
    round: int
    attempt: int
    sitting: int
    begins_cold: bool
    began_epoch_ns: int
    ended_epoch_ns: int
    crashes: list[Json]
    sizes: dict[str, int]
    front_bytes: int
    front_most_bytes: int
    thinned: Json
    # of a search for the load line
    capacity: Searched
