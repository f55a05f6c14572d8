"""The experiment file as types: every key, its default and what is allowed.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from plimsoll.experiment import size

AS_FOUND: Final = "as found"


def _check_size(value: int | str) -> int | str:
    try:
        size.parse(value, memory=1)
    except ValueError as error:
        raise ValueError(f"{error}; allowed: {size.ALLOWED}") from None
    return value


def _check_cpus(value: str) -> str:
    if value != "all" and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value):
        raise ValueError(f'{value!r} is not a list of CPUs; allowed: "all", or numbers and ranges such as "0-3,6"')
    return value


Size = Annotated[int | str, AfterValidator(_check_size)]
Cpus = Annotated[str, AfterValidator(_check_cpus)]
Version = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
# What a trial can be given of its own. Not target.dsn (a run has one server) and nothing of the design.
FACTOR_PATH = re.compile(
    r"environment\.[a-z_]+|environment\.sysctl\.vm\.[a-z_]+|target\.version|target\.settings\.[a-z_][a-z0-9_.]*"
    r"|workload\.(?!name$)[a-z_]+|probes\.[a-z_]+|warmup\.[a-z_]+|measure\.[a-z_]+"
)
Scalar = bool | int | float | str
Transaction = Literal["new_order", "payment", "check_order", "delivery", "stock"]


class Strict(BaseModel):
    """A table of the file: unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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

    server: Literal["postgresql"] = "postgresql"
    version: Version = Field("any", pattern=r"^(any|\d+)$", description='major version, or "any": the newest found')
    dsn: str | None = Field(
        None, description="connection string of an existing server: it is used as it is, never configured or restarted"
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


class Zipf(Strict):
    """Zipf-distributed keys: the share of rank r is proportional to r ** -zipf."""

    zipf: float = Field(gt=0, le=5)


class WpiOrders(Strict):
    """Study S1's order-entry load: nine tables, five transactions."""

    name: Literal["wpi_orders"]
    size: Size = Field(description="the nine tables with their indexes")
    clients: int = Field(1, ge=1, le=10_000)
    seed: int = Field(2002, ge=0, lt=2**63)
    keys: Literal["uniform"] | Zipf = "uniform"
    access: Literal["index", "scan"] = "index"
    draw: Literal["mix", "study"] = Field(
        "mix", description='"study": the original\'s 24 buckets, one of which does nothing'
    )
    mix: (
        dict[Literal["new_order", "payment", "check_order", "delivery", "stock"], Annotated[int, Field(ge=0, le=1000)]]
        | None
    ) = None

    @model_validator(mode="after")
    def _some_weight(self) -> WpiOrders:
        if self.mix is not None and not any(self.mix.values()):
            raise ValueError("every weight of mix is 0; allowed: at least one weight above 0")
        if self.mix is not None and self.draw == "study":
            raise ValueError(
                'mix cannot be set with draw = "study", which is the original\'s own draw; allowed: one of the two'
            )
        return self


class Probes(Strict):
    """What watches beside the series that are always taken. What cannot be trusted here is absent, with its reason."""

    page_cache: bool = Field(True, description="pages asked for, missed, read ahead and evicted, by file class (BPF)")
    buffer_heads: bool = Field(
        False, description="study S1's own counter: lookups of buffer heads, mostly metadata (BPF)"
    )
    throttle: bool = Field(False, description="pauses of tasks that dirty pages faster than they are written (BPF)")
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
    """What is measured: some seconds, or some transactions (the study's mode: 100)."""

    seconds: float | None = Field(None, gt=0, le=86_400)
    transactions: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _one(self) -> Measure:
        if (self.seconds is None) == (self.transactions is None):
            raise ValueError("give one of seconds and transactions")
        return self


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


def _check_path(value: str) -> str:
    if not FACTOR_PATH.fullmatch(value):
        raise ValueError(
            f"{value!r} cannot be varied; allowed: environment.*, environment.sysctl.vm.*, target.version, "
            "target.settings.*, workload.* but its name, probes.*, warmup.*, measure.*"
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
    workload: WpiOrders
    probes: Probes = Probes()
    warmup: Warmup = Warmup()
    measure: Measure
    design: Design = Design()
    factors: list[AnyFactor] = Field(default_factory=list, max_length=8)
    quick: dict[str, Any] = Field(default_factory=dict, description="what --quick sets, path by path")

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
