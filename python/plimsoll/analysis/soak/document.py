"""What a soak's document says of rounds, as types (schema/soak.md)."""

from __future__ import annotations

from typing import TypedDict


class Share(TypedDict):
    """A change as a share, with its interval."""

    value: float
    low: float
    high: float


class RoundRow(TypedDict):
    """A round, and by how much it differs from the first; null where there is nothing to compare. `by_machine`: what
    the machine's own speed alone made of it, as a share of the first, and the figure that is."""

    round: int
    value: float | None
    change: Share | None
    by_machine: float | None
    value_by_machine: float | None
    verdict: str | None
    remarks: list[str]


class FoundStep(TypedDict):
    """A change for good before a round."""

    round: int
    size: Share
    chance: float


class FoundInside(TypedDict):
    """A change for good inside a round, so many seconds after its begin."""

    round: int
    after_s: float
    size: Share
    chance: float
    at_equal_speed: Share | None  # None where the machine's speeds are not known, or explain nothing inside rounds
    by_machine: bool  # what is left of it at equal speed would be no reason to look


class AtEqualSpeed(TypedDict):
    """The drift as if the machine had been equally fast in all rounds."""

    over_all: Share
    scatter: float  # of a round beside its neighbour, as a share
    by_machine_widest: float  # what the machine's speed made of the best round over the worst, as a share


class Rounds(TypedDict):
    """How a figure moves from round to round of a soak."""

    rounds: list[RoundRow]
    a_round: Share | None
    over_all: Share | None
    at_equal_speed: AtEqualSpeed | None  # where the machine's speed is known, and explains the rounds
    steps: list[FoundStep]
    shape: str | None
    scatter: float | None  # of a round beside its neighbour, as a share
    correlation: float | None  # of neighbours
    widest: Share | None  # the two that differ most
    told: str  # by which drift the verdict is: "as measured", "at equal speed"
    verdict: str
    rule: str


class Slope(TypedDict):
    """By the hour, in the series' own unit, with its interval."""

    value: float
    low: float
    high: float


class Floor(TypedDict):
    """What a series does not fall below in a part of the time."""

    t_s: float
    value: float


class Growth(TypedDict):
    """Whether a series keeps growing."""

    name: str
    unit: str
    hours: float
    an_hour: Slope | None
    first: float | None
    last: float | None
    floors: list[Floor]
    verdict: str
    rule: str


class Crash(TypedDict):
    """A crash of the server, in its own words where it had some."""

    round: int
    epoch_ns: int
    text: str


class Filled(TypedDict):
    """When the disk of the record was full, and what thinning gave."""

    epoch_ns: int
    freed_bytes: int


class Interruption(TypedDict):
    """A round, or a start of the server, that ended before its end."""

    round: str | None
    attempt: int | None
    began_epoch_ns: int | None
    why: str


class OneRound(TypedDict):
    """A round: when, how long, and its figures; null where it has none. `is_judged`: whether it enters the drift."""

    round: int
    began_epoch_ns: int | None
    seconds: float | None
    value: float | None
    latency_ns_p99: float | None
    failed: int | None
    is_judged: bool
    speed_ns: dict[str, float] | None  # of the machine: what a beat of each piece of the probe took
    step_s: int | None
    has_rows: bool | None


class DiskChange(TypedDict):
    """A counter of a disk's own troubles that rose during the soak, first in this round."""

    device: str
    counter: str
    first: int  # before it rose
    most: int
    round: int


class Memory(TypedDict):
    """The most that front and agent had resident, in bytes; null where it is not known."""

    front_bytes_max: int | None
    agent_bytes_max: int | None


class SoakOfRun(TypedDict):
    """What verdict.json has under `soak`."""

    metric: str
    length_s: float
    spent_s: float
    between: str
    after_crash: str
    ended_by: str | None
    why: str | None
    sittings: int
    each: list[OneRound]
    drift: Rounds
    inside: list[FoundInside]
    crashes: list[Crash]
    interruptions: list[Interruption]
    full: list[Filled]
    disks: list[DiskChange]
    memory: Memory
    growth: list[Growth]
    record_bytes: int
    record_bytes_max: int
    thinned: dict[str, int]
    rule: str
