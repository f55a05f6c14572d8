"""Blocks of windows one after the other, until the question is decided, the time is up, or the last has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from plimsoll.analysis.windows import looks
from plimsoll.experiment import Plan, PlannedTrial
from plimsoll.experiment.replicates import replicates_of
from plimsoll.record.trial import SKIPPED
from plimsoll.run.carrier import Carrier
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.trial import again
from plimsoll.run.windows import turning
from plimsoll.run.windows.block import Block
from plimsoll.run.windows.spent import spent

SECONDS_A_MINUTE = 60.0


def carry_out(carrier: Carrier, server_of: ServerOfTrial) -> None:
    """Every block that has a trial without a result, whole; what need not be begun any more is skipped.

    Where treatments are up in groups it ends after a whole replicate only: every treatment has run as often.
    """
    replicates = replicates_of(carrier.plan)
    before = spent(carrier.out, [blocks for blocks in replicates if all(map(carrier.is_done, chain(*blocks)))])
    began, took = time.monotonic() - before.seconds, before.took
    carrier.at_turns = turning.varied(carrier.plan, carrier.state)
    for replicate, blocks in enumerate(replicates, start=1):
        missing = [block for block in blocks if not all(carrier.is_done(trial) for trial in block)]
        if not missing:
            continue
        last = Last(replicate - 1, blocks[0][0].block - 1, carrier.plan.groups is not None)
        # What is done again on request was within the budget already, and no look comes before it.
        is_again = any(again.before(carrier.out, trial) for trial in chain(*missing))
        if (
            missing == blocks
            and not is_again
            and (
                reason := _why_skipped(carrier, blocks)
                or _why_enough(carrier.plan, carrier.out, last, time.monotonic() - began, took)
            )
        ):
            for trial in carrier.left:
                carrier.skip(trial, reason)
            return
        started = time.monotonic()
        for block in missing:
            Block(carrier, block).run(server_of)
        if missing == blocks:
            took.append(time.monotonic() - started)


def _why_skipped(carrier: Carrier, blocks: Sequence[Sequence[PlannedTrial]]) -> str | None:
    """Why trials of a replicate were skipped already, by a run that was killed before it had skipped the rest."""
    for trial in chain(*blocks):
        stored = carrier.stored(trial)
        if stored is not None and stored.get("status") == SKIPPED:
            return str(stored.get("reason"))
    return None


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
