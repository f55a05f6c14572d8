"""What there is to explain a difference by, of each treatment of a run, and what changed between two.

The breakdown, the system calls and the stacks are each set against each other where both sides have them; where not, it
is said why, and how to have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.analysis.breakdown import changes
from plimsoll.analysis.breakdown.breakdown import by_treatment
from plimsoll.analysis.breakdown.difference import kinds_of
from plimsoll.analysis.breakdown.document import CpuChange, LatencyChange
from plimsoll.analysis.breakdown.reading import Reading
from plimsoll.analysis.breakdown.trial import MEAN
from plimsoll.analysis.comparing.standing import chosen
from plimsoll.analysis.probes.page_cache import probe
from plimsoll.analysis.runs.changes_calls import of_calls
from plimsoll.analysis.runs.changes_functions import of_functions
from plimsoll.analysis.runs.document import Explained
from plimsoll.record import Run, Trial

Json = dict[str, Any]
BREAKDOWN, CALLS, FUNCTIONS = "breakdown", "syscalls", "profile"


@dataclass(frozen=True)
class Side:
    """What is known of one treatment of one run."""

    readings: Mapping[int, Reading]  # breakdowns by block
    metrics: Mapping[int, Mapping[str, float | None]]  # of its trials by number
    trials: Mapping[int, Trial]  # those that entered the verdict, by block


def sides_of(run: Run, verdict: Json, timed: Mapping[int, Reading]) -> dict[str, Side]:
    """By the treatment's label."""
    used, trials = chosen(verdict["trials"]), {trial.number: trial for trial in run.trials}
    metrics = {entry["number"]: entry["metrics"] for entry in verdict["trials"]}
    readings = by_treatment(timed, used, verdict["treatments"])
    trials_of: dict[str, dict[int, Trial]] = {}
    for (block, treatment), entry in sorted(used.items()):
        trials_of.setdefault(treatment, {})[block] = trials[entry["number"]]
    return {
        verdict["treatments"].get(name, {}).get("label", name): Side(readings.get(name, {}), metrics, by_block)
        for name, by_block in trials_of.items()
    }


def explain(
    label: str, first: Side | None, second: Side | None, spread: float | None, is_paired: bool = False
) -> Explained | None:
    """What changed; None without a trial."""
    if first is None or second is None:
        return None
    latency, cpu = _of_breakdown(first, second, spread, is_paired)
    calls = of_calls(first.trials, second.trials, is_paired, spread)
    functions = of_functions(first.trials, second.trials, is_paired, spread)
    known = {BREAKDOWN: bool(latency), CALLS: bool(calls), FUNCTIONS: bool(functions)}
    absent = {name: _why_absent(name, first, second) for name, is_known in known.items() if not is_known}
    return {
        "treatment": label,
        "latency": latency,
        "cpu": cpu,
        "calls": calls,
        "functions": functions,
        "absent": absent,
    }


def _of_breakdown(
    first: Side, second: Side, spread: float | None, is_paired: bool
) -> tuple[dict[str, LatencyChange], CpuChange | None]:
    if not first.readings or not second.readings:
        return {}, None
    kinds = kinds_of([*first.readings.values(), *second.readings.values()])
    by_kind = {
        kind: changes.of_latency(first.readings, second.readings, kind, MEAN, is_paired, spread) for kind in kinds
    }
    cpu = changes.of_cpu((first.readings, first.metrics), (second.readings, second.metrics), is_paired, spread)
    return {kind: change for kind, change in by_kind.items() if change}, cpu


def _why_absent(name: str, first: Side, second: Side) -> str:
    """Why the two are not set against each other by what a probe tells, and what to do."""
    entries = [[probe(trial.measure, name) for trial in side.trials.values()] for side in (first, second)]
    for probed in (entry for side in entries for entry in side):
        if probed is not None and probed.get("status") != "on":
            remedy = probed.get("remedy")
            return f"the probe was refused: {probed.get('reason') or 'no reason recorded'}" + (
                f" ({remedy})" if remedy else ""
            )
    lacking = [not any(side) for side in entries]
    if any(lacking):
        which = "neither side has" if all(lacking) else f"the {'first' if lacking[0] else 'second'} does not have"
        return f"{which} it; set probes.{name} = true and run again"
    return "no block has both with figures"
