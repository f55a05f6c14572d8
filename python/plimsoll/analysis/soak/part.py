"""A soak from its record: its rounds compared, what befell them, and what grew with use.

The fact that constrains it: a round is read as a trial of its own, so that it has every figure that a trial has. One
in which the server crashed has a figure and is no evidence of a drift; it is shown and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.metrics import judged_of
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.soak.document import (
    Crash,
    DiskChange,
    Filled,
    FoundInside,
    Growth,
    Interruption,
    Memory,
    OneRound,
    SoakOfRun,
)
from plimsoll.analysis.soak.growth import GROWS, SETTLES, Watched, judge_growth
from plimsoll.analysis.soak.inside import changes, parts_of
from plimsoll.analysis.soak.kind import KIND
from plimsoll.analysis.soak.rounds import judge_rounds
from plimsoll.analysis.soak.speed import speed_of, speeds_of_parts
from plimsoll.experiment import size
from plimsoll.experiment.soaking import Soak
from plimsoll.record import Run, Trial
from plimsoll.record.run import Round
from plimsoll.record.thinning import STEPS_S, bytes_of

Json = dict[str, Any]
P99: Final = "latency_ns_p99"
COLD, CRASHED = "after a start of the server", "the server crashed in it: left out of the drift"
RULE: Final = (
    "a round that would take more of the record than its share of the time has its series thinned to one sample in "
    f"{', '.join(map(str, STEPS_S[1:-1]))} or {STEPS_S[-1]} s, its histograms by second added up over as many, and its "
    "single transactions removed where that is not enough; histograms hold every transaction whatever was thinned"
)
# Of what a disk tells of itself: those that only ever mean trouble when they rise.
DISK_COUNTERS: Final = ("reallocated", "pending", "uncorrectable", "media_errors")
_SECONDS_NS: Final = 1e9
# What grows with use, of the readings at the end of each round: name, unit, and the rise below which nobody looks.
_SIZES: Final = {
    "database_bytes": ("the database", "bytes", 2**20),
    "dead_tuples": ("dead rows", "rows", 1000),
    "front_bytes": ("memory of the front", "bytes", 2**20),
    "agent_bytes": ("memory of the agent", "bytes", 2**20),
}


def soak_of(run: Run, metric: str) -> SoakOfRun | None:
    """Of the one trial of a soak; None of any other run, and of one that has not begun."""
    asked = run.experiment.get(KIND)
    if run.data.get("kind") != KIND or asked is None or not run.trials:
        return None
    trial, soak = run.trials[0], Soak.model_validate(asked)
    told: Json = trial.data.get("soak") or {}
    rounds = trial.rounds
    each = [one_round(one, metric) for one in rounds]
    values = [one["value"] if one["is_judged"] else None for one in each]
    drift = judge_rounds(values, _remarks(trial, rounds), [one["speed_ns"] for one in each])
    record_bytes = bytes_of(trial.path)
    return {
        "metric": metric,
        "length_s": soak.seconds,
        "spent_s": float(told.get("spent_s") or 0.0),
        "between": soak.between,
        "after_crash": soak.after_crash,
        "ended_by": told.get("ended_by"),
        "why": told.get("why"),
        "sittings": int(trial.data.get("sittings") or 0),
        "each": each,
        "drift": drift,
        "inside": inside_rounds(rounds),
        "crashes": [_crash(one) for one in told.get("crashes") or []],
        "interruptions": [_interruption(one) for one in trial.data.get("cut") or []],
        "full": [_filled(one) for one in told.get("full") or []],
        "disks": disks(rounds),
        "memory": memory(rounds),
        "growth": growth(rounds),
        "record_bytes": record_bytes,
        "record_bytes_max": size.parse(soak.record_max),
        "thinned": dict(Counter(str(one["step_s"]) for one in each if one["step_s"] is not None)),
        "rule": RULE,
    }


def inside_rounds(rounds: Sequence[Round]) -> list[FoundInside]:
    """Changes inside rounds; of one in which the server crashed that is told already."""
    found: dict[int, tuple[float, np.ndarray]] = {}
    speeds: dict[int, np.ndarray] = {}
    for one in rounds:
        measured, step_s = one.measure, 1
        table = measured.latency_seconds
        if table is None:  # thinned
            table, step_s = measured.latency_blocks, int((one.data.get("thinned") or {}).get("step_s") or 1)
        began, ended = measured.told.get("started_ns"), measured.told.get("ended_ns")
        if began is None or ended is None or one.data.get("crashes"):
            continue
        if (parts := parts_of(table, (ended - began) / _SECONDS_NS, step_s)) is not None:
            found[one.place] = parts
            if (of_parts := speeds_of_parts(measured, parts[0], len(parts[1]))) is not None:
                speeds[one.place] = of_parts
    return changes(found, speeds)


def _crash(one: Json) -> Crash:
    return {"round": one["round"], "epoch_ns": one["epoch_ns"], "text": one["text"]}


def _filled(one: Json) -> Filled:
    return {"epoch_ns": one["epoch_ns"], "freed_bytes": one["freed_bytes"]}


def one_round(one: Round, metric: str) -> OneRound:
    """A round's figures."""
    values, data = estimates(one), one.data
    began, ended = data.get("began_epoch_ns"), data.get("ended_epoch_ns")
    thinned = data.get("thinned") or {}
    return {
        "round": one.place,
        "began_epoch_ns": began,
        "seconds": None if began is None or ended is None else (ended - began) / _SECONDS_NS,
        "value": values.get(metric),
        "latency_ns_p99": values.get(P99),
        "failed": one.measure.identity.get("failed"),
        "is_judged": not data.get("crashes"),
        "speed_ns": speed_of(one.measure),
        "step_s": thinned.get("step_s"),
        "has_rows": thinned.get("has_rows"),
    }


def _remarks(trial: Trial, rounds: Sequence[Round]) -> list[list[str]]:
    """What befell each round."""
    attempts = Counter(str(one.get("segment")) for one in trial.data.get("cut") or [])
    said = []
    for one in rounds:
        found = [COLD] if one.data.get("begins_cold") else []
        if before := attempts[one.name]:
            found.append(f"repeated after {before} interrupted {'attempt' if before == 1 else 'attempts'}")
        said.append(found + ([CRASHED] if one.data.get("crashes") else []))
    return said


def _interruption(entry: Json) -> Interruption:
    why = (str(entry.get("why") or "").strip().splitlines() or ["no reason is known"])[0]
    return {
        "round": entry.get("segment"),
        "attempt": entry.get("attempt"),
        "began_epoch_ns": entry.get("began_epoch_ns"),
        "why": why,
    }


def disks(rounds: Sequence[Round]) -> list[DiskChange]:
    """What disks count of their own troubles, where it has risen: any rise is one too many, and a sector that waits for
    another place is one whatever becomes of it later. They are read at the end of each round, so what rose in the first
    is not known."""
    last: dict[tuple[str, str], int] = {}
    risen: dict[tuple[str, str], DiskChange] = {}
    for one in rounds:
        smart: Any = one.data.get("smart") or {}
        for device, told in smart.items():
            for counter in DISK_COUNTERS:
                if (value := told.get(counter)) is None:
                    continue
                key = (device, counter)
                before = last.get(key, value)
                if key in risen:
                    risen[key]["most"] = max(risen[key]["most"], value)
                elif value > before:
                    risen[key] = {
                        "device": device,
                        "counter": counter,
                        "first": before,
                        "most": value,
                        "round": one.place,
                    }
                last[key] = value
    return list(risen.values())


def memory(rounds: Sequence[Round]) -> Memory:
    """The most of any round; of the front in records of earlier versions at the ends of rounds alone."""
    each = [one.data.get("front_most_bytes") or one.data.get("front_bytes") for one in rounds]
    front = [found for found in each if found]
    agent = [found for one in rounds if (found := one.measure.health.get("memory_bytes_max"))]
    return {"front_bytes_max": max(front, default=None), "agent_bytes_max": max(agent, default=None)}


def growth(rounds: Sequence[Round]) -> list[Growth]:
    """What grew, of what is read at the end of each round."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in _SIZES}
    for one in rounds:
        ended = one.data.get("ended_epoch_ns")
        readings: dict[str, Any] = dict(one.data.get("sizes") or {})
        readings["front_bytes"] = one.data.get("front_bytes")
        readings["agent_bytes"] = one.measure.health.get("memory_bytes_max")
        for name, (times, values) in found.items():
            if ended is not None and readings.get(name):
                times.append(ended / _SECONDS_NS)
                values.append(float(readings[name]))
    watched = {
        _SIZES[name][0]: Watched(times, values, _SIZES[name][1], _SIZES[name][2])
        for name, (times, values) in found.items()
        if values
    }
    return [one for one in judge_growth(watched) if one["verdict"] in (GROWS, SETTLES)]


def _judge(context: Context) -> SoakOfRun | None:
    return soak_of(context.run, judged_of(context.run.plan, context.run.experiment))


def _caveats(context: Context) -> list[str]:
    run = context.run
    is_one = run.data.get("kind") == KIND and any(len(trial.rounds) > 1 for trial in run.trials)
    return [ALONE] if is_one else []


ALONE: Final = "the trial's own figures (levels, latency, counters) are those of the first round of the soak"
PART = Part(KIND, judge=_judge, caveats=_caveats)
