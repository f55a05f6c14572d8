"""Functions that changed between two treatments or runs: the CPU a transaction of the server's processes in each.

From the stacks of the probe `profile`, in which a sample stands for one tick of its clock on a CPU. By a function's own
time they add up to the whole; with what it calls they do not. A difference is never surer than the count of samples.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from plimsoll.analysis.breakdown.changes import Amounts, Key, common_blocks, whole_of, word
from plimsoll.analysis.breakdown.document import Change, Whole
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.analysis.probes.profile import tree
from plimsoll.analysis.runs.changes_many import Units, confidence_of, ranked, sure_difference
from plimsoll.analysis.runs.document import FunctionsChange
from plimsoll.analysis.trial.readings import done_count
from plimsoll.record import Trial

Json = dict[str, Any]
Stack = tuple[str, ...]
Profiles = Mapping[int, Mapping[Stack, float]]  # nanoseconds a transaction, by block
NAME = "profile"
SAMPLES_MIN = 5.0
# What nearly everything is called by says nothing of what changed.
_NEARLY_ALL = 0.9


class _Profile(TypedDict):
    """One trial's stacks: nanoseconds a transaction; `unit`: those that a sample stands for."""

    stacks: dict[Stack, float]
    unit: float
    samples: int
    lost: bool


def of_functions(
    first: Mapping[int, Trial], second: Mapping[int, Trial], is_paired: bool, spread: float | None = None
) -> FunctionsChange | None:
    """Of the CPU a transaction.

    A row of `own` has the `stack` in which it differs most; `boxes` are those of a flame graph as wide as the mean of
    both sides, with `difference` and `word`.
    """
    sides = common_blocks([_profiles(trials) for trials in (first, second)], is_paired)
    if not all(sides):
        return None
    before, after = ({block: profile["stacks"] for block, profile in side.items()} for side in sides)
    units = ({block: profile["unit"] for block, profile in side.items()} for side in sides)
    unit = (next(units), next(units))
    whole = whole_of([_sums(before), _sums(after)], is_paired, spread)
    own, called = (
        ranked(_by_function(before, of), _by_function(after, of), whole, is_paired, unit, SAMPLES_MIN)
        for of in (_innermost, _all)
    )
    called["rows"] = [row for row in called["rows"] if not _is_under_all(row, whole)]
    widths, differences = _merged(before, after)
    for row in own["rows"]:
        row["stack"] = _most_of(row, differences)
    return {
        **whole,
        "own": own,
        "with_callees": called,
        "boxes": _boxes((before, after), widths, is_paired, unit),
        "samples": [sum(profile["samples"] for profile in side.values()) for side in sides],
        "lost": any(profile["lost"] for side in sides for profile in side.values()),
    }


def _profiles(trials: Mapping[int, Trial]) -> dict[int, _Profile]:
    """By block."""
    profiles: dict[int, _Profile] = {}
    for block, trial in trials.items():
        entry, done = probe(trial.measure, NAME), done_count(trial.measure)
        stacks = trial.measure.stacks
        if entry is None or entry.get("status") != "on" or not done or not stacks:
            continue
        hz = (entry.get("profile") or {}).get("hz")
        if hz:
            unit = 1e9 / hz / done
            profiles[block] = {
                "stacks": {stack: count * unit for stack, count in stacks.items()},
                "unit": unit,
                "samples": sum(stacks.values()),
                "lost": bool(lost_events(entry)),
            }
    return profiles


def _sums(side: Profiles) -> dict[int, float]:
    return {block: sum(stacks.values()) for block, stacks in side.items()}


def _innermost(stack: Stack) -> set[str]:
    return {stack[-1]}


def _all(stack: Stack) -> set[str]:
    """Each once, however often it calls itself; the first is the process's role."""
    return set(stack[1:])


def _by_function(side: Profiles, of: Callable[[Stack], set[str]]) -> Amounts:
    by_block: dict[int, dict[Key, float]] = {}
    for block, stacks in side.items():
        amounts = by_block.setdefault(block, {})
        for stack, ns in stacks.items():
            for name in of(stack):
                amounts[name, ""] = amounts.get((name, ""), 0.0) + ns
    return by_block


def _is_under_all(row: Change, whole: Whole) -> bool:
    sides = ((row["first"], whole["first"]), (row["second"], whole["second"]))
    return all(mine >= _NEARLY_ALL * every for mine, every in sides)


def _merged(first: Profiles, second: Profiles) -> tuple[dict[Stack, float], dict[Stack, float]]:
    """Of each stack the mean of both sides, and second less first."""
    widths: dict[Stack, float] = {}
    differences: dict[Stack, float] = {}
    for side, sign in ((first, -1), (second, 1)):
        for stacks in side.values():
            for stack, ns in stacks.items():
                widths[stack] = widths.get(stack, 0.0) + ns / len(side) / 2
                differences[stack] = differences.get(stack, 0.0) + sign * ns / len(side)
    return widths, differences


def _most_of(row: Change, differences: Mapping[Stack, float]) -> list[str]:
    """The stack that ends in this function and changed most in its direction, the process's role first."""
    sign = 1 if row["difference"]["value"] >= 0 else -1
    stacks = [stack for stack in differences if stack[-1] == row["name"]]
    most = max(stacks, key=lambda stack: (sign * differences[stack], stack))
    return list(most)


def _boxes(
    sides: tuple[Profiles, Profiles], widths: Mapping[Stack, float], is_paired: bool, unit: tuple[Units, Units]
) -> list[Json]:
    def within(amounts: Mapping[Stack, float], stacks: list[Stack]) -> float:
        return sum(amounts.get(stack, 0.0) for stack in stacks)

    def about(stacks: list[Stack]) -> Json:
        before, after = ({block: within(amounts, stacks) for block, amounts in side.items()} for side in sides)
        return {"difference": sure_difference(before, after, is_paired, unit)}

    boxes = tree(widths, about=about)
    confidence = confidence_of([box["difference"].chance() for box in boxes])
    for box in boxes:
        interval = box["difference"].interval(confidence)
        box |= {"difference": interval["value"], "word": word(interval)}
    return boxes
