"""Blocks of windows one after the other, until the question is decided, the time is up, or the last has ended."""

from __future__ import annotations

import time
from pathlib import Path

from plimsoll.analysis.windows import looks
from plimsoll.experiment import Plan
from plimsoll.experiment.design import blocks_of
from plimsoll.run.carrier import Carrier
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.windows import turning
from plimsoll.run.windows.block import Block

SECONDS_A_MINUTE = 60.0


def carry_out(carrier: Carrier, server_of: ServerOfTrial) -> None:
    """Every block that has a trial without a result, whole; what need not be begun any more is skipped."""
    began, took = time.monotonic(), list[float]()
    carrier.at_turns = turning.varied(carrier.plan, carrier.state)
    for trials in blocks_of(carrier.plan.trials):
        if all(carrier.is_done(trial) for trial in trials):
            continue
        last = trials[0].block - 1
        if reason := _why_enough(carrier.plan, carrier.out, last, time.monotonic() - began, took):
            for trial in carrier.left:
                carrier.skip(trial, reason)
            return
        started = time.monotonic()
        Block(carrier, trials).run(server_of)
        took.append(time.monotonic() - started)


def _why_enough(plan: Plan, out: Path, last: int, seconds: float, took: list[float]) -> str | None:
    """Why no block is begun after block `last`; None where one is. `took`: seconds of each block so far."""
    design = plan.experiment.design
    if last and design.stop == "decided" and (decided := _decided(out)) is not None:
        return f"decided after block {last}: {decided}"
    # One block says nothing of how starts differ, so that nothing can be told from it.
    if (
        took
        and last >= looks.FIRST
        and design.minutes is not None
        and seconds + max(took) > design.minutes * SECONDS_A_MINUTE
    ):
        return f"block {last} was the last that fits into {design.minutes:g} minutes"
    return None


def _decided(out: Path) -> str | None:
    """What the record says by now, where it is enough."""
    decision = looks.decision(out)
    return decision.why if decision is not None and decision.decided else None
