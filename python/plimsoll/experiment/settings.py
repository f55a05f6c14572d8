"""The settings of the experiment file as types: every key, its default and what is allowed.

The fact that constrains it: what is varied is a path into these (factors.py), so a key that every trial of a run shares
says so here or in its table (`Fixed`), with the reason.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plimsoll.experiment import decision_support, embedded
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.environment import Environment
from plimsoll.experiment.measuring import Measure, Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Fixed, Strict
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import OrderEntry, Workload

OF_THE_QUESTION = Fixed("it says what the question is, and every trial answers the same one")
OF_THE_PLAN = Fixed("a run has one design, by which its trials are arranged and compared")
Judged = Literal[
    "throughput_per_second",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p95",
    "latency_ns_p99",
    "latency_ns_p999",
    "latency_ns_p9999",
    "load_test_seconds",
    "power_queries_per_hour",
    "throughput_queries_per_hour",
    "composite_queries_per_hour",
]


class Design(Strict):
    """How trials are arranged."""

    kind: Literal["full factorial", "one factor at a time"] = "full factorial"
    blocks: int = Field(3, ge=1, le=1000)
    seed: int | None = Field(None, ge=0, lt=2**63, description="of the order of trials; drawn and stored when absent")
    duplicate: bool = Field(
        False, description="run a treatment twice in each block, each in turn: how the two differ is the run's own A/A"
    )
    relevant_ratio: float = Field(
        1.05, gt=1, le=2, description="a ratio closer to 1 than this counts as no relevant difference"
    )
    judged: Judged | None = Field(
        None,
        description="what levels are compared by; by default latency p99 in an open loop, else throughput, of "
        "decision_support the composite of its tests",
    )


class Settings(Strict):
    """A question, and one setting of everything that decides the answer."""

    format: Annotated[Literal[1], OF_THE_QUESTION] = 1
    name: Annotated[str, OF_THE_QUESTION] = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: Annotated[str, OF_THE_QUESTION] = Field(min_length=1, max_length=200)
    source: Annotated[str, OF_THE_QUESTION] = Field("", description="the study or the reason the question comes from")
    environment: Environment = Environment()
    target: Target = Target()
    workload: Workload
    schedule: Schedule = Closed()
    probes: Probes = Probes()
    warmup: Warmup = Field(default_factory=Warmup, validate_default=True)
    measure: Measure = Field(default_factory=Measure, validate_default=True)
    design: Annotated[Design, OF_THE_PLAN] = Design()

    @property
    def is_open(self) -> bool:
        """Whether transactions are due by a plan of their own, and not when a connection is free."""
        return not isinstance(self.schedule, Closed)

    @property
    def judged(self) -> str:
        """The metric that levels are compared by."""
        if self.design.judged is not None:
            return self.design.judged
        if isinstance(self.workload, DecisionSupport):
            return self.workload.judged()
        return "latency_ns_p99" if self.is_open else "throughput_per_second"

    @field_validator("measure")
    @classmethod
    def _has_an_end(cls, value: Measure, info: ValidationInfo) -> Measure:
        workload = info.data.get("workload")  # not there when it is wrong itself, which is said of it
        if isinstance(workload, DecisionSupport):
            decision_support.no_end(value.ends_given)
        elif workload is not None and value.ends_given != 1:
            raise ValueError("give one of seconds and transactions (or transactions_per_client)")
        return value

    @field_validator("warmup")
    @classmethod
    def _has_a_load_to_warm_by(cls, value: Warmup, info: ValidationInfo) -> Warmup:
        if isinstance(workload := info.data.get("workload"), DecisionSupport):
            decision_support.no_warmup(workload, value.until, prewarm=value.prewarm)
        return value

    @field_validator("schedule")
    @classmethod
    def _fits_the_tests(cls, value: Schedule, info: ValidationInfo) -> Schedule:
        if isinstance(info.data.get("workload"), DecisionSupport) and value != Closed():
            raise ValueError("decision_support's streams follow its specification; allowed: no [schedule]")
        return value

    @field_validator("design")
    @classmethod
    def _judges_what_is_measured(cls, value: Design, info: ValidationInfo) -> Design:
        if (workload := info.data.get("workload")) is not None and value.judged is not None:
            tests = workload.tests if isinstance(workload, DecisionSupport) else []
            decision_support.judges(tests, value.judged)
        return value

    @model_validator(mode="after")
    def _fits_the_server(self) -> Settings:
        if self.target.server == "duckdb":
            embedded.check(self.workload, self.target, self.warmup, self.probes)
        return self

    @model_validator(mode="after")
    def _users_wait_for_answers(self) -> Settings:
        if isinstance(self.workload, OrderEntry) and self.workload.keying_and_think and self.is_open:
            raise ValueError(
                "workload.keying_and_think has users who wait for each answer, and this schedule starts transactions "
                'whoever waits; allowed: schedule.kind = "closed", or keying_and_think = false'
            )
        return self
