"""What a watch hears, as types: the agent's lines (schema/agent.md), the looks, and the names of activity.json.

The fact that constrains it: the same comes from the agent and the looker while the server is watched, and from the
record afterwards (schema/breakdown.md). Times are nanoseconds of CLOCK_MONOTONIC, durations nanoseconds.
"""

from typing import NotRequired, TypedDict

from plimsoll.analysis.watch.document import OurSession, QueryText, Session

# A process in a look: its number, kind, state, query (a number), wait event, leader, since when it is in this state,
# the begin of its transaction, session (a number).
SeenRow = tuple[int, str, str, int, str | None, int | None, int | None, int | None, int]


class WaitGrown(TypedDict):
    """What one kind of wait of a process grew by."""

    event: int | str | None  # a number of the server's, or a name already
    bucket: str
    count: int  # that began
    ns: int


class NowHeard(TypedDict, total=False):
    """What a process does at a line."""

    state: str | None
    event: int | str | None
    bucket: str | None
    since_ns: int | None
    transaction_ns: int | None


class ProcessGrown(TypedDict):
    """What one process of the server grew by since the line before."""

    pid: int
    what: str | None  # its role; null: a client's
    transactions: NotRequired[int | None]
    requests: NotRequired[int | None]
    cpu_ns: NotRequired[int | None]
    run_queue_ns: NotRequired[int | None]
    waits: NotRequired[list[WaitGrown]]
    now: NotRequired[NowHeard | None]


class AgentLine(TypedDict):
    """One line of the agent."""

    event: NotRequired[str]
    t_ns: int  # its end
    lasted_ns: int
    watched_ns: NotRequired[int]  # of it; absent: all
    server_ended: NotRequired[bool]
    names: NotRequired[dict[str, str]]  # of wait events, by number: those that are new
    processes: list[ProcessGrown]


class LockLook(TypedDict):
    """A process that waits for a lock, in a look."""

    pid: int
    blockers: list[int]
    kind: str
    mode: str
    relation: str | None
    since_ns: int | None


class Look(TypedDict):
    """One look at pg_stat_activity."""

    event: NotRequired[str]
    t_ns: int
    took_ns: int
    idle: int
    seen: list[SeenRow]
    queries: NotRequired[dict[str, QueryText]]  # those that are new, by number
    sessions: NotRequired[dict[str, Session]]
    locks: NotRequired[list[LockLook]]  # where locks were looked at
    locks_t_ns: NotRequired[int]


class Activity(TypedDict):
    """activity.json: the names that the tables of a watch have places of."""

    format: int
    roles: list[str | None]
    buckets: list[str]
    kinds: list[str]
    states: list[str]
    events: list[str | None]
    lock_kinds: list[str]
    modes: list[str]
    relations: list[str | None]
    queries: dict[str, QueryText]
    sessions: dict[str, Session]
    wait_names: dict[str, str]
    own_pids: list[int]
    session: OurSession | None
    last_line: AgentLine | None
