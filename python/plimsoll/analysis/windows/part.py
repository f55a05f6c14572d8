"""What a run of windows adds to its verdict: where noise comes from, how intervals closed, what was distorted."""

from __future__ import annotations

from typing import Literal

import numpy as np

from plimsoll.analysis.comparing.levels import groups
from plimsoll.analysis.metrics import METRICS, judged_of
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.trial.windows import Windows
from plimsoll.analysis.windows import lead_in, others_writes, rates
from plimsoll.analysis.windows.document import Arrangement, Closing, TogetherGroups, WindowRate, WindowsOfRun
from plimsoll.analysis.windows.equals import noise_of_run, stored_start
from plimsoll.analysis.windows.method import (
    DECIDED,
    decided_after,
    planned_blocks,
    planned_replicates,
    share_of,
    stops_when_decided,
)
from plimsoll.analysis.windows.over_time import closing
from plimsoll.analysis.windows.through import groups_of
from plimsoll.record import Run, Trial
from plimsoll.record.trial import SKIPPED
from plimsoll.record.trial import Windows as Arranged
from plimsoll.record.verdict import Used

KEY = "windows"


def _judge(context: Context) -> WindowsOfRun | None:
    run, known = context.run, context.read[KEY]
    if not known:
        return None
    again = context.twins
    trials, inside = _entering(context)
    share = share_of(run)
    return {
        **_arrangement(trials, inside),
        "groups": _groups(run),
        "noise": noise_of_run(context.used, again, inside),
        "looks": {
            "stops_when_decided": stops_when_decided(run),
            "planned_blocks": planned_blocks(run),
            "decided_after": decided_after(run),
            "alpha": share.alpha,
            "confidence": share.confidence,
        },
        "closing": _closing(context, again, known),
        "rates": _rates(trials, inside),
        "lead_in": lead_in.of_trials(trials, inside),
        "others_writes": others_writes.of_blocks(_blocks(trials)),
    }


def _entering(context: Context) -> tuple[dict[int, Trial], dict[int, Windows]]:
    """The trials of windows that enter a comparison, and their windows."""
    entries = [entry for side in (context.used, context.twins) for entry in side.values()]
    numbers = sorted({entry["number"] for entry in entries} & set(context.read[KEY]))
    trials = {trial.number: trial for trial in context.run.trials if trial.number in numbers}
    return trials, {number: context.read[KEY][number] for number in numbers}


def _blocks(trials: dict[int, Trial]) -> list[list[Trial]]:
    blocks = sorted({trial.block for trial in trials.values()})
    return [[trial for trial in trials.values() if trial.block == block] for block in blocks]


def _arrangement(trials: dict[int, Trial], inside: dict[int, Windows]) -> Arrangement:
    """How the windows were: their length, their rounds, what switching between servers took."""
    of_trials: list[Arranged] = [trial.data.get("windows") or {} for trial in trials.values()]
    seconds = [float(np.median(windows.closed_ns - windows.opened_ns)) / 1e9 for windows in inside.values()]
    rounds = [len(windows.round) for windows in inside.values()]
    return {
        "seconds": float(np.median(seconds)) if seconds else None,
        "lead_in_seconds": max((windows.lead_in_ns / 1e9 for windows in inside.values()), default=None),
        "rounds": {"least": min(rounds, default=0), "most": max(rounds, default=0)},
        "windows": sum(rounds),
        "without_transaction": sum(int((windows.done == 0).sum()) for windows in inside.values()),
        "thaw_ns_max": _largest(of_trials, "thaw_ns"),
        "freeze_ns_max": _largest(of_trials, "freeze_ns"),
    }


def _groups(run: Run) -> TogetherGroups | None:
    """Which treatments were up together, where that was not all of them."""
    known = run.plan.get("groups")
    if not known:
        return None
    return {"reference": known["reference"], "members": known["members"], "why": known["why"]}


def _largest(of_trials: list[Arranged], key: Literal["thaw_ns", "freeze_ns"]) -> float | None:
    known = [took for entry in of_trials if (took := entry.get(key))]
    return max((float(took["max"]) for took in known if took.get("max") is not None), default=None)


def _closing(context: Context, again: Used, known: dict[int, Windows]) -> list[Closing]:
    """Of each comparison, its pairs by the names of their levels; empty where the judged metric is none of windows."""
    run = context.run
    if not METRICS[judged_of(run.plan, run.experiment)].is_of_windows:
        return []
    planned = planned_replicates(run) if stops_when_decided(run) else None
    said: list[Closing] = []
    for place, group in enumerate(groups(run.plan, run.experiment)):
        columns, through = groups_of(run).through(group.treatments)
        blocks = sorted({block for block, treatment in context.used if treatment in columns})
        if not blocks:
            continue
        by_arm = rates.array(blocks, columns, context.used, again, known)
        for pair in closing(by_arm, stored_start(run), planned, through):
            said.append(
                {
                    "comparison": place,
                    "first": group.levels[pair["first"]],
                    "second": group.levels[pair["second"]],
                    "windows": pair["windows"],
                    "looks": pair["looks"],
                }
            )
    return said


def _rates(trials: dict[int, Trial], inside: dict[int, Windows]) -> list[WindowRate]:
    """Every window in time: seconds since the first of its block."""
    begin: dict[int, int] = {}
    for number, windows in inside.items():
        block = trials[number].block
        begin[block] = min(begin.get(block, int(windows.opened_ns[0])), int(windows.opened_ns[0]))
    return [
        {
            "treatment": trials[number].treatment,
            "trial": number,
            "block": trials[number].block,
            "round": int(place),
            "seconds": round((int(opened) - begin[trials[number].block]) / 1e9, 3),
            "rate": float(rate),
        }
        for number, windows in inside.items()
        for place, opened, rate in zip(windows.round, windows.opened_ns, windows.rates, strict=True)
    ]


def _cut_short(run: Run) -> list[str]:
    """Why blocks that were planned were not run, where that is not because the question was decided."""
    reasons = [str(trial.data.get("reason")) for trial in run.trials if trial.status == SKIPPED]
    others = [reason for reason in reasons if not reason.startswith(DECIDED)]
    return [f"{others.count(reason)} trials were not run: {reason}" for reason in dict.fromkeys(others)]


def _caveats(context: Context) -> list[str]:
    known = context.read[KEY]
    if not known:
        return []
    trials, inside = _entering(context)
    said = _cut_short(context.run)
    if together := _groups(context.run):
        label = context.treatments[together["reference"]]["label"]
        said.append(
            f"not all treatments were up at once: levels of different groups are compared through {label}, with the "
            "errors of both comparisons; the estimate of each by itself is of its own group's blocks, so their ratio "
            "is another"
        )
    tested = lead_in.of_trials(trials, inside)
    if tested and tested["verdict"] == "too short":
        said.append(
            f"the lead-in of windows is too short: the first third of what counts has {tested['ratio']:.2f} x the rate "
            f"of the rest [{tested['low']:.2f}, {tested['high']:.2f}]; raise design.lead_in_seconds"
        )
    written = others_writes.of_blocks(_blocks(trials))
    if written and written["is_named"]:
        said.append(
            f"{written['share']:.0%} of what the disks wrote came from frozen servers: writes of one treatment fell "
            "into the windows of others"
        )
    return said


PART = Part(KEY, judge=_judge, caveats=_caveats, read=rates.by_trial)
