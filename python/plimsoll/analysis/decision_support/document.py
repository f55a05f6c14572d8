"""The `decision_support` of verdict.json as types (schema/verdict.md).

The fact that constrains it: a trial's reading is made of the record alone and stands in the verdict as it was read, so
what the record lacks is null here and no key is ever absent. Times are seconds where a name does not say otherwise.
"""

from typing import TypedDict

from plimsoll.record.trial import Answers, LoadTest
from plimsoll.record.verdict import Mean


class Work(TypedDict):
    """One query or refresh function of a test, whatever became of it; times since the test began."""

    stream: int | str | None
    name: str
    title: str | None
    from_s: float | None
    to_s: float | None
    status: str
    error: str | None
    rows: int | None
    set: int | None
    own_s: float | None  # what a driver that shares the server's process took of it
    plan: str | None


class Timeline(TypedDict):
    """One test of a trial: what its streams did when."""

    test: str
    segment: str
    elapsed_s: float | None
    work: list[Work]


class FigureOfTest(TypedDict):
    """The figure of a test, or why it has none."""

    value: float | None
    why_absent: str | None
    notes: list[str]


class ThroughputTest(FigureOfTest):
    """One throughput test of a trial, and what befell it."""

    elapsed_s: float | None
    remarks: list[str]


class TrialReading(TypedDict):
    """What the tests of one trial gave."""

    number: int
    scale_factor: float
    streams: int | None  # of the throughput test
    load_test: LoadTest | None
    answers: Answers | None
    figures: dict[str, FigureOfTest]  # by metric, of the tests that were asked for
    runs: list[ThroughputTest]
    cut: list[str]  # what was begun and not ended, in words
    times_s: dict[str, dict[str, list[float]]]  # by test and query, of what was done
    segments: list[Timeline]


class AbsentFigure(TypedDict):
    """A trial of which a test has no figure."""

    trial: int
    why: str | None


class MetricOver(TypedDict):
    """One metric over the blocks of a treatment."""

    estimate: Mean | None
    absent: list[AbsentFigure]
    notes: list[str]


class LoadPhase(TypedDict):
    """One phase of the load test over blocks."""

    phase: str
    seconds: Mean | None


class LoadTable(TypedDict):
    """One table of the load test over blocks; bytes are those of COPY."""

    table: str
    rows: int
    seconds: Mean | None
    rows_per_second: Mean | None
    bytes_per_second: Mean | None


class Load(TypedDict):
    """The load test of a treatment; times of phases and of tables overlap."""

    phases: list[LoadPhase]
    tables: list[LoadTable]


class BlockSeconds(TypedDict):
    """What a query took in one block."""

    block: int
    value: float


class QueryTime(TypedDict):
    """Seconds of one query over blocks; null where it was never done."""

    value: float | None
    low: float | None
    high: float | None
    blocks: int
    points: list[BlockSeconds]
    failed: list[int]  # trials


class Drifted(TypedDict):
    """One throughput test of a series over blocks, by its number."""

    run: int
    value: Mean | None
    elapsed_s: float | None
    change: Mean | None  # against the first, as shares
    verdict: str | None
    remarks: list[str]


class Share(TypedDict):
    """A change as a share, with its interval."""

    value: float
    low: float
    high: float


class LinePoint(TypedDict):
    """The straight line at one test: a share of the mean of the first tests."""

    run: int
    change: float


class Trend(TypedDict):
    """What became of throughput over the tests of a series."""

    tests: int
    blocks: int
    a_test: Share | None  # from one test to the next
    over_all: Share | None  # from the first to the last
    line: list[LinePoint]
    verdict: str


class TreatmentOfTests(TypedDict):
    """The tests of one treatment."""

    trials: list[int]
    scale_factor: float | None
    streams: int | None
    metrics: dict[str, MetricOver]
    load: Load | None
    queries: dict[str, dict[str, QueryTime]]  # by test and query
    parts: dict[str, dict[str, float]]  # by query and part, nanoseconds
    drift: list[Drifted]
    trend: Trend | None


class TreatmentPair(TypedDict):
    """Two treatments that are set against each other: the second over the first."""

    first: str
    second: str
    at: dict[str, str]
    first_label: str
    second_label: str


class QueryChange(TreatmentPair):
    """How many times as long a query takes under the second treatment."""

    test: str
    query: str
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    verdict: str
    plan: str | None  # "other", "varies"; null where the plans are the same or not known


class TimesAsLong(TypedDict):
    """A query's change of time, as it stands beside its change of plan."""

    ratio: float
    low: float | None
    high: float | None
    verdict: str


class PlanChange(TreatmentPair):
    """A query whose plans differ between the two treatments."""

    query: str
    blocks: int  # that have both plans
    differ: int  # of them
    change: TimesAsLong | None  # of the power test, whose queries the plans are of
    is_told: bool  # they differ in each block, and neither treatment has two plans of its own
    first_plan: list[str]
    second_plan: list[str]


class DecisionSupport(TypedDict):
    """`decision_support`: DBT-3's figures by treatment, and what changed between treatments."""

    like: str
    rule: str
    names: dict[str, str]  # by metric
    treatments: dict[str, TreatmentOfTests]
    changes: list[QueryChange]
    plans: list[PlanChange]
    trials: list[TrialReading]
