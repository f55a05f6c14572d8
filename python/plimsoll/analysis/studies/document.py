"""The `clients`, `scaling` and `memory_scaling` of verdict.json as types (schema/verdict.md).

Metrics are in their own units; ratios are within blocks.
"""

from typing import Literal, NotRequired, TypedDict

from plimsoll.analysis.statistics.law import Fitted
from plimsoll.record.verdict import Mean


class Over(TypedDict):
    """A ratio with its interval over blocks."""

    ratio: float
    low: float | None
    high: float | None
    blocks: int


class ClientsRow(Mean):
    """The throughput of a treatment, and that of each block."""

    treatment: str
    scale: float
    clients: float
    transactions_per_client: float | None
    points: list[float]


class ClientsGrowth(Over):
    """Throughput over that of the fewest clients."""

    scale: float
    clients: float
    fewest: float


class AgainstSmallest(Over):
    """Throughput over that of the smallest scale; `beyond_fewest`: over what the fewest clients gain by it."""

    scale: float
    smallest: float
    clients: float
    beyond_fewest: NotRequired[Over | None]  # absent from verdicts of earlier versions; null of the fewest


class Clients(TypedDict):
    """Study S2: a bank loaded by several numbers of clients."""

    metric: str
    rows: list[ClientsRow]
    growth: list[ClientsGrowth]
    against_smallest: list[AgainstSmallest]
    delta: float


class At(TypedDict):
    """Levels of the other factors, and what these are called."""

    at: dict[str, str]
    at_labels: dict[str, str]


class Stands(At):
    """How many CPUs the server had, and how many clients loaded it; null where the factor of the CPUs sets these."""

    cpus: int
    clients: int | None


class BlockValue(TypedDict):
    """The throughput of a block."""

    block: int
    value: float


class Beside(TypedDict):
    """What stands beside a throughput: CPU time of the machine and of the generator, and steal as a share of it."""

    cpu_ns_per_transaction: Mean | None
    generator_cpu_ns_per_transaction: Mean | None
    cpu_steal_share: Mean | None


class ScalingRow(Stands, Mean, Beside):
    """The throughput of a number of CPUs and of clients."""

    treatments: list[str]
    points: list[BlockValue]


class ScalingFactor(Stands, Over):
    """Throughput over that of the fewest CPUs; `efficiency`: its share of what so many CPUs promise."""

    fewest: int
    efficiency: float


class Law(At, Fitted):
    """The law over CPUs or over clients, the other (which is null where it is run over) and all else as they are.

    `fewest` and `most` are the treatments at its ends.
    """

    over: Literal["cpus", "clients"]
    cpus: int | None
    clients: int | None
    fewest: str
    most: str


class Scaling(TypedDict):
    """Study S4: the server's CPUs varied in number."""

    metric: str
    delta: float
    method: str
    rows: list[ScalingRow]
    factors: list[ScalingFactor]
    laws: list[Law]
    notes: list[str]


class OfMemory(At):
    """A size of memory; bytes are null where there is no limit."""

    memory: str
    memory_bytes: float | None


class MemoryRow(OfMemory, Beside):
    """What a treatment did, the knob on or off."""

    treatment: str
    on: bool
    throughput_per_second: Mean | None


class JudgedOver(Over):
    """A ratio, and what it says."""

    verdict: str


class MemoryPair(OfMemory):
    """On over off (names of treatments) at a size of memory; `steal`: the difference of shares of CPU time."""

    on: str
    off: str
    throughput: JudgedOver | None
    cpu: JudgedOver | None
    steal: Mean | None


class MemoryGrowth(OfMemory, Over):
    """Throughput over that of the smallest memory, the knob as it is."""

    on: bool
    smallest: str


class Knob(TypedDict):
    """The setting that is on or off."""

    path: str
    label: str
    on: str
    off: str


class MemoryScaling(TypedDict):
    """Study S5: memory varied, with a setting on and off."""

    metric: str
    delta: float
    memory_label: str
    knob: Knob
    rows: list[MemoryRow]
    pairs: list[MemoryPair]
    growth: list[MemoryGrowth]
