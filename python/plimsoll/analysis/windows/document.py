"""The `windows` of verdict.json as types: how a run of windows was, what it scatters by, what was distorted."""

from typing import TypedDict

from plimsoll.record.verdict import WindowsNoise


class Rounds(TypedDict):
    """The fewest and the most rounds of a trial."""

    least: int
    most: int


class Arrangement(TypedDict):
    """How the windows were; what thawing and freezing a server took at most, null where it was not recorded."""

    seconds: float | None
    lead_in_seconds: float | None
    rounds: Rounds
    windows: int
    without_transaction: int
    thaw_ns_max: float | None
    freeze_ns_max: float | None


class TogetherGroups(TypedDict):
    """Treatments that were up together, by id; `reference` is a member of each; `why` they were not up all at once."""

    reference: str
    members: list[list[str]]
    why: str


class Looks(TypedDict):
    """Whether looks could end the run, whether one did, and what the last may spend of the errors."""

    stops_when_decided: bool
    planned_blocks: int
    decided_after: int | None
    alpha: float
    confidence: float


class ClosingPoint(TypedDict):
    """The ratio of two levels after a round (of all blocks), with its interval."""

    block: int
    round: int
    ratio: float
    low: float
    high: float


class ClosingCurves(TypedDict):
    """How an interval closed: by the windows alone, and at each look with the starts' noise."""

    windows: list[ClosingPoint]
    looks: list[ClosingPoint]


class ClosingPlaces(ClosingCurves):
    """Of a pair by the places of its levels."""

    first: int
    second: int


class Closing(ClosingCurves):
    """Of a pair by the names of its levels; `comparison` is the place of its comparison."""

    comparison: int
    first: str
    second: str


class WindowRate(TypedDict):
    """The rate of a window; seconds since the first window of its block."""

    treatment: str
    trial: int
    block: int
    round: int
    seconds: float
    rate: float


class LeadIn(TypedDict):
    """The rate of the first third of what counts over that of the rest, with a 99 % interval, of so many windows."""

    ratio: float
    low: float
    high: float
    windows: int
    verdict: str


class OthersWrites(TypedDict):
    """Of what the disks wrote, what was of frozen servers; by treatment in bytes."""

    share: float
    is_named: bool
    device_bytes: float
    treatments: dict[str, float]


class WindowsOfRun(Arrangement):
    """All of it; what is not known is null."""

    groups: TogetherGroups | None
    noise: WindowsNoise | None
    looks: Looks
    closing: list[Closing]
    rates: list[WindowRate]
    lead_in: LeadIn | None
    others_writes: OthersWrites | None
