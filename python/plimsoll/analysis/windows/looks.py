"""A look at a run of windows that goes on: whether what it asks is decided, so that it may stop.

Asked at the end of each block from the second on; of treatments in groups at the end of each replicate. Decided is a
run whose every pair of levels is told apart, or shown to differ by no more than the relevant ratio, by the share of the
errors that this look may spend (spending.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from plimsoll.analysis.admission import admit
from plimsoll.analysis.comparing.compare import DELTA
from plimsoll.analysis.comparing.evidence import Evidence
from plimsoll.analysis.comparing.levels import groups
from plimsoll.analysis.comparing.standing import chosen, twins
from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.metrics import METRICS, judged_of
from plimsoll.analysis.trial.standstill import bounds
from plimsoll.analysis.windows.method import method_of, planned_replicates
from plimsoll.analysis.windows.spending import FIRST, at_look
from plimsoll.analysis.windows.through import groups_of
from plimsoll.record import Run, Trial, open_run
from plimsoll.record.trial import RESULTS
from plimsoll.record.verdict import TrialEntry


@dataclass(frozen=True)
class Decision:
    """What a look found: whether to stop, why in words, and the block after which it looked."""

    decided: bool
    why: str
    after_block: int


def decision(out: Path) -> Decision | None:
    """The look after the last block of a run folder whose trials have all ended; None where there is none to take.

    That is before the second block, of a run that is not of windows, and of one that compares nothing.
    """
    run = open_run(out)
    metric = METRICS[judged_of(run.plan, run.experiment)]
    together = groups_of(run)
    block, compared = _last_whole_block(run), groups(run.plan, run.experiment)
    replicate = together.replicate(block)
    if replicate < FIRST or not compared:
        return None
    block = replicate * together.count
    method = method_of(run, metric, at_look(replicate, planned_replicates(run)))
    if method is None:
        return None
    entries = [_entry(trial) for trial in run.trials if trial.block <= block]
    used, again = chosen(entries), twins(entries)
    open_: list[str] = []
    for group in compared:
        evidence = method(group.treatments, used, again, metric)
        open_ += undecided(evidence, group.levels, _delta(run))
    if open_:
        more = f" and {len(open_) - 1} more" if len(open_) > 1 else ""
        return Decision(False, f"cannot tell yet: {open_[0]}{more}", block)
    ratio = f"{_delta(run):.0%}"
    return Decision(True, f"every pair of levels is told apart, or differs by no more than {ratio}", block)


def undecided(evidence: Evidence, levels: tuple[str, ...], delta: float) -> list[str]:
    """The pairs that are neither told apart nor shown to be alike; a level that has no value is waited for no more."""
    mean, half, beaten = evidence.sure.shown.mean, evidence.sure.half(), evidence.sure.beaten
    able = np.isfinite(evidence.copies[0]).any(0)
    return [
        f"{levels[first]} and {levels[second]}"
        for first in range(len(levels))
        for second in range(first + 1, len(levels))
        if able[first] and able[second] and not (beaten[first, second] or beaten[second, first])
        and not abs(mean[first, second]) + half[first, second] <= math.log1p(delta)
    ]  # fmt: skip


def _delta(run: Run) -> float:
    design = run.experiment.get("design") or {}
    return float(run.plan.get("relevant_ratio") or design.get("relevant_ratio") or 1 + DELTA) - 1


def _last_whole_block(run: Run) -> int:
    """The last block of which every trial has its result.

    One that was stopped is done anew, and is looked at when it was.
    """
    ended: dict[int, bool] = {}
    for trial in run.trials:
        ended[trial.block] = ended.get(trial.block, True) and trial.status in RESULTS
    whole = [block for block in sorted(ended) if all(ended[earlier] for earlier in ended if earlier <= block)]
    return max(whole, default=0)


def _entry(trial: Trial) -> TrialEntry:
    """As much of a trial's entry as tells whether it enters, and by what it is compared."""
    values = estimates(trial)
    entry: dict[str, object] = {"number": trial.number, "block": trial.block, "treatment": trial.treatment}
    entry |= {"duplicate": trial.duplicate, "metrics": values, "unbounded": bounds(trial) or None}
    return cast(TrialEntry, entry | {"admitted": not admit(trial, values).reasons})
