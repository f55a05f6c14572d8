"""capacity.json as types: a search for the load line, judged (schema/capacity.md).

The fact that constrains it: earlier searches beside a run are compared with it from the documents that were written
then, so a key that later versions added may be absent there. Rates are per second, times nanoseconds; what is not
known or not bounded is null.
"""

from typing import NotRequired, TypedDict, final

from plimsoll.record.trial import Check


class PercentileLimit(TypedDict):
    """A term of the objective."""

    level: float  # 99.9
    limit_ns: float


class ObjectiveAsked(TypedDict):
    """What had to hold at once."""

    text: str
    percentiles: list[PercentileLimit]
    errors: float | None  # a share; null: no term speaks of errors
    conforming: NotRequired[float]  # the share of connections that had to conform; then it is the only term


class PercentileFound(TypedDict):
    """A percentile of one trial, in nanoseconds."""

    value: float | None
    low: float | None
    high: float | None
    operations: int
    design_effect: float | None


@final
class PercentileTerm(PercentileFound):
    """A percentile of the objective, against its limit."""

    term: str
    limit_ns: float


@final
class ErrorsTerm(TypedDict):
    """The share of errors or of conforming connections, against its limit."""

    term: str
    limit: float
    value: float
    low: float
    high: float


Term = PercentileTerm | ErrorsTerm


class BacklogFound(TypedDict):
    """Whether outstanding operations grew over the segment, and by how many."""

    building: bool
    growth: float
    mean: float
    p_value: float


class GeneratorHealth(TypedDict):
    """How the load generator did."""

    load_busy_share: float | None
    busy_connections: float | None  # mean
    lag_ns_mean: float | None
    threads: int


Conditions = dict[str, float | None]  # by the name of a condition, and the checkpoints that began


class SearchTrial(TypedDict):
    """A trial of the search; what follows `conditions` is absent where it left nothing to judge."""

    number: int
    role: str | None
    rate: float | None  # null: the closed loop
    seconds: float | None
    status: str
    reason: str | None
    verdict: str | None
    reasons: list[str]
    caveats: list[str]
    conditions: Conditions
    throughput: NotRequired[float]
    identity: NotRequired[dict[str, int]]
    error_share: NotRequired[float]
    mean_ns: NotRequired[float | None]
    percentiles: NotRequired[dict[str, PercentileFound]]
    health: NotRequired[GeneratorHealth]
    # Of a planned rate alone.
    disturbed: NotRequired[str | None]  # what the hypervisor took, in words
    excess: NotRequired[float]  # the largest logarithm of a value over its limit
    terms: NotRequired[list[Term]]
    backlog: NotRequired[BacklogFound | None]


class LoadLine(TypedDict):
    """The highest rate at which the objective holds."""

    status: str
    rate: float | None
    low: float | None
    high: float | None
    trials_near: int
    generator: bool  # what stood in the way was the generator
    more: NotRequired[float | None]  # about how many times as long a search could tell; absent of earlier versions


class KneeFound(TypedDict):
    """Where the queue starts to grow."""

    rate: float
    low: float | None  # null: it grows at the lowest rate tried
    high: float
    why: str
    level_ns: float  # median latency without a queue
    place: str | None  # against the line


class ConditionWords(TypedDict):
    """What a condition is called."""

    label: str
    unit: str


class DriftEnd(TypedDict):
    """One of the two trials that lie farthest apart."""

    number: int
    rate: float
    value: float  # ns


class DriftedCondition(ConditionWords):
    """A condition that went with the latency: medians of the faster and the slower half."""

    condition: str
    fast: float
    slow: float
    correlation: float  # of ranks


class DriftFound(TypedDict):
    """What trials at one rate say of the machine."""

    percentile: str
    trials: int
    p_value: float
    drifted: bool
    fast: DriftEnd
    slow: DriftEnd
    moved: list[DriftedCondition]


class ClosedLoop(TypedDict):
    """What all connections together got done, whatever the latency."""

    number: int
    throughput: float
    clients: int


class ComparedLine(TypedDict):
    """One of two searches that are compared."""

    run: str | None
    started_epoch_ns: int | None
    line: LoadLine
    knee: KneeFound | None


class MovedCondition(ConditionWords):
    """A condition that differs between the trials near two lines: their medians."""

    condition: str
    first: float
    second: float
    change: float  # a difference of shares, of others the logarithm of the ratio


class LinesCompared(TypedDict):
    """Two load lines, the second over the first."""

    format: int
    first: ComparedLine
    second: ComparedLine
    ratio: float | None
    low: float | None
    high: float | None
    agree: bool | None  # null: cannot tell
    rule: str
    moved: list[MovedCondition]
    differences: list[str]


class Capacity(TypedDict):
    """capacity.json."""

    format: int
    run: str | None
    experiment: str | None
    title: str | None
    status: str | None
    started_epoch_ns: int | None
    quick: bool
    subject: str | None
    objective: ObjectiveAsked
    arrivals: str | None
    clients: int | None
    clients_called: NotRequired[str]  # absent of earlier versions: connections
    budget_seconds: float | None
    seed: int | None
    line: LoadLine
    knee: KneeFound | None
    drift: DriftFound | None
    closed_loop: ClosedLoop | None
    trials: list[SearchTrial]
    conditions: dict[str, ConditionWords]
    checks: list[Check] | None
    rules: dict[str, str]
    caveats: list[str]
    earlier: NotRequired[list[LinesCompared]]  # added by the verb, which knows the runs beside this one
