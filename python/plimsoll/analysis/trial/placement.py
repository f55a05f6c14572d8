"""On which CPUs generator and server ran, and whether it was the same in every arm.

On a small machine the placement alone moves throughput by more than most settings do, so trials placed otherwise than
the rest are not compared with them, unless the placement is what the experiment varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from plimsoll.analysis.trial.readings import cpu_list
from plimsoll.record import Trial
from plimsoll.record.judged_trial import PlacedTrials, Placement, Placements
from plimsoll.record.verdict import TrialEntry

Json = dict[str, Any]
_VARIED = ("environment.target_cpus", "environment.load_cpus")


def placement(trial: Trial) -> Placement | None:
    """The CPUs of server, load and agent as recorded; None where nothing was."""
    cpus = trial.data.get("cpus") or {}
    allowed = trial.measure.health.get("cpus_allowed")
    if not cpus and allowed is None:
        return None
    return {"target": cpus.get("target"), "load": cpus.get("load"), "agent": _shown(allowed)}


def _shown(allowed: Any) -> str | None:
    found = cpu_list(allowed)
    return None if found is None else ",".join(str(cpu) for cpu in sorted(found))


def is_varied(plan: Json) -> bool:
    """Whether some factor sets CPUs."""
    paths: list[str] = []
    for factor in plan.get("factors") or []:
        paths += [str(factor.get("path")), *(str(path) for path in factor.get("paths") or [])]
    return any(path in _VARIED for path in paths)


def settle(entries: list[TrialEntry], plan: Json) -> Placements:
    """Excludes trials placed otherwise than most; what was found, for verdict.json.

    `entries`: the trials of the verdict, with their `placement`; changed in place.
    """
    seen = [entry for entry in entries if entry["admitted"] and entry["placement"] is not None]
    counted = Counter(_key(entry) for entry in seen)
    varied = is_varied(plan)
    if len(counted) > 1 and not varied:
        usual = counted.most_common(1)[0][0]
        for entry in seen:
            if _key(entry) != usual:
                entry["reasons"].append(f"generator or server ran on other CPUs than in most trials: {_words(entry)}")
                entry["admitted"] = False
    return {
        "varied": varied,
        "equal": len(counted) <= 1 if counted else None,
        "placements": [cast(PlacedTrials, {**dict(key), "trials": count}) for key, count in counted.most_common()],
    }


def _key(entry: TrialEntry) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(_by_whom(entry).items()))


def _words(entry: TrialEntry) -> str:
    return ", ".join(f"{who} on {cpus}" for who, cpus in _by_whom(entry).items() if cpus is not None)


def _by_whom(entry: TrialEntry) -> Mapping[str, str | None]:
    return cast(Mapping[str, str | None], entry["placement"] or {})
