"""What operations on files wait for, by kind and treatment: the mean of each part, of all and of the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from plimsoll.analysis.files.document import FileWaits, OperationTimes, TimesOfTreatment, WaitPlace
from plimsoll.analysis.files.times import PROBE, Times, completions, times
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record import Run, Segment, Trial
from plimsoll.record.verdict import Mean, Used

SLOWEST_SHARE: Final = 0.01
SLOWEST_MIN: Final = 10  # operations, or nothing is said of the slowest
PLACES_MAX: Final = 8

Means = dict[str, float]
LATENCY: Final = "latency"  # among means: the whole


def _segments(trial: Trial) -> list[Segment]:
    return [segment for _, segment in trial.passes] or [trial.measure]


def _is_on_a_ring(trial: Trial) -> bool:
    """Whether its operations have no thread that the probe could watch, and where their time goes was asked for."""
    resolved = trial.planned.get("resolved") or {}
    is_asked = (resolved.get("probes") or {}).get("breakdown")
    return bool(is_asked) and (resolved.get("workload") or {}).get("engine") == "io_uring"


def _by_kind(trial: Trial) -> dict[str, list[tuple[Times, np.ndarray]]]:
    """Of each kind the times of its segments, with which of the operations are its own."""
    found: dict[str, list[tuple[Times, np.ndarray]]] = {}
    for segment in _segments(trial):
        seen = completions(segment) if _is_on_a_ring(trial) else times(segment)
        if seen is None:
            continue
        for number, name in enumerate(segment.kinds):
            chosen = seen.kind == number
            if chosen.any():
                found.setdefault(name, []).append((seen, chosen))
    return found


def _part(seen: Times, name: str) -> np.ndarray:
    return seen.parts[name] if name in seen.parts else np.zeros(len(seen.latency))


def _means(of_kind: Sequence[tuple[Times, np.ndarray]]) -> tuple[int, Means, Means | None]:
    """How many there are, the mean of each part, and of those that took longest; with the latency."""
    names = list(dict.fromkeys(name for seen, _ in of_kind for name in seen.parts))
    table = {name: np.concatenate([_part(seen, name)[chosen] for seen, chosen in of_kind]) for name in names}
    latency = np.concatenate([seen.latency[chosen] for seen, chosen in of_kind])
    slow = max(1, int(SLOWEST_SHARE * len(latency)))
    worst = np.argsort(latency, kind="stable")[-slow:]
    mean = {name: float(values.mean()) for name, values in table.items()} | {LATENCY: float(latency.mean())}
    if slow < SLOWEST_MIN:
        return len(latency), mean, None
    of_worst = {name: float(values[worst].mean()) for name, values in table.items()}
    return len(latency), mean, of_worst | {LATENCY: float(latency[worst].mean())}


def _over(means: Sequence[Means]) -> tuple[dict[str, Mean], Mean | None]:
    """Each part over blocks, and the latency. What no operation waited for is left out; what is small is not."""
    names = list(dict.fromkeys(name for one in means for name in one if name != LATENCY))
    parts = {name: as_mean(over_blocks([one.get(name, 0.0) for one in means], log=False)) for name in names}
    kept = {name: mean for name, mean in parts.items() if mean and mean["value"]}
    return kept, as_mean(over_blocks([one[LATENCY] for one in means], log=False))


def _operation(kind: str, by_trial: Sequence[tuple[int, Means, Means | None]]) -> OperationTimes:
    parts, latency = _over([means for _, means, _ in by_trial])
    slow = [worst for _, _, worst in by_trial if worst is not None]
    slow_parts, slow_latency = _over(slow) if len(slow) == len(by_trial) else ({}, None)
    return {
        "kind": kind,
        "operations": sum(count for count, _, _ in by_trial),
        "latency_ns": latency,
        "parts_ns": parts,
        "slowest_ns": slow_latency,
        "slowest_parts_ns": slow_parts,
    }


def _places(trials: Sequence[Trial]) -> list[WaitPlace]:
    """The places with the longest waits for anything but the plan, of all trials together."""
    sums: dict[tuple[str, str], list[int]] = {}
    for trial in trials:
        for segment in _segments(trial):
            for place in (segment.probes.get(PROBE) or {}).get("places") or []:
                entry = sums.setdefault((place["bucket"], place["function"]), [0, 0])
                entry[0] += place["count"]
                entry[1] += place["ns"]
    found: list[WaitPlace] = [
        {"bucket": bucket, "function": function, "count": count, "ns": ns}
        for (bucket, function), (count, ns) in sums.items()
        if bucket not in ("pause", "run_queue") and ns
    ]
    return sorted(found, key=lambda place: -place["ns"])[:PLACES_MAX]


def _treatment(trials: Sequence[Trial]) -> TimesOfTreatment | None:
    by_trial = [by_kind for trial in trials if (by_kind := _by_kind(trial))]
    if not by_trial:
        return None
    seen = list({id(one): one for found in by_trial for of_kind in found.values() for one, _ in of_kind}.values())
    kinds = list(dict.fromkeys(kind for found in by_trial for kind in found))
    return {
        "trials": len(by_trial),
        "operations": [
            _operation(kind, [_means(found[kind]) for found in by_trial if kind in found]) for kind in kinds
        ],
        "straddling": sum(one.straddling for one in seen),
        "missed": sum(one.missed for one in seen),
        "lost": sum(_lost(segment) for trial in trials for segment in _segments(trial)),
        "places": _places(trials),
    }


def _lost(segment: Segment) -> int:
    return sum(int(count) for count in ((segment.probes.get(PROBE) or {}).get("lost") or {}).values())


def file_waits(run: Run, used: Used) -> FileWaits | None:
    """The `file_waits` of verdict.json; None where no trial was watched."""
    trials = {trial.number: trial for trial in run.trials}
    of_treatment: dict[str, list[Trial]] = {}
    for (_, treatment), entry in sorted(used.items()):
        of_treatment.setdefault(treatment, []).append(trials[entry["number"]])
    found = {name: seen for name, mine in of_treatment.items() if (seen := _treatment(mine))}
    return {"slowest_share": SLOWEST_SHARE, "treatments": found} if found else None


def _trial_caveats(trial: Trial, _read: object) -> list[str]:
    """What makes its figures lower bounds, or unbelievable."""
    said = []
    for segment in _segments(trial):
        if (segment.probes.get(PROBE) or {}).get("status") != "on":
            continue
        seen = times(segment)
        missed = _lost(segment) + (0 if seen is None else seen.missed)
        if missed:
            said.append(f"{missed} waits of operations were lost: their time counts as time on a CPU")
    return said


def _judge(context: Context) -> FileWaits | None:
    return file_waits(context.run, context.used)


PART = Part("file_waits", _judge, trial_caveats=_trial_caveats)
