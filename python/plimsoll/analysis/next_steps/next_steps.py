"""What to do next: at most one step of a kind, in the order in which somebody would take them.

The fact that constrains it: it says nothing that the verdict does not carry. A setting is named only where a level was
told to be worse, and a longer run with the ratio that it would tell.
"""

import math

from plimsoll.analysis.metrics import metric_of
from plimsoll.analysis.next_steps.blocks import block_seconds, blocks_to_tell, own_sd
from plimsoll.analysis.next_steps.command import again
from plimsoll.analysis.next_steps.step import Step
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.soak.kind import KIND as SOAK
from plimsoll.analysis.statistics.intervals import BLOCKS_FULL, BLOCKS_MIN
from plimsoll.record import Run
from plimsoll.record.verdict import Comparison, Level, PairOfLevels

_BLOCKS = {"--blocks": 1}
_QUICK = {"--quick": 0}
# What the load asks of the server is no setting that anybody could choose for it.
_NOT_CHOSEN = ("workload.", "schedule.", "measure.", "warmup.", "probes.", "design.")
_SWEPT_MIN = 3  # levels from which on a sweep has ends


def next_steps(context: Context) -> list[Step]:
    """The steps of a run; none where nothing follows from it."""
    run, comparisons = context.run, context.comparisons
    steps: list[Step] = []
    if run.data.get("status") not in (None, "finished"):
        steps.append({"kind": "resume"})
    if _are_trials_out(context) and any(one["grade"] == "none" for one in comparisons):
        steps.append({"kind": "mend"})
    elif comparisons and all(_is_unanswered(comparison) for comparison in comparisons):
        steps.append({"kind": "ease"})
    steps += [step for comparison in comparisons if (step := _choose(comparison))][:1]
    if run.data.get("quick"):
        steps.append({"kind": "full", "command": again(run, _QUICK | _BLOCKS)})
    else:
        steps += [step for comparison in comparisons if (step := _extend(comparison))][:1]
        steps += [step for comparison in comparisons if (step := _longer(context, comparison))][:1]
    is_alone = len(context.treatments) == 1 and not any(trial.duplicate for trial in run.trials)
    if not comparisons and is_alone and run.data.get("kind") != SOAK:  # a soak's rounds are what is compared
        steps.append({"kind": "vary", "command": again(run, {})})
    return steps or [{"kind": "look"}]


def _are_trials_out(context: Context) -> bool:
    """Whether a trial that has ended stands for nothing."""
    standing = {entry["number"] for entry in context.used.values()}
    return any(trial.status and not trial.duplicate and trial.number not in standing for trial in context.run.trials)


def _is_unanswered(comparison: Comparison) -> bool:
    """Whether no level has a value with a bound, of what may lie among transactions without a timely answer."""
    bounded = [level for level in comparison["levels"] if level["estimate"] is not None and not level["unbounded"]]
    return metric_of(comparison["metric"]).may_be_unbounded and not bounded


def _at(comparison: Comparison) -> dict[str, str]:
    return {comparison["at_labels"].get(path, path): level for path, level in comparison["at"].items()}


def _about(comparison: Comparison, levels: list[str]) -> Step:
    at = _at(comparison)
    return {"kind": "choose", "factor": comparison["factor"], "label": comparison["label"], "levels": levels, "at": at}


def _choose(comparison: Comparison) -> Step | None:
    """The levels that are left where at least one is worse, bounded in every block; of what is a setting."""
    is_told = any(level["verdict"] == "worse" for level in comparison["levels"])
    left = [level["level"] for level in comparison["levels"] if level["in_best_set"] and not level["unbounded"]]
    if not is_told or comparison["factor"].startswith(_NOT_CHOSEN) or not left:
        return None
    return _about(comparison, left)


def _extend(comparison: Comparison) -> Step | None:
    """Where the best by itself is the largest or smallest of a sweep of numbers: nobody knows what lies beyond."""
    choice, values = _choose(comparison), [level["value"] for level in comparison["levels"]]
    if choice is None or len(comparison["best_set"]) != 1 or len(values) < _SWEPT_MIN:
        return None
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return None
    value = next(level["value"] for level in comparison["levels"] if level["level"] == choice["levels"][0])
    if value not in (min(values), max(values)):
        return None
    return {**choice, "kind": "extend", "end": "largest" if value == max(values) else "smallest"}


def _longer(context: Context, comparison: Comparison) -> Step | None:
    """More blocks, where levels cannot be told apart: how many, by how the trials scatter."""
    run = context.run
    if comparison["grade"] == "none":
        planned = int(run.plan.get("blocks") or comparison["blocks"])
        return _blocks_step(context, comparison, [], None, BLOCKS_FULL) if planned < BLOCKS_MIN else None
    noise, doubtful = comparison.get("noise"), _doubtful(comparison)
    if doubtful is None or not noise:
        return None
    pair = doubtful["times_slower"]
    assert pair is not None, "it was chosen by its ratio"
    ratio = max(float(pair["ratio"] or 1), 1 + comparison["delta"])
    # Of treatments in groups what is asked for, and what has happened so often, are replicates: all groups once.
    compared = _of_pair(comparison, doubtful)
    done = compared["blocks"] if _groups(run) > 1 else comparison["blocks"]
    freedom = noise["freedom"] / done
    # through a reference a pair has the errors of two
    scatter = noise["sd_log"] * (math.sqrt(2) if compared.get("through") else 1)
    blocks = blocks_to_tell(ratio, len(comparison["levels"]), scatter, freedom, own_sd(compared, noise))
    if blocks is None:
        return None
    chosen = [doubtful["level"], str(doubtful["against"])]
    return _blocks_step(context, comparison, chosen, ratio, max(blocks, done + 1))


def _doubtful(comparison: Comparison) -> Level | None:
    """Of the levels that cannot be told from the best the one that seems slowest: the first to be told."""

    def ratio(level: Level) -> float:
        slower = level["times_slower"]
        return float(slower["ratio"] or 0) if slower else 0.0

    found = [level for level in comparison["levels"] if level["verdict"] == "cannot tell" and not level["unbounded"]]
    return max((level for level in found if ratio(level)), key=ratio, default=None)


def _groups(run: Run) -> int:
    """How many blocks a replicate has."""
    groups = run.plan.get("groups")
    return len(groups["members"]) if groups else 1


def _of_pair(comparison: Comparison, level: Level) -> PairOfLevels:
    """The ratio of a level and the one it is set against, with the interval of that pair alone."""
    both = {level["level"], level["against"]}
    return next(pair for pair in comparison["pairs"] if {pair["first"], pair["second"]} == both)


def _blocks_step(context: Context, comparison: Comparison, levels: list[str], ratio: float | None, blocks: int) -> Step:
    seconds = block_seconds(context.run)
    step: Step = {**_about(comparison, levels), "kind": "longer", "blocks": blocks}
    step["command"] = again(context.run, _BLOCKS, "--blocks", str(blocks))
    step["seconds"] = None if seconds is None else seconds * blocks * _groups(context.run)
    return step if ratio is None else {**step, "ratio": ratio}


PART = Part(key="next_steps", judge=next_steps)
