"""What a run of raw_storage found of each storage, to be set beside what a database carries on it.

The constraint: it compares storages alone. So of other factors, such as the file's size, the first level counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.analysis.files.metrics import RAW_STORAGE, rate_of
from plimsoll.analysis.places.document import Given, Promised, PromisedStorage
from plimsoll.analysis.places.layout import VARIED
from plimsoll.analysis.places.promise import PHASES, storages_of
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record import Run
from plimsoll.record.verdict import Mean

Json = dict[str, Any]
Values = dict[tuple[int, str], float]  # by block and storage


def promised(run: Run, verdict: Json, differences: Iterable[str]) -> Promised | None:
    """What a run of raw_storage found of each storage, with its largest file; None where it compared no storages.

    `differences`: keys of the fingerprint in which the two runs' machines differ.
    """
    if ((run.experiment.get("workload") or {}).get("name")) != RAW_STORAGE:
        return None
    storages, others = storages_of(run.plan), _others(run.plan)
    treatments: dict[str, Json] = run.plan.get("treatments") or {}
    first: dict[str, str] = next((one["levels"] for one in treatments.values()), {})
    chosen = {
        name: storages[name]
        for name, one in treatments.items()
        if name in storages and all(one["levels"][path] == first[path] for path in others)
    }
    names = list(dict.fromkeys(chosen.values()))
    if len(names) < 2:
        return None
    by_phase = {phase: _values(verdict, rate_of(phase), chosen) for phase in PHASES}
    return {
        "run": str(run.data.get("id")),
        "at": ", ".join(f"{factor['label']} {first[factor['path']]}" for factor in run.plan.get("factors") or []
                        if factor["path"] in others),
        "differences": sorted(differences),
        "storages": [_storage(name, names[0], by_phase) for name in names],
    }  # fmt: skip


def _others(plan: Json) -> list[str]:
    """The factors that decide nothing of where files lie."""
    factors = plan.get("factors") or []
    return [one["path"] for one in factors if not any(path.startswith(VARIED) for path in one["paths"])]


def _values(verdict: Json, metric: str, chosen: Mapping[str, str]) -> Values:
    found: Values = {}
    for trial in verdict["trials"]:
        value = (trial.get("metrics") or {}).get(metric)
        if trial["treatment"] in chosen and value and not trial.get("excluded") and not trial.get("duplicate"):
            found[trial["block"], chosen[trial["treatment"]]] = float(value)
    return found


def _storage(name: str, first: str, by_phase: Mapping[str, Values]) -> PromisedStorage:
    phases: dict[str, Given] = {}
    for phase, values in by_phase.items():
        rate = as_mean(over_blocks([value for (_, one), value in sorted(values.items()) if one == name], True))
        if rate is not None:
            phases[phase] = {"rate": rate, "ratio": None if name == first else _ratio(values, name, first)}
    return {"storage": name, "phases": phases}


def _ratio(values: Values, name: str, first: str) -> Mean | None:
    """Within the block."""
    logs = [
        math.log(value / base)
        for (block, one), value in sorted(values.items())
        if one == name and (base := values.get((block, first)))
    ]
    return as_mean(over_blocks([math.exp(one) for one in logs], True))
