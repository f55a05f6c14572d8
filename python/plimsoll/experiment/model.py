"""The experiment file as types: every key, its default and what is allowed.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plimsoll.experiment import decision_support, embedded
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.factors import AnyFactor, each_once
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Cpus, Scalar, Size, Strict, Version
from plimsoll.experiment.workload import Bank, Load, OrderEntry, Script, ScriptFile, Workload, WpiOrders, Zipf

__all__ = ["Bank", "DecisionSupport", "Experiment", "Load", "OrderEntry", "Script", "ScriptFile", "WpiOrders", "Zipf"]

AS_FOUND: Final = "as found"
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


class Environment(Strict):
    """What surrounds the server. Everything here is put back after the run."""

    memory: Size | Literal["unlimited"] = Field("unlimited", description="memory limit of the target's group")
    swap: Size | Literal["as found"] = Field(
        AS_FOUND, description="swap file made for the run, and how much of it the group may use; 0: none"
    )
    swappiness: Annotated[int, Field(ge=0, le=200)] | Literal["as found"] = Field(
        AS_FOUND, description="the group's swappiness (cgroup v1: memory.swappiness)"
    )
    target_cpus: Cpus = Field("all", description="CPUs of the server under test")
    load_cpus: Cpus = Field("all", description="CPUs of the load generator")
    page_cache: Literal["cold", "warm"] = Field("cold", description="state of the data files before the server starts")
    read_ahead: Size | Literal["as found"] = Field(AS_FOUND, description="read-ahead of the data's block device")
    transparent_huge_pages: Literal["always", "madvise", "never", "as found"] = AS_FOUND
    sysctl: dict[str, int | str] = Field(default_factory=dict, description="vm.* settings of the kernel")

    @field_validator("sysctl")
    @classmethod
    def _only_vm(cls, value: dict[str, int | str]) -> dict[str, int | str]:
        for name in value:
            if not re.fullmatch(r"vm\.[a-z_]+", name):
                raise ValueError(f"{name!r} cannot be varied; allowed: settings whose name begins with vm.")
        return value


class Files(Strict):
    """Where a private server's files lie during a trial: folders that are there, of any file system."""

    data: str | None = Field(None, description="of the cluster; by default in the state folder")
    wal: str | None = Field(None, description="of the write-ahead log; by default with the data")
    temp: str | None = Field(None, description="of temporary files, by a tablespace of their own; by default as data")

    @field_validator("data", "wal", "temp")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith("/") or ".." in value.split("/")):
            raise ValueError(f"{value!r} is no absolute path; allowed: a folder such as /mnt/log")
        return value

    @property
    def given(self) -> dict[str, str]:
        """The folders that are named, by key."""
        return {key: value for key, value in self if value is not None}


class Target(Strict):
    """The server under test."""

    server: Literal["postgresql", "duckdb"] = Field(
        "postgresql", description='"duckdb": embedded, of Plimsoll\'s own installation; decision_support only'
    )
    version: Version = Field("any", pattern=r"^(any|\d+)$", description='major version, or "any": the newest found')
    dsn: str | None = Field(
        None, description="connection string of an existing server: it is used as it is, never configured or restarted"
    )
    transport: Literal["socket", "tcp"] = Field(
        "socket", description="how a private server is reached: its Unix socket, or TCP over loopback"
    )
    files: Files = Field(default_factory=Files, description="paths of their own for data, log and temporary files")
    settings: dict[str, Scalar] = Field(default_factory=dict, description="settings of a private server")

    @field_validator("settings")
    @classmethod
    def _names(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
        ours = {"port", "listen_addresses", "unix_socket_directories", "data_directory", "logging_collector"}
        for name, setting in value.items():
            if not re.fullmatch(r"[a-z_][a-z0-9_.]*", name):
                raise ValueError(f"{name!r} is not the name of a setting; allowed: lower-case names such as work_mem")
            if name in ours:
                raise ValueError(f"{name} is chosen by Plimsoll; allowed: every other setting of the server")
            if isinstance(setting, str) and ("\n" in setting or "\0" in setting):
                raise ValueError(f"{name} holds a line break; allowed: one line")
        return value


class Warmup(Strict):
    """How long the load runs before it is measured."""

    until: Literal["stationary", "none"] = "stationary"
    prewarm: bool = Field(False, description="first read the tables into the server's cache with pg_prewarm")
    seconds_min: float = Field(5, ge=0, le=86_400)
    seconds_max: float = Field(60, ge=0, le=86_400)

    @model_validator(mode="after")
    def _order(self) -> Warmup:
        if self.seconds_min > self.seconds_max:
            raise ValueError("seconds_min is larger than seconds_max; allowed: seconds_min <= seconds_max")
        return self


class Measure(Strict):
    """What is measured (some seconds, or some transactions), and how much of it is kept row by row.

    Of decision_support neither: its tests are measured whole.
    """

    seconds: float | None = Field(None, gt=0, le=86_400)
    transactions: int | None = Field(None, ge=1, description="of all clients together")
    transactions_per_client: int | None = Field(
        None, ge=1, description="times the clients; whichever connection is free takes the next one"
    )
    rows_max: int = Field(
        20_000_000,
        ge=0,
        le=2**32,
        description="transactions recorded one by one in a segment; beyond them a sample, and histograms of all",
    )
    sample_one_in: int = Field(100, ge=1, le=1_000_000, description="of the transactions beyond rows_max")

    @property
    def ends_given(self) -> int:
        """How many of the keys are given that say when it ends."""
        given = (self.seconds, self.transactions, self.transactions_per_client)
        return sum(one is not None for one in given)

    def transactions_of(self, clients: int) -> int | None:
        """How many transactions are asked for, all clients together; None where seconds are."""
        if self.transactions_per_client is not None:
            return self.transactions_per_client * clients
        return self.transactions


class Design(Strict):
    """How trials are arranged."""

    kind: Literal["full factorial", "one factor at a time"] = "full factorial"
    blocks: int = Field(3, ge=1, le=1000)
    seed: int | None = Field(None, ge=0, lt=2**63, description="of the order of trials; drawn and stored when absent")
    duplicate: bool = Field(
        False, description="run the first treatment twice in each block: the spread of the pair is the run's own A/A"
    )
    relevant_ratio: float = Field(
        1.05, gt=1, le=2, description="a ratio closer to 1 than this is no relevant difference"
    )
    judged: Judged | None = Field(
        None,
        description="what levels are compared by; by default latency p99 in an open loop, else throughput, of "
        "decision_support the composite of its tests",
    )


class Experiment(Strict):
    """One question with everything needed to answer it."""

    format: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    title: str = Field(min_length=1, max_length=200)
    source: str = Field("", description="the study or the reason the question comes from")
    environment: Environment = Environment()
    target: Target = Target()
    workload: Workload
    schedule: Schedule = Closed()
    probes: Probes = Probes()
    warmup: Warmup = Field(default_factory=Warmup, validate_default=True)
    measure: Measure = Field(default_factory=Measure, validate_default=True)
    design: Design = Design()
    factors: list[AnyFactor] = Field(default_factory=list, max_length=8)
    quick: dict[str, Any] = Field(default_factory=dict, description="what --quick sets, path by path")

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
    def _fits_the_server(self) -> Experiment:
        if self.target.server == "duckdb":
            embedded.check(self)
        return self

    @model_validator(mode="after")
    def _users_wait_for_answers(self) -> Experiment:
        if isinstance(self.workload, OrderEntry) and self.workload.keying_and_think and self.is_open:
            raise ValueError(
                "workload.keying_and_think has users who wait for each answer, and this schedule starts transactions "
                'whoever waits; allowed: schedule.kind = "closed", or keying_and_think = false'
            )
        return self

    @model_validator(mode="after")
    def _each_factor_once(self) -> Experiment:
        each_once(self.factors)
        return self
