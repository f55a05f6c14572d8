"""verdict.json's entries as types: trials, treatments and comparisons, as the analysis makes them (schema/verdict.md).

The fact that constrains it: what is not known is null and never absent, so every key of these is there. Parts of a
verdict add keys of their own to trials and treatments.
"""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from plimsoll.record.judged_trial import Commits, Generator, Placement, Placements, Stationary, Throughput
from plimsoll.record.summary import ErrorEntry, Identity


class Mean(TypedDict):
    """A mean over blocks with its interval; null ends below three blocks."""

    value: float
    low: float | None
    high: float | None
    blocks: int
    unbounded: NotRequired[int]  # blocks in which it is only the least it can be: then it has no interval
    stood_still: NotRequired[bool]  # in those nothing was done: of a rate it is the most it can be


class Ratio(TypedDict):
    """A ratio within blocks; null where it is not known."""

    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    bound: NotRequired[str]  # "at least", "at most", "unknown": where it is no more than a bound


class JudgedRatio(Ratio):
    """A ratio, and what it says."""

    verdict: str


class PairOfLevels(JudgedRatio):
    """The metric of the second level over the first."""

    first: str
    second: str
    through: NotRequired[str]  # the treatment by which levels are compared that were never up at once


class Point(TypedDict):
    """One trial of a level."""

    block: int
    trial: int
    value: float | None


class InBlocks(TypedDict):
    """In how many blocks of how many something is so."""

    blocks: int
    of: int
    stood_still: NotRequired[bool]  # of a rate: in those blocks nothing was done


class Level(TypedDict):
    """One level of a comparison."""

    treatment: str
    level: str
    value: Any
    estimate: float | None
    low: float | None
    high: float | None
    blocks: int
    unbounded: InBlocks | None
    points: list[Point]
    in_best_set: bool
    against: str | None
    times_slower: Ratio | None
    verdict: str
    why: str | None


class Noise(TypedDict):
    """How a trial scatters, and the ratio from which on two levels can be told apart."""

    sd_log: float
    freedom: int
    ratio_told: float
    levels: NotRequired["NoiseLevels"]  # of windows alone


class NoiseLevels(TypedDict):
    """Where the scatter of a trial made in windows comes from; standard deviations of logs."""

    window_sd_log: float  # of one window, as far as the mean of many is concerned
    windows_sd_log: float  # of all windows of a trial together
    start_sd_log: float | None  # of one start; null where one block cannot tell
    window_share: float | None  # of a trial's variance
    rounds: int  # the fewest of a block
    starts_from: str | None  # the stored A/A run that starts are known from, where they are


class WindowsNoise(TypedDict):
    """How windows and starts scatter over all treatments of a run, as a stored A/A keeps it; sds of logs."""

    window_sd_log: float  # of one window, as far as the mean of many is concerned
    window_seconds: float  # how long it counts
    correlation: float  # of neighbouring rounds
    trial_sd_log: NotRequired[float | None]  # of one trial, its start and its windows together; null from one block
    windows_sd_log: NotRequired[float]  # of all windows of one trial together
    start_sd_log: float | None  # of one start, as what the windows leave of a trial; null from one block
    start_freedom: float | None


class EqualPair(TypedDict):
    """Two trials of a treatment in a block."""

    block: int
    treatment: str
    ratio: float


class WithinRun(TypedDict):
    """How much a run's own duplicates differ: where some are `unbounded` the spread is the least it can be."""

    metric: str
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    grade: str
    ratio_spread: float
    unbounded: int | None
    sd_log: float | None
    pairs: list[EqualPair]


class StoredEquals(TypedDict, total=False):
    """The same of the newest A/A run of the machine, as run.json has it; of an earlier version it lacks keys."""

    run: str
    epoch_ns: int
    metric: str
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    grade: str
    ratio_spread: float | None
    unbounded: int | None
    sd_log: float | None
    pairs: list[EqualPair]
    windows: WindowsNoise | None


class Equals(TypedDict):
    """How much equals differ: the run's own, the stored, and the spread of the one that decides."""

    definition: str
    within_run: WithinRun | None
    stored: StoredEquals | None
    source: str | None
    ratio_spread: float | None
    blocks: int | None


class Comparison(TypedDict):
    """Levels of one factor, the others standing still."""

    factor: str
    label: str
    unit: str | None
    at: dict[str, str]
    at_labels: dict[str, str]
    metric: str
    grade: str
    blocks: int
    blocks_min: NotRequired[int]  # below which nothing is told; absent from verdicts of earlier versions: 3
    delta: float
    reference: str | None
    best_set: list[str]
    best_set_alike: bool
    levels: list[Level]
    pairs: list[PairOfLevels]
    noise: NotRequired[Noise | None]  # absent from verdicts of earlier versions


class TrialEntry(TypedDict):
    """One trial, judged: whether it enters, and its numbers."""

    number: int
    block: int
    position: int | None
    treatment: str
    levels: dict[str, str]
    duplicate: bool
    status: str
    admitted: bool
    reasons: list[str]
    caveats: list[str]
    metrics: dict[str, float | None]
    unbounded: dict[str, float] | None
    latency_ns: dict[str, dict[str, float | None]]  # by kind; `count`, `max` and percentiles
    latency_source: str | None
    throughput: Throughput | None
    placement: Placement | None
    identity: Identity | None
    errors: list[ErrorEntry]
    commits: Commits
    generator: Generator
    stationary: Stationary
    reconciliation: NotRequired[Any]  # of the part of that name: its type stands in its room, analysis/caches


Used = Mapping[tuple[int, str], TrialEntry]  # the trial that stands for each block and treatment


class MergedMean(Mean):
    """A percentile of the transactions of all trials together; `bound`: "at least", among the unanswered."""

    bound: NotRequired[str]


class MergedLatency(TypedDict):
    """Latency of all trials together, of one kind, in nanoseconds."""

    count: int
    p50: MergedMean | None
    p90: MergedMean | None
    p95: MergedMean | None
    p99: MergedMean | None
    p999: MergedMean | None
    p9999: NotRequired[MergedMean | None]  # absent from verdicts of earlier versions


class Treatment(TypedDict):
    """One treatment: every metric with its interval over blocks."""

    label: str
    levels: dict[str, str]
    trials: list[int]
    blocks: int
    grade: str
    metrics: dict[str, Mean | None]
    latency_ns: dict[str, dict[str, Mean | None]]
    latency_merged_ns: dict[str, MergedLatency]
    reconciliation: NotRequired[Any]  # of the parts of these names, likewise
    double_caching: NotRequired[Any]


class GeneratorOfRun(TypedDict):
    """The worst of the trials that entered, and what shared cores alone could explain; null where not known."""

    rule: str
    blocked_trials: list[int]
    shares_cores: bool | None
    core_share_max: float | None
    busy_share_max: float | None
    lag_share_max: float | None
    # absent from verdicts of earlier versions
    own_lag_share_max: NotRequired[float | None]
    connections_busy_share_max: NotRequired[float | None]
    explains_ratio_max: float | None
    explains_between_trials_ratio: float | None
    placement: NotRequired[Placements]  # the same


class IdentityOfRun(Identity):
    """All trials together, and whether that adds up."""

    holds: bool


class Exclusion(TypedDict):
    """A trial that enters no verdict, and why."""

    trial: int
    treatment: str
    block: int
    reasons: list[str]


class MetricShown(TypedDict):
    """What a metric is; `scale`: "log" or "plain", on which its intervals are made."""

    label: str
    unit: str
    scale: str
    definition: str


class Verdict(TypedDict):
    """What every verdict.json has; the parts of a run stand beside it under their own keys."""

    format: int
    run: str | None
    experiment: str | None
    title: str | None
    quick: bool
    metric: str
    unit_of_work: str
    relevant_ratio: float
    alpha: float
    confidence: float
    blocks: int
    comparisons: list[Comparison]
    treatments: dict[str, Treatment]
    trials: list[TrialEntry]
    a_a: Equals
    generator: GeneratorOfRun
    throughput_method: str
    identity: IdentityOfRun
    exclusions: list[Exclusion]
    caveats: list[str]
    stationarity_test: str
    metrics: dict[str, MetricShown]
