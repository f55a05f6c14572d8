"""What a soak's document says of rounds, as types (schema/soak.md)."""

from __future__ import annotations

from typing import TypedDict


class Share(TypedDict):
    """A change as a share, with its interval."""

    value: float
    low: float
    high: float


class RoundRow(TypedDict):
    """A round, and by how much it differs from the first; null where there is nothing to compare."""

    round: int
    value: float | None
    change: Share | None
    verdict: str | None
    remarks: list[str]


class FoundStep(TypedDict):
    """A change for good before a round."""

    round: int
    size: Share
    chance: float


class Rounds(TypedDict):
    """How a figure moves from round to round of a soak."""

    rounds: list[RoundRow]
    a_round: Share | None
    over_all: Share | None
    steps: list[FoundStep]
    shape: str | None
    scatter: float | None  # of a round beside its neighbour, as a share
    correlation: float | None  # of neighbours
    widest: Share | None  # the two that differ most
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
    """Whether a series grows and never falls."""

    name: str
    unit: str
    hours: float
    an_hour: Slope | None
    first: float | None
    last: float | None
    floors: list[Floor]
    verdict: str
    rule: str
