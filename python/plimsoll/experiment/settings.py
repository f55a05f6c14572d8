"""The settings of the experiment file as types: every key, its default and what is allowed.

The fact that constrains it: what is varied is a path into these (factors.py), so a key that every trial of a run shares
says so here or in its table (`Fixed`), with the reason.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plimsoll.experiment.environment import Environment
from plimsoll.experiment.guest import fits
from plimsoll.experiment.judged import Judged
from plimsoll.experiment.measuring import Measure, Warmup
from plimsoll.experiment.page import SectionKey, Study, each_once
from plimsoll.experiment.places import check_places
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.servers.registry import SERVERS, facts_of
from plimsoll.experiment.soaking import Soak
from plimsoll.experiment.strict import Fixed, Strict
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import OWNERS, Workload

OF_THE_QUESTION = Fixed("it says what the question is, and every trial answers the same one")
OF_THE_PLAN = Fixed("a run has one design, by which its trials are arranged and compared")


class Design(Strict):
    """How trials are arranged."""

    kind: Literal["full factorial", "one factor at a time", "windows"] = Field(
        "full factorial",
        description="windows: every combination of levels, too, but the servers of a block are up at once and take "
        "turns of about a second; where that cannot be had, trials one after the other take its place",
    )
    blocks: int = Field(3, ge=1, le=1000, description="of windows: at most so many")
    seed: int | None = Field(None, ge=0, lt=2**63, description="of the order of trials; drawn and stored when absent")
    duplicate: bool = Field(
        False, description="run a treatment twice in each block, each in turn: how the two differ is the run's own A/A"
    )
    repeat_share_max: float = Field(
        1 / 3,
        ge=0,
        le=1,
        description="of the trials this share at most (one at least) are repeated, once and in its block, where "
        "caches were filling still (then with twice the warm-up), or the hypervisor took much of the CPU; 0: none",
    )
    relevant_ratio: float = Field(
        1.05, gt=1, le=2, description="a ratio closer to 1 than this counts as no relevant difference"
    )
    judged: Judged | None = Field(
        None,
        description="what levels are compared by; by default latency p99 in an open loop, else throughput, of "
        "decision_support the composite of its tests, of passes over files the rate of one of them",
    )
    # Of windows alone; what takes their place is measured as [measure] says.
    window_seconds: float = Field(1.0, ge=0.05, le=60, description="windows: how long each server's turn is")
    lead_in_seconds: float = Field(
        0.25, ge=0, le=30, description="windows: of each turn, what is left out at its begin"
    )
    rounds: int = Field(40, ge=1, le=100_000, description="windows: turns of each server in a block")
    minutes: float | None = Field(
        None,
        gt=0,
        le=100_000,
        description="windows: no block after the second is begun that would end later than this; of a run that is "
        "resumed all of its sittings count",
    )
    stop: Literal["decided", "never"] = Field(
        "decided", description="windows: whether the run ends after the block that decides it, or after the last"
    )

    @model_validator(mode="after")
    def _leaves_something(self) -> Design:
        if self.lead_in_seconds > self.window_seconds / 2:
            raise ValueError(
                f"lead_in_seconds = {self.lead_in_seconds:g} is more than half of window_seconds = "
                f"{self.window_seconds:g}; allowed: at most half"
            )
        return self


class Settings(Strict):
    """A question, and one setting of everything that decides the answer."""

    format: Annotated[Literal[1], OF_THE_QUESTION] = 1
    name: Annotated[str, OF_THE_QUESTION] = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: Annotated[str, OF_THE_QUESTION] = Field(min_length=1, max_length=200)
    source: Annotated[str, OF_THE_QUESTION] = Field("", description="the study or the reason the question comes from")
    study: Annotated[Study | None, OF_THE_QUESTION] = Field(
        None, description="the study that it repeats, whose findings the report sets beside its own"
    )
    sections: Annotated[list[SectionKey], OF_THE_QUESTION] = Field(
        default_factory=list,
        description="sections of the report that are drawn only where they are named: clients (throughput over clients "
        "of pgbench), scaling (over CPUs, or over memory with a setting on and off) and storage (over layouts)",
    )
    environment: Environment = Environment()
    target: Target = Target()
    workload: Workload
    schedule: Schedule = Closed()
    probes: Probes = Probes()
    warmup: Warmup = Field(default_factory=Warmup, validate_default=True)
    measure: Measure = Field(default_factory=Measure, validate_default=True)
    design: Annotated[Design, OF_THE_PLAN] = Design()
    soak: Annotated[Soak | None, OF_THE_PLAN] = Field(
        None, description="rounds back to back on one server for as long as it says; `./plimsoll soak` runs it"
    )

    @property
    def is_open(self) -> bool:
        """Whether transactions are due by a plan of their own, and not when a connection is free."""
        return not isinstance(self.schedule, Closed)

    @property
    def goes_on_after_kills(self) -> bool:
        """Whether a trial is to go on, after a kill of any part, with the data that it had."""
        return self.soak is not None or self.workload.goes_on_after_kills()

    @property
    def judged(self) -> str:
        """The metric that levels are compared by."""
        return self.design.judged or self.workload.judged(self.schedule)

    # Each of these is asked of the workload, which is not there when it is wrong itself: that is said of it.

    @field_validator("sections")
    @classmethod
    def _each_section_once(cls, value: list[SectionKey]) -> list[SectionKey]:
        each_once(value)
        return value

    @field_validator("measure")
    @classmethod
    def _has_an_end(cls, value: Measure, info: ValidationInfo) -> Measure:
        if (workload := info.data.get("workload")) is not None:
            workload.check_measure(value.ends_given)
        return value

    @field_validator("warmup")
    @classmethod
    def _has_a_load_to_warm_by(cls, value: Warmup, info: ValidationInfo) -> Warmup:
        if (workload := info.data.get("workload")) is not None:
            workload.check_warmup(value.until, prewarm=value.prewarm)
        return value

    @field_validator("schedule")
    @classmethod
    def _fits_the_workload(cls, value: Schedule, info: ValidationInfo) -> Schedule:
        if (workload := info.data.get("workload")) is not None:
            workload.check_schedule(value)
        return value

    @field_validator("design")
    @classmethod
    def _judges_what_is_measured(cls, value: Design, info: ValidationInfo) -> Design:
        if (workload := info.data.get("workload")) is not None and value.judged is not None:
            workload.check_judged(value.judged)
            if value.judged in OWNERS and value.judged not in workload.own_metrics:
                owners = " or ".join(OWNERS[value.judged])
                raise ValueError(
                    f"judged is {value.judged}, which workload {owners} alone has; allowed: another metric"
                )
        return value

    @model_validator(mode="after")
    def _fits_the_server(self) -> Settings:
        # What a database of somebody else's is asked for is checked as of our own.
        facts = facts_of(self.target) if self.target.url is not None else SERVERS[self.target.server]
        if self.workload.on != facts.holds:
            able = " or ".join(f'"{name}"' for name, other in SERVERS.items() if other.holds == self.workload.on)
            raise ValueError(
                f"{self.target.named}, which has {facts.holds}, and {self.workload.name} is a load "
                f"on {self.workload.on}; allowed: target.server = {able}"
            )
        facts.check(self.workload, self.target, self.warmup, self.probes)
        return self

    @model_validator(mode="after")
    def _fits_the_kernel(self) -> Settings:
        environment, target = self.environment, self.target
        if environment.guest_machine is not None:
            fits.check(
                fits.asked(environment.kernel, environment.boot.cpus if environment.named_kernel else 1),
                existing=target.named if target.is_of_somebody_else else None,
                parts=target.files.given.values(),
                places=environment.places,
                cpus={"target_cpus": environment.target_cpus, "load_cpus": environment.load_cpus},
                outlives_kills=SERVERS[target.server].recovers and self.goes_on_after_kills,
            )
        elif environment.named_kernel is not None:
            fits.check_machine(
                environment.kernel,
                existing=target.named if target.is_of_somebody_else else None,
                outlives_kills=SERVERS[target.server].recovers and self.goes_on_after_kills,
            )
        return self

    @model_validator(mode="after")
    def _files_lie_somewhere(self) -> Settings:
        parts = {f"target.files.{key}": value for key, value in self.target.files.given.items()}
        check_places(self.environment.places, parts)
        return self

    @model_validator(mode="after")
    def _users_wait_for_answers(self) -> Settings:
        self.workload.check_arrivals(is_open=self.is_open)
        return self
