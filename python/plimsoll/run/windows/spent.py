"""What earlier sittings of a run have spent of its minutes: a run that goes on has what is left, and not all anew.

The fact that constrains it: only events tell, and the clock of a sitting begins anew with each boot. So each sitting is
counted by itself, from its first trial to the last thing that it told. What a kill cut off after that is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.experiment import PlannedTrial
from plimsoll.record import open_run

Json = dict[str, Any]
NS = 1e9


@dataclass
class Spent:
    """`seconds` in all, cut blocks included, and what each replicate `took` that has its results."""

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)


def spent(out: Path, done: Iterable[Sequence[Sequence[PlannedTrial]]]) -> Spent:
    """By the events of a run's folder; `done`: the blocks of each replicate that has its results."""
    sittings: list[list[Json]] = [[]]
    for event in open_run(out).events():
        if event.get("event") == "resumed":
            sittings.append([])
        if sittings[-1] or event.get("event") == "trial":
            sittings[-1].append(event)
    found = Spent(sum(_between(one[0], one[-1]) for one in sittings if one))
    for blocks in done:
        of_blocks = [seconds for block in blocks if (seconds := _last_try(sittings, block)) is not None]
        if of_blocks:
            found.took.append(sum(of_blocks))
    return found


def _last_try(sittings: Iterable[list[Json]], block: Sequence[PlannedTrial]) -> float | None:
    """Seconds from the last begin of a block's first trial to the end of its last; None where that is not told."""
    numbers, found = {trial.number for trial in block}, None
    for sitting in sittings:
        begun = None
        for event in sitting:
            if event.get("event") == "trial" and event.get("trial") == block[0].number:
                begun = event
            elif begun is not None and event.get("event") == "trial_end" and event.get("trial") in numbers:
                found = _between(begun, event)
    return found


def _between(first: Json, last: Json) -> float:
    return max(0.0, (int(last["t_ns"]) - int(first["t_ns"])) / NS)
