"""Phases over files: each phase's rate and cost by treatment, and what the page cache did.

A trial has each phase once, so intervals are over blocks, as of any metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from plimsoll.analysis.files import members
from plimsoll.analysis.files.document import Phase, PhaseMoved, Phases, Rates
from plimsoll.analysis.files.metrics import (
    OF_BONNIE,
    OF_IOZONE,
    PHASE_METRICS,
    RAW_STORAGE,
    SEEKS,
    SEQUENTIAL_IO,
    cost_of,
    rate_of,
)
from plimsoll.analysis.files.moved import RULE, moved
from plimsoll.analysis.metric import OPERATION, Measures
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.workload import Workload
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Mean, Used

# Those that write back what they have just read: Bonnie's rewrite (IOzone's writes alone), and some of its seeks.
IN_PLACE: Final = ("rewrite", SEEKS)
LIKE: Final = {
    RAW_STORAGE: "Bonnie's phases, by our own program",
    SEQUENTIAL_IO: "IOzone-like passes, not comparable to published results",
}

_NO_RATE: Final[Rates] = {
    "bytes_per_second": None,
    "operations_per_second": None,
    "load_ns_per_mb": None,
    "machine_ns_per_mb": None,
}


def reading(trial: Trial) -> list[PhaseMoved]:
    """The phases of a trial in their order, those that left a summary: as `moved`, with `phase` and what only phases
    have: the smallest transfer of a process as a share of its file."""
    phases_done: list[PhaseMoved] = []
    for entry, segment in trial.passes:
        if (flows := moved(segment, entry, is_in_place=entry["pass"] in IN_PLACE)) is None:
            continue
        facts, totals = segment.told.get("facts") or {}, segment.told.get("totals") or {}
        least = facts.get("min_transfer_bytes", totals.get("min_transfer_bytes"))
        whole = (trial.planned.get("resolved") or {}).get("workload") or {}
        each = _per_process(facts.get("bytes_planned"), whole.get("processes"))
        if segment.identity.get("lost"):
            # What was asked for and never answered is work that was not done, in a time that waited for it.
            flows = {**flows, **_NO_RATE}
        phases_done.append(
            {
                "phase": str(entry["pass"]),
                **flows,
                "min_transfer_share": None if least is None or not each else float(least) / each,
                "wrong": int(segment.verification.get("wrong") or 0),
                # What was recorded before it could be chosen was compared.
                "is_verified": facts.get("verified") is not False or not flows["bytes_read"],
                "members": members.moved(trial.data.get("layout"), entry.get("member_counters")),
            }
        )
    return phases_done


def _per_process(planned: Any, processes: Any) -> float | None:
    return float(planned) / int(processes) if planned and processes else None


def values(trial: Trial) -> dict[str, float | None]:
    """The trial's metrics, by phase."""
    figures: dict[str, float | None] = {}
    for phase in reading(trial):
        is_seeks = phase["phase"] == SEEKS
        figures[rate_of(phase["phase"])] = phase["operations_per_second" if is_seeks else "bytes_per_second"]
        figures[cost_of(phase["phase"])] = phase["machine_ns_per_mb"]
    return figures


def phases(run: Run, used: Used) -> Phases | None:
    """The `phases` of verdict.json; None where the load was another one."""
    workload = str((run.experiment.get("workload") or {}).get("name"))
    if workload not in LIKE:
        return None
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: dict[str, dict[int, list[PhaseMoved]]] = {name: {} for name in run.plan.get("treatments") or {}}
    for (block, treatment), entry in sorted(used.items()):
        by_treatment.setdefault(treatment, {})[block] = reading(trials[entry["number"]])
    order = OF_BONNIE if workload == RAW_STORAGE else OF_IOZONE
    seen = {phase["phase"] for blocks in by_treatment.values() for done in blocks.values() for phase in done}
    return {
        "workload": workload,
        "like": LIKE[workload],
        "rule": RULE,
        "phases": [phase for phase in order if phase in seen],
        "treatments": {name: _treatment(blocks) for name, blocks in by_treatment.items()},
    }


def _treatment(blocks: Mapping[int, list[PhaseMoved]]) -> dict[str, Phase]:
    """Each phase over blocks."""
    by_phase: dict[str, list[PhaseMoved]] = {}
    for done in blocks.values():
        for entry in done:
            by_phase.setdefault(entry["phase"], []).append(entry)
    return {phase: _phase(entries) for phase, entries in by_phase.items()}


def _phase(entries: list[PhaseMoved]) -> Phase:
    said = [entry["cache"] for entry in entries]
    return {
        "seconds": _over((entry["seconds"] for entry in entries), log=True),
        "bytes_per_second": _over((entry["bytes_per_second"] for entry in entries), log=True),
        "operations_per_second": _over((entry["operations_per_second"] for entry in entries), log=True),
        "load_ns_per_mb": _over((entry["load_ns_per_mb"] for entry in entries), log=True),
        "machine_ns_per_mb": _over((entry["machine_ns_per_mb"] for entry in entries), log=True),
        "cpu_share": _over((entry["cpu_share"] for entry in entries), log=False),
        "cpu_user_share": _over((entry["cpu_user_share"] for entry in entries), log=False),
        "cpu_system_share": _over((entry["cpu_system_share"] for entry in entries), log=False),
        "machine_share": _over((entry["machine_share"] for entry in entries), log=False),
        "device_read_share": _over((entry["device_read_share"] for entry in entries), log=False),
        "device_write_share": _over((entry["device_write_share"] for entry in entries), log=False),
        "min_transfer_share": _over((entry["min_transfer_share"] for entry in entries), log=False),
        "is_verified": all(entry["is_verified"] for entry in entries),
        "members": members.together(entry["members"] for entry in entries),
        "cache": [{"what": what, "trials": said.count(what)} for what in dict.fromkeys(said)],
    }


def _over(values: Iterable[float | None], *, log: bool) -> Mean | None:
    known = [float(value) for value in values if value is not None and (value > 0 or not log)]
    return as_mean(over_blocks(known, log=log))


def _judge(context: Context) -> Phases | None:
    return phases(context.run, context.used)


PART = Part("phases", _judge)
MEASURES: Final = Measures(PHASE_METRICS, values)
BONNIE_LIKE: Final = Workload(
    RAW_STORAGE, unit=OPERATION, is_of_tests=True, is_its_own_target=True, is_committed_as_done=False
)
IOZONE_LIKE: Final = replace(BONNIE_LIKE, name=SEQUENTIAL_IO)
