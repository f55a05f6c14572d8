"""What verdict.json has under `kernel` (schema/verdict.md)."""

from __future__ import annotations

from typing import TypedDict

from plimsoll.analysis.soak.document import Growth


class ToldEvent(TypedDict):
    """A record of the kernel's log that is no good news, where and when it came."""

    trial: int
    segment: str
    what: str  # the class
    seconds: float | None  # since the segment's first sample
    epoch_ns: int | None
    by: str
    text: str


class KernelOfRun(TypedDict):
    """Of a run whose trials watched the kernel itself."""

    trials: list[int]
    counts: dict[str, int]
    events: list[ToldEvent]
    lost: dict[str, int]
    refused: list[str]
    growth: list[Growth]
