"""The experiment file as types: every key, its default and what is allowed.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from plimsoll.experiment import decision_support, embedded
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Cpus, Scalar, Size, Strict, Version
from plimsoll.experiment.workload import Bank, Load, OrderEntry, Script, ScriptFile, Workload, WpiOrders, Zipf

__all__ = ["Bank", "DecisionSupport", "Experiment", "Load", "OrderEntry", "Script", "ScriptFile", "WpiOrders", "Zipf"]

AS_FOUND: Final = "as found"
# What a trial can be given of its own. Not target.dsn (a run has one server) and nothing of the design.
FACTOR_PATH = re.compile(
    r"environment\.[a-z_]+|environment\.sysctl\.vm\.[a-z_]+|target\.server|target\.version|target\.transport"
    r"|target\.settings\.[a-z_][a-z0-9_.]*|workload\.(?!(?:name|setup|setup_text)$)[a-z_]+|workload\.variables\.[A-Za-z_][A-Za-z0-9_]*"
    r"|schedule\.[a-z_]+|probes\.[a-z_]+|warmup\.[a-z_]+|measure\.[a-z_]+"
)
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


class Probes(Strict):
    """What watches beside the series that are always taken. What cannot be trusted here is absent, with its reason."""

    page_cache: bool = Field(True, description="pages asked for, missed, read ahead and evicted, by file class (BPF)")
    buffer_heads: bool = Field(
        False, description="study S1's own counter: lookups of buffer heads, mostly metadata (BPF)"
    )
    throttle: bool = Field(False, description="pauses of tasks that dirty pages faster than they are written (BPF)")
    breakdown: bool = Field(True, description="where each transaction's time goes (BPF)")
    breakdown_budget_percent: float = Field(
        0.5,
        ge=0,
        le=100,
        description="of the machine's CPU time: beyond it one slice of time in so many is watched; 0: always all of it",
    )
    breakdown_rows: Literal["transactions", "requests"] = Field(
        "transactions", description="what the breakdown records one by one: the server's transactions, or each request"
    )
    profile: bool = Field(
        False, description="in which functions the server and the kernel for it are while on a CPU: flame graphs (BPF)"
    )
    profile_hz: int = Field(99, ge=1, le=9_999, description="samples a second on each CPU")
    profile_locks: bool = Field(
        False, description="with the profile: waits for the kernel's own locks, by kind and by who wanted them (BPF)"
    )
    syscalls: bool = Field(False, description="the server's system calls by kind and file class (BPF)")
    syscalls_others: Literal["sampled", "all"] = Field(
        "sampled",
        description="calls that name no file (sockets, waiting, memory): counted in slices of time that stand for all "
        "of it, or every one, which costs the server more",
    )
    sync: bool = Field(False, description="each fsync and fdatasync of the server, with what it waited for (BPF)")
    block: bool = Field(
        False, description="requests of the disks that hold the server's files, by what they carry (BPF)"
    )
    double_caching: bool = Field(
        True, description="which blocks of each relation both caches hold, before and after the measured segment"
    )


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


def _check_path(value: str) -> str:
    if not FACTOR_PATH.fullmatch(value):
        raise ValueError(
            f"{value!r} cannot be varied; allowed: environment.*, environment.sysctl.vm.*, target.server, "
            "target.version, target.transport, target.settings.*, workload.* but its name, schedule.*, probes.*, "
            "warmup.*, measure.*"
        )
    return value


def _check_set_path(value: str) -> str:
    try:
        return _check_path(value)
    except ValueError as error:
        raise ValueError(f"{error}; each path in quotation marks, as one key") from None


FactorPath = Annotated[str, AfterValidator(_check_path)]
SetPath = Annotated[str, AfterValidator(_check_set_path)]


class Varied(Strict):
    """What every factor has."""

    label: str | None = None
    compare: bool = Field(True, description="false: the report shows one figure per level instead of comparing levels")
    where_possible: bool = Field(
        False,
        description="true: levels with CPUs or memory that this machine has not are left out, and the plan says so",
    )


class Factor(Varied):
    """What is varied, and the values it takes."""

    path: FactorPath = Field(description="such as environment.memory")
    levels: list[Any] = Field(min_length=1, max_length=100)

    @property
    def key(self) -> str:
        """What the factor is called in a plan and on the command line."""
        return self.path

    @property
    def paths(self) -> list[str]:
        """Every setting that some level sets."""
        return [self.path]

    def settings_of(self, level: Any) -> dict[str, Any]:
        """What a level sets, path by path."""
        return {self.path: level}


class NamedLevel(Strict):
    """A level that sets several things at once."""

    label: str = Field(min_length=1, max_length=80)
    set: dict[SetPath, Any] = Field(
        min_length=1, description='path by path, such as "environment.sysctl.vm.dirty_bytes" = "0.2 x memory"'
    )


class NamedFactor(Varied):
    """Several settings varied together, and the named levels they take."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60, description="such as writeback")
    levels: list[NamedLevel] = Field(min_length=1, max_length=100)

    @field_validator("levels")
    @classmethod
    def _each_label_once(cls, value: list[NamedLevel]) -> list[NamedLevel]:
        labels = [level.label for level in value]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"the level {label!r} is given twice; allowed: each label once")
        return value

    @property
    def key(self) -> str:
        """What the factor is called in a plan and on the command line."""
        return self.name

    @property
    def paths(self) -> list[str]:
        """Every setting that some level sets."""
        return list(dict.fromkeys(path for level in self.levels for path in level.set))

    def settings_of(self, level: NamedLevel) -> dict[str, Any]:
        """What a level sets, path by path."""
        return dict(level.set)


def _kind_of_factor(value: Any) -> str:
    named = "name" in value if isinstance(value, dict) else isinstance(value, NamedFactor)
    return "[named]" if named else "[path]"


AnyFactor = Annotated[
    Annotated[Factor, Tag("[path]")] | Annotated[NamedFactor, Tag("[named]")], Discriminator(_kind_of_factor)
]


def _overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


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
        keys = [factor.key for factor in self.factors]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"the factor {key} is given twice; allowed: each once")
        seen: dict[str, str] = {}
        for factor in self.factors:
            for path in factor.paths:
                other = next((known for known in seen if _overlap(path, known)), None)
                if other is not None:
                    raise ValueError(
                        f"{path} is set by two factors, {seen[other]} and {factor.key}; allowed: each setting by one"
                    )
            seen |= dict.fromkeys(factor.paths, factor.key)
        return self
