"""What verdict.json says of one trial beside its metrics, as types: its load, its server's commits, its caches.

The fact that constrains it: of a trial that did not finish hardly anything was judged, so that some of these are empty.
"""

from typing import NotRequired, TypedDict


class Throughput(TypedDict):
    """Transactions per second over whole seconds of a trial; null ends where there are too few of them."""

    mean: float
    low: float | None
    high: float | None
    seconds: int
    effective_seconds: float
    sd: float


class Placement(TypedDict):
    """The CPUs of server, load and agent, as lists in text; null: anywhere, or not known."""

    target: str | None
    load: str | None
    agent: str | None


class PlacedTrials(Placement):
    """A placement, and how many trials had it."""

    trials: int


class Placements(TypedDict):
    """Whether a factor sets the CPUs, and whether they were the same in every trial (null where not known)."""

    varied: bool
    equal: bool | None
    placements: list[PlacedTrials]


class Commits(TypedDict, total=False):
    """The server's count of commits against the done transactions; `ok` is null where that cannot be told."""

    ok: bool | None
    rule: str
    commits: int
    done: int
    rolled_back: int  # of those done, where the workload rolls any back
    lost: int
    beside: int | None  # what the clients commit on their own, by the agent
    excess: int
    connections: int


class Backlog(TypedDict):
    """Whether operations outstanding grow in number; `growth` in operations over the segment, p one-sided."""

    building: bool
    growth: float
    mean: float
    p_value: float


class Generator(TypedDict, total=False):
    """The load generator's health; `limit`: why it was the limit, empty when it was not."""

    busy_share: float | None
    core_share: float | None
    shares_cores: bool | None
    explains_ratio: float | None
    lag_share: float | None
    own_lag_share: float | None
    own_lag_ns_mean: float | None
    connections_busy_share: float | None
    achieved_share: float | None
    backlog: Backlog | None
    records_dropped: int | None
    limit: list[str]
    notes: list[str]


class Approach(TypedDict):
    """What is left of one measure to its asymptote, in the measure's own unit, and what of that is allowed."""

    level: float
    distance: float
    bound: float
    evidence: float
    allowed: float
    reached: bool
    filling: bool
    intervals: int


class StationaryDetail(TypedDict):
    """What was looked at, by measure; `why`: why rest could not be shown."""

    seconds: float
    series: dict[str, Approach]
    why: NotRequired[str]
    room_blocks: NotRequired[float]  # of the server's cache, where it is known
    turns: NotRequired[float]  # how often it was filled since the start


class Stationary(TypedDict, total=False):
    """Whether the caches stood still: of the warm-up as trial.json has it, and of its end with what was measured."""

    warmup_reached: bool | None
    warmup_seconds: float | None
    measured_reached: bool
    measured_filling: bool
    detail: StationaryDetail
