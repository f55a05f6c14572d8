"""Table [workload] of `decision_support`: DBT-3's load, power and throughput tests, derived from TPC-H.

The fact that constrains it: a test is measured whole, from its first statement to its last. There is no number of
seconds to choose and no warm-up; what goes before a test is another test. Results are "-like", not comparable to
published ones.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Seed
from plimsoll.experiment.workloads import base
from plimsoll.experiment.workloads.base import ONE_A_RUN, AnyWorkload, Json, NotAsked

Test = Literal["load", "power", "throughput"]
Against = Literal["known", "duckdb"]
ORDER: Final[tuple[Test, ...]] = ("load", "power", "throughput")
TESTS: Final[tuple[Test, ...]] = ("power", "throughput")  # unless an experiment says otherwise
# The least streams of a throughput test, by the scale factors that results are published for.
STREAMS_MIN: Final = {
    1: 2,
    10: 3,
    30: 4,
    100: 5,
    300: 6,
    1_000: 7,
    3_000: 8,
    10_000: 9,
    30_000: 10,
    100_000: 11,
}
BYTES = 2_234_420_000  # at scale factor 1
COLUMNAR_BYTES = 400 * 2**20  # a guess: compressed columns, no keys and no indexes
# Guesses, for want of a measurement: what a stream of 22 queries takes at scale factor 1, and the rest of a pass.
STREAM_S_A_SCALE = 60.0
STREAM_S_MIN = 2.0
REFRESH_SETS = 999  # that can be told apart by their keys
# What levels may be compared by, and the tests that it takes.
JUDGED: Final[dict[str, tuple[Test, ...]]] = {
    "composite_queries_per_hour": ("power", "throughput"),
    "throughput_queries_per_hour": ("throughput",),
    "power_queries_per_hour": ("power",),
    "load_test_seconds": ("load",),
}


def streams_min(scale_factor: float) -> int:
    """The least streams at this scale factor: between two of the table those of the smaller, below it 2."""
    return max(count for least, count in STREAMS_MIN.items() if least <= max(1, scale_factor))


class DecisionSupport(AnyWorkload):
    """A decision-support load as DBT-3 has it: eight tables, 22 queries, two refresh functions."""

    is_checked_as_loaded: ClassVar[bool] = True  # of prices, before any refresh function
    made_of: ClassVar[str] = base.TESTS
    own_metrics: ClassVar[tuple[str, ...]] = tuple(JUDGED)
    private_only: ClassVar[str] = "its refresh functions change tables that others may need"

    name: Annotated[Literal["decision_support"], ONE_A_RUN]
    scale_factor: float = Field(ge=0.01, le=10_000, description="a multiple of 0.01; 1 is about a GB of rows as text")
    seed: Seed = Field(1, description="decides the queries' parameters; the rows are the same for every seed")
    ranges: Literal["specified", "qgen 2.14"] = Field(
        "specified", description='from where parameters are drawn; "qgen 2.14": with the old generator\'s two oddities'
    )
    tests: list[Test] = Field(
        default_factory=lambda: list(TESTS),
        min_length=1,
        description="what a trial is made of, always in the order load, power, throughput; without load the tables are "
        "those of a kept data set",
    )
    streams: int | None = Field(
        None, ge=1, le=1000, description="of the throughput test; by default the least that belong to the scale factor"
    )
    refresh: bool = Field(True, description="whether the refresh functions are performed, a pair a stream")
    query_timeout_seconds: float | None = Field(
        None, gt=0, le=864_000, description="a query that takes longer is cancelled, and its test has no metric"
    )
    ratio_rule: bool = Field(
        False, description="power: queries a thousand times faster than the slowest count as a thousandth of it"
    )
    explain: bool = Field(
        False, description="after the tests, the power test's queries once more under EXPLAIN (ANALYZE, BUFFERS)"
    )
    answers: bool = Field(
        False,
        description="after the load test every query's answer is compared: at scale factor 1 with the known ones, at "
        "any other with those of a DuckDB that has the same rows",
    )
    repeats: int = Field(
        1, ge=1, le=100, description="throughput tests one after the other on the same tables, with VACUUM between"
    )
    repeat_parameters: Literal["same", "new"] = Field(
        "same", description='of repeats: "same": each asks what the first asked; "new": streams that no other drew'
    )

    @field_validator("scale_factor")
    @classmethod
    def _of_hundredths(cls, value: float) -> float:
        if abs(value * 100 - round(value * 100)) > 1e-7:
            raise ValueError(f"{value:g} is not a multiple of 0.01; allowed: multiples of 0.01 from 0.01 to 10000")
        return value

    @field_validator("tests")
    @classmethod
    def _in_order(cls, value: list[Test]) -> list[Test]:
        if value != [one for one in ORDER if one in value]:
            raise ValueError(
                'given twice or out of order; allowed: of "load", "power", "throughput" some, in this order'
            )
        return value

    @model_validator(mode="after")
    def _whole(self) -> DecisionSupport:
        if self.repeats > 1 and "throughput" not in self.tests:
            raise ValueError('repeats need the throughput test; allowed: with "throughput" among the tests')
        if self.pairs > REFRESH_SETS:
            raise ValueError(
                f"{self.pairs} pairs of refresh functions, but only {REFRESH_SETS} refresh sets; allowed: fewer "
                "streams, fewer repeats, or refresh = false"
            )
        return self

    @property
    def streams_run(self) -> int:
        """Streams of the throughput test."""
        return self.streams or streams_min(self.scale_factor)

    @property
    def answers_against(self) -> Against | None:
        """What answers are compared with; None where they are not: without a load test caches are to be cold."""
        if not self.answers or "load" not in self.tests:
            return None
        return "known" if self.scale_factor == 1 else "duckdb"

    def goes_on_after_kills(self) -> bool:
        """What its tests do one after the other is the question."""
        return self.repeats > 1

    def rounds_max(self) -> int | None:
        """Each throughput test takes refresh sets, and none is used twice."""
        return REFRESH_SETS // self.streams_run if self.refresh else None

    def loads_itself(self) -> bool:
        return "load" in self.tests

    def asks_for_plans(self) -> bool:
        return self.explain

    def seed_of(self, number: int) -> int:
        """Of the throughput test `number`, from 1. Stream s of a seed draws what stream 0 of the seed plus s draws, so
        seeds lie farther apart than there are streams."""
        if self.repeat_parameters == "same":
            return self.seed
        return (self.seed + (number - 1) * (self.streams_run + 1)) % 2**63

    @property
    def pairs(self) -> int:
        """Pairs of refresh functions that a trial performs."""
        if not self.refresh:
            return 0
        throughput = self.streams_run * self.repeats if "throughput" in self.tests else 0
        return throughput + ("power" in self.tests)

    @property
    def clients(self) -> int:
        """Connections at once, at most."""
        return self.streams_run + self.refresh if "throughput" in self.tests else 1

    def request(self, memory_bytes: int) -> Json:
        del memory_bytes
        return {key: getattr(self, key) for key in ("name", "scale_factor", "seed", "ranges")}

    def data_request(self, memory_bytes: int) -> Json:
        del memory_bytes
        return {"name": self.name, "scale_factor": self.scale_factor}

    def estimated_bytes(self, memory_bytes: int = 0, *, columnar: bool = False) -> int:
        """All tables with their keys and indexes; `columnar`: as DuckDB keeps them.

        The agent's own arithmetic over pages (`estimated_bytes` of its `describe`) as a line, so that a plan can be
        made without asking it: from a scale factor of 1 on it differs by less than a thousandth, at the smallest by a
        twentieth.
        """
        del memory_bytes
        return round((COLUMNAR_BYTES if columnar else BYTES) * self.scale_factor)

    def caveats(self) -> list[str]:
        found = []
        least = streams_min(self.scale_factor)
        if "throughput" in self.tests and self.streams_run < least:
            found.append(f"{self.streams_run} streams, fewer than the {least} that belong to the scale factor")
        if not self.refresh:
            found.append("decision support without refresh functions")
        if self.answers and self.answers_against is None:
            found.append("answers are not compared: that follows a load test, and these trials have none")
        if self.scale_factor < 1:
            found.append("a scale factor below 1, for which the specification has no parameters: for trying out")
        return found

    def streams_request(self, test: str) -> Json:
        """A test: keys of the agent's `streams`. `test`: "power", "throughput", or "plans", a pass under EXPLAIN."""
        return {
            "test": "throughput" if test == "throughput" else "power",
            "streams": self.streams_run if test == "throughput" else 1,
            "refresh": self.refresh and test != "plans",
            "timeout_seconds": self.query_timeout_seconds,
            "explain": test == "plans",
        }

    def subject(self) -> str:
        return f"{self.name}, scale factor {self.scale_factor:g}"

    def no_load_line(self) -> NotAsked | None:
        what = "decision_support has streams of queries, but a load line needs transactions that arrive at a rate"
        return NotAsked("workload.name", what, "another workload")

    def bytes_beside(self) -> int:
        """Of the DuckDB that answers are compared with; it is gone before the next test begins."""
        return self.estimated_bytes(columnar=True) if self.answers_against == "duckdb" else 0

    def own_seconds(self, load_bytes_per_s: float) -> float:
        """Of all tests, about: a stream by its scale factor, two at once."""
        stream_s = STREAM_S_MIN + STREAM_S_A_SCALE * self.scale_factor
        passes: float = ("power" in self.tests) + self.explain + (self.answers_against is not None)
        if "throughput" in self.tests:
            passes += self.repeats * max(1.0, self.streams_run / 2)
        load_s = self.estimated_bytes() / load_bytes_per_s
        if self.answers_against == "duckdb":
            passes += 1
            load_s += self.bytes_beside() / load_bytes_per_s
        return stream_s * passes + (load_s if "load" in self.tests else 0)

    def judged(self, schedule: Schedule) -> str:
        """By the figure of as many of its tests as there are."""
        del schedule
        return next(metric for metric, tests in JUDGED.items() if set(tests) <= set(self.tests))

    def check_judged(self, judged: str) -> None:
        able = [metric for metric, needed in JUDGED.items() if set(needed) <= set(self.tests)]
        if judged not in able:
            raise ValueError(f"judged is {judged}, which these tests do not measure; allowed: {', '.join(able)}")

    def check_measure(self, ends_given: int) -> None:
        if ends_given:
            raise ValueError("decision_support's tests are measured whole; allowed: no seconds and no transactions")

    def check_warmup(self, until: str, *, prewarm: bool) -> None:
        if until != "none":
            raise ValueError(
                'decision_support has no warm-up, for each of its tests counts; allowed: warmup.until = "none" '
                "(warmup.prewarm may be true)"
            )
        if prewarm and "load" in self.tests:
            raise ValueError(
                "prewarm reads tables that the load test has yet to make; allowed: prewarm = false, or tests without "
                '"load"'
            )

    def check_schedule(self, schedule: Schedule) -> None:
        if schedule != Closed():
            raise ValueError("decision_support's streams follow its specification; allowed: no [schedule]")
