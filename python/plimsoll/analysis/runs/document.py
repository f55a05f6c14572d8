"""What changed between two treatments or two runs, as types: `explained` of a comparison.

Means and differences of time are nanoseconds a transaction over blocks, those of counts a transaction.
"""

from typing import Any, TypedDict

from plimsoll.analysis.breakdown.document import Change, CpuChange, LatencyChange, Whole


class Ranked(TypedDict):
    """Amounts, the largest difference first; those too small to be told one by one in one row."""

    rows: list[Change]
    others: Change | None
    others_count: int
    confidence: float  # of each interval, chosen for all together


class RankedWhole(Whole, Ranked):
    """A whole with the amounts that it consists of."""


class CallsChange(TypedDict):
    """System calls: the time in them and how many there were; with `lost` events the figures are lower bounds."""

    lost: bool
    time: RankedWhole
    count: RankedWhole


class FunctionsChange(Whole):
    """The CPU of the server's processes by function: by its own time, and with what it calls."""

    own: Ranked
    with_callees: Ranked
    boxes: list[dict[str, Any]]  # of a flame graph, as the profile has them, with `difference` and `word`
    samples: list[int]
    lost: bool


class Explained(TypedDict):
    """All that is known of why one treatment differs; `absent`: of each probe that tells nothing, why."""

    treatment: str
    latency: dict[str, LatencyChange]
    cpu: CpuChange | None
    calls: CallsChange | None
    functions: FunctionsChange | None
    absent: dict[str, str]
