"""breakdown.json as types: a server at work, as it was watched (schema/breakdown.md).

The fact that constrains it: the terminal shows the first part while the server is watched, and the record gives the
same again. Durations are nanoseconds, *busy* is all but the wait for the client inside a transaction; what is not known
is null. What the agent and the looks said, line by line, is no part of it.
"""

from typing import Any, NotRequired, TypedDict

Part = tuple[str, float]  # a bucket, and its share
Session = list[str | None]  # database, user, program


class Clients(TypedDict):
    """What clients do at the end."""

    busy: int
    idle_in_transaction: int
    idle: int | None  # null: no look told


class BucketRow(TypedDict):
    """The time in one bucket."""

    bucket: str
    ns: int
    share: float | None  # of the busy time; null of the wait for the client
    backends: float | None  # mean number in it
    ns_per_transaction: float | None


class WaitRow(TypedDict):
    """The time in one wait, by the server's name."""

    event: str
    bucket: str
    count: int
    ns: int
    ns_each: float | None
    per_second: float | None
    share: float | None


class QueryText(TypedDict):
    """A query as a look told it."""

    text: str
    query_id: int | None
    cut: bool  # the server was asked for its beginning only


class QueryRow(TypedDict):
    """The time of one query: exact, and shared out by looks."""

    text: str | None
    cut: bool
    query_id: int | None
    busy_ns: float
    exact_ns: float
    share: float | None
    margin: float | None  # half the 95 % interval of the share
    looks: int
    backends: int
    buckets: dict[str, float]
    mostly: list[Part]
    client_ns: float
    sessions: list[Session | None]


class Sharing(TypedDict):
    """How much was shared out by how many looks, and what no look saw."""

    looks: int
    sessions_seen: int
    exact_ns: int
    sampled_ns: int
    unshared: dict[str, int]


class Now(TypedDict):
    """What a backend does at the last line."""

    state: str | None
    event: str | None
    bucket: str | None
    since_ns: int
    transaction_ns: int | None


class Whose(TypedDict):
    """Whose a backend is and its query, its last one where it is idle; nulls where no look saw it."""

    query: str | None
    database: str | None
    user: str | None
    application: str | None
    state: str | None


class BackendRow(Whose):
    """The time of one backend with its parallel workers."""

    pid: int
    what: str | None  # null: a client's
    workers: list[int]
    transactions: int
    busy_ns: int
    busy: float | None
    client_ns: int
    buckets: dict[str, int]
    mostly: list[Part]
    now: Now | None


class LockWait(TypedDict):
    """One process in another's way."""

    waiter: int
    blocker: int  # 0: a prepared transaction
    kind: str
    mode: str
    relation: str | None
    ns: int
    looks: int


class SeenLockWait(LockWait):
    """A wait that looks saw."""

    now: bool  # it still lasts


class ChainRow(TypedDict):
    """A process in a chain of waits; who waits for nobody has a depth of 0 and no wait of its own."""

    pid: int
    depth: int
    waiter: NotRequired[int]
    blocker: NotRequired[int]
    kind: NotRequired[str]
    mode: NotRequired[str]
    relation: NotRequired[str | None]
    ns: NotRequired[int]
    looks: NotRequired[int]


class RelationRow(TypedDict):
    """How often somebody was seen waiting for a lock on a relation."""

    relation: str | None  # null: not told
    looks: int


class ProcessRow(TypedDict):
    """The server's own processes of one kind."""

    what: str
    processes: int
    cpu_ns: int
    on_cpu: float | None
    waits: list[WaitRow]
    at_work_on: list[str | None]


class Stretch(TypedDict):
    """A stretch of time; all of it is `span_ns`, what was watched of it `lasted_ns`."""

    t_ns: int  # its end
    span_ns: int
    lasted_ns: int
    transactions: int
    buckets: dict[str, int]


class PictureDocument(TypedDict):
    """The picture, at the end or so far."""

    watched_ns: int
    transactions: int
    requests: int
    transactions_per_second: float | None
    busy_ns: int
    busy_backends: float | None
    client_ns: int
    clients: Clients
    buckets: list[BucketRow]
    plain: dict[str, str]  # buckets in words
    waits: list[WaitRow]
    queries: list[QueryRow] | None  # null without looks
    sharing: Sharing | None
    backends: list[BackendRow]
    backends_left_out: int
    chains: list[ChainRow]
    lock_waits: list[SeenLockWait]
    relations: list[RelationRow]
    processes: list[ProcessRow]
    seconds: list[Stretch]


class WatchedServer(TypedDict, total=False):
    """The server that was watched, as run.json names it."""

    pid: int
    data_directory: str
    major: str
    port: int | None
    owner: str | None


class OurSession(TypedDict, total=False):
    """Plimsoll's session on the server, or why there was none."""

    pid: int
    user: str
    database: str
    sees_all: bool
    version: str
    version_number: int
    settings: dict[str, Any] | None  # as trial.json has its `server`
    why: str
    lost: str


class LooksTaken(TypedDict):
    """How many looks there were and what they took."""

    count: int
    per_second: float | None
    took_ns_p50: float
    took_ns_p99: float


class SlowTransaction(TypedDict):
    """One of the slowest transactions."""

    pid: int
    began_ns: int
    ns: int
    requests: int | None
    open: bool  # under way at the end
    parts: dict[str, int]
    query: str | None


class Latency(TypedDict):
    """The transactions that ended, and the slowest of all."""

    count: int
    open: int
    mean_ns: float | None
    percentiles: dict[str, float]  # by "50"
    max_ns: int | None
    slowest: list[SlowTransaction]


class Cost(TypedDict):
    """Shares of the machine's CPU time that watching took."""

    probe_share: float | None
    looks_share: float | None
    plimsoll_share: float | None
    cpus: int | None


class ProbeTold(TypedDict):
    """What the probe says of itself."""

    status: str | None
    reason: str | None
    lost: dict[str, int]
    boundaries: dict[str, str]


class Watched(PictureDocument):
    """All that was watched, before it is put in words."""

    format: int
    run: str
    status: str | None
    started_epoch_ns: int | None
    asked_seconds: float | None
    server: WatchedServer
    session: OurSession
    looks: LooksTaken | None
    latency: Latency | None
    cost: Cost
    probe: ProbeTold
    ended_early: str | None


class WatchDocument(Watched):
    """breakdown.json."""

    headline: str
    caveats: list[str]
