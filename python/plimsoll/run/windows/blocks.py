"""Blocks of windows one after the other, until the question is decided, the time is up, or the last has ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.windows import looks
from plimsoll.experiment import Plan
from plimsoll.experiment.replicates import replicates_of
from plimsoll.run.carrier import Carrier
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.windows import turning
from plimsoll.run.windows.block import Block

SECONDS_A_MINUTE = 60.0


def carry_out(carrier: Carrier, server_of: ServerOfTrial) -> None:
    """Every block that has a trial without a result, whole; what need not be begun any more is skipped.

    Where treatments are up in groups it ends after a whole replicate only: every treatment has run as often.
    """
    began, took = time.monotonic(), list[float]()
    carrier.at_turns = turning.varied(carrier.plan, carrier.state)
    for replicate, blocks in enumerate(replicates_of(carrier.plan), start=1):
        missing = [block for block in blocks if not all(carrier.is_done(trial) for trial in block)]
        if not missing:
            continue
        last = Last(replicate - 1, blocks[0][0].block - 1, carrier.plan.groups is not None)
        if missing == blocks and (
            reason := _why_enough(carrier.plan, carrier.out, last, time.monotonic() - began, took)
        ):
            for trial in carrier.left:
                carrier.skip(trial, reason)
            return
        started = time.monotonic()
        for block in missing:
            Block(carrier, block).run(server_of)
        if missing == blocks:
            took.append(time.monotonic() - started)


@dataclass(frozen=True)
class Last:
    """The replicate that has just ended, 0 before the first, and its last block, which is as many without groups."""

    replicate: int
    block: int
    is_in_groups: bool

    def __str__(self) -> str:
        return f"block {self.block} (replicate {self.replicate})" if self.is_in_groups else f"block {self.block}"


def _why_enough(plan: Plan, out: Path, last: Last, seconds: float, took: list[float]) -> str | None:
    """Why no block is begun after those of `last`; None where one is. `took`: seconds of each replicate so far."""
    design = plan.experiment.design
    if last.replicate and design.stop == "decided" and (decided := _decided(out)) is not None:
        return f"decided after {last}: {decided}"
    # One block says nothing of how starts differ, so that nothing can be told from it.
    if (
        took
        and last.replicate >= looks.FIRST
        and design.minutes is not None
        and seconds + max(took) > design.minutes * SECONDS_A_MINUTE
    ):
        return f"{last} was the last that fits into {design.minutes:g} minutes"
    return None


def _decided(out: Path) -> str | None:
    """What the record says by now, where it is enough."""
    decision = looks.decision(out)
    return decision.why if decision is not None and decision.decided else None
