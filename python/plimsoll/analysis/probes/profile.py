"""Where the server is when it is on a CPU: samples of each function, and the tree of calls, by treatment.

Rests on the profile's stacks in each trial. A sample stands for a moment and not for a duration: shares are given with
the binomial interval of their count, as if samples were independent, which those of one long call are not.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes.document import (
    Box,
    Function,
    Locks,
    LockWait,
    NamelessFile,
    Profile,
    Share,
    Ticks,
    TreatmentProfile,
)
from plimsoll.analysis.probes.page_cache import lost_events, probe
from plimsoll.analysis.probes.spinlocks import spinlocks
from plimsoll.analysis.statistics.distributions import share_interval
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record import Segment, Trial
from plimsoll.record.summary import Probe
from plimsoll.record.verdict import Used

Json = dict[str, Any]
Stacks = Mapping[tuple[str, ...], int]
Amounts = Mapping[tuple[str, ...], float]
About = Callable[[list[tuple[str, ...]]], Json]
FUNCTIONS_MAX = 20
# A box narrower than this share is not drawn; it stays in the width of the one below it.
DRAWN_MIN = 0.001
_KERNEL = "_[k]"


def is_kernel(frame: str) -> bool:
    """Whether a frame is one of the kernel's."""
    return frame.endswith(_KERNEL)


def is_nameless(frame: str) -> bool:
    """Whether a frame is a file's only, because its function has no name."""
    return frame.removesuffix(_KERNEL).startswith("[")


def together(all_stacks: Iterable[Stacks]) -> Counter[tuple[str, ...]]:
    """Several segments' stacks added up."""
    total: Counter[tuple[str, ...]] = Counter()
    for stacks in all_stacks:
        total.update(stacks)
    return total


@overload
def tree(stacks: Amounts, least: float = DRAWN_MIN) -> list[Box]: ...


@overload
def tree(stacks: Amounts, least: float = DRAWN_MIN, *, about: About) -> list[Json]: ...


def tree(stacks: Amounts, least: float = DRAWN_MIN, about: About | None = None) -> list[Any]:
    """Boxes of a flame graph: {`name`, `depth`, `from`, `to`} in the stacks' unit, the whole first; siblings by name.

    Each box also has what `about` says of the stacks in it.
    """
    total = sum(stacks.values())
    boxes: list[Box | Json] = [_box("all", 0, (0, total), sorted(stacks), about)]
    pending: list[tuple[int, float, list[tuple[tuple[str, ...], float]]]] = [(0, 0, sorted(stacks.items()))]
    while pending:
        depth, start, below = pending.pop()
        groups: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for stack, count in below:
            if len(stack) > depth:
                groups.setdefault(stack[depth], []).append((stack, count))
        for name in sorted(groups):
            width = sum(count for _, count in groups[name])
            if width >= least * total:
                beneath = [stack for stack, _ in groups[name]]
                boxes.append(_box(name, depth + 1, (start, start + width), beneath, about))
                pending.append((depth + 1, start, groups[name]))
            start += width
    return boxes


def _box(
    name: str, depth: int, span: tuple[float, float], stacks: list[tuple[str, ...]], about: About | None
) -> Box | Json:
    box: Box = {"name": name, "depth": depth, "from": span[0], "to": span[1]}
    return box if about is None else {**box, **about(stacks)}


def off_cpu(breakdown: Json | None) -> dict[str, list[Box]]:
    """{treatment: boxes} of blocked nanoseconds, type upon part upon wait, from the `breakdown` of a verdict."""
    trees: dict[str, list[Box]] = {}
    for treatment, entry in ((breakdown or {}).get("treatments") or {}).items():
        kinds = {kind: of_kind for kind, of_kind in entry["types"].items() if kind != ALL} or entry["types"]
        stacks = Counter[tuple[str, ...]]()
        for kind, of_kind in kinds.items():
            for wait in of_kind["waits"]:
                # The rows beyond those that are shown have no part of their own.
                stacks[kind, wait["bucket"] or wait["name"], wait["name"]] += wait["ns"]
        if stacks:
            trees[treatment] = tree(stacks)
    return trees


def functions(stacks: Stacks) -> list[Function]:
    """Functions by samples in themselves (`self`), those with most first, and in what they call (`total`)."""
    alone: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, count in stacks.items():
        alone[stack[-1]] += count
        for name in set(stack[1:]):
            whole[name] += count
    samples = sum(stacks.values())
    ranked = sorted(alone.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"name": name, "self": count, "total": whole.get(name, count), "share": share(count, samples)}
        for name, count in ranked[:FUNCTIONS_MAX]
    ]


def share(count: int, samples: int) -> Share | None:
    """A share with its exact (Clopper and Pearson) binomial interval; None of no samples, at most 1."""
    if samples <= 0:
        return None
    count = min(max(count, 0), samples)  # a record whose counts do not add up costs its shares, not the verdict
    low, high = share_interval(count, samples, CONFIDENCE)
    return {"value": count / samples, "low": low, "high": high}


def profile(trials: list[Trial], used: Used, treatments: Iterable[str]) -> Profile | None:
    """The `profile` of verdict.json; None for a run whose records do not mention it."""
    entries = {
        trial.number: (trial, entry)
        for trial in trials
        if trial.status == "finished" and (entry := probe(trial.measure, "profile")) is not None
    }
    if not entries:
        return None
    refused = [(number, entry) for number, (_, entry) in entries.items() if entry.get("status") != "on"]
    by_treatment: dict[str, list[tuple[Trial, Probe]]] = {name: [] for name in treatments}
    for (_, treatment), standing in sorted(used.items()):
        on = entries.get(standing["number"])
        if on is not None and on[1].get("status") == "on" and on[0].measure.stacks:
            by_treatment.setdefault(treatment, []).append(on)
    present = {name: _treatment(trials_on) for name, trials_on in by_treatment.items() if trials_on}
    why = refused[0][1].get("reason") if refused else "no trial that entered the verdict has samples of the server"
    return {
        "refused": [
            {"trial": number, "reason": entry.get("reason"), "remedy": entry.get("remedy")} for number, entry in refused
        ],
        "why_absent": None if present else str(why),
        "treatments": present,
    }


def _treatment(trials_on: list[tuple[Trial, Probe]]) -> TreatmentProfile:
    stacks = together(_stacks(trial.measure) for trial, _ in trials_on)
    facts = [entry.get("profile") or {} for _, entry in trials_on]
    counts = Counter[str]()
    for about in facts:
        counts.update({key: value for key, value in (about.get("samples") or {}).items() if type(value) is int})
    # Samples whose stack found no room are in these counts and not among the stacks.
    taken = counts["taken"] or sum(stacks.values())
    roles = Counter[str]()
    for stack, count in stacks.items():
        roles[stack[0]] += count
    lost = Counter[str]()
    for _, entry in trials_on:
        lost.update(lost_events(entry))
    return {
        "trials": [trial.number for trial, _ in trials_on],
        "hz": sorted({about["hz"] for about in facts if "hz" in about}),
        "samples": sum(stacks.values()),
        "in_kernel": share(counts["in_kernel"], taken),
        "named": share(counts["named"], taken),
        "complete": share(counts["complete"], taken),
        "roles": dict(roles.most_common()),
        "functions": functions(stacks),
        "boxes": tree(stacks),
        "nameless": _nameless(facts),
        "locks": _locks(facts),
        "spinlocks": spinlocks(stacks),
        "lost": dict(lost),
        "ticks": _ticks(facts),
        "cost_ns": sum(int((entry.get("cost") or {}).get("run_ns") or 0) for _, entry in trials_on),
        "agent_cpu_ns": sum(int(about.get("agent_cpu_ns") or 0) for about in facts),
        "segment_ns": sum(int((entry.get("cost") or {}).get("segment_ns") or 0) for _, entry in trials_on),
    }


def _stacks(segment: Segment) -> Stacks:
    return segment.stacks or {}


def _ticks(facts: list[Json]) -> Ticks | None:
    told = [about["ticks"] for about in facts if about.get("ticks")]
    if len(told) < len(facts) or not told:
        return None
    return {"due": sum(one["due"] for one in told), "came": sum(one["came"] for one in told)}


def ticks_missing(ticks: Ticks | None) -> float | None:
    """The share of the ticks due that did not come; None where that is not known."""
    return max(0.0, 1 - ticks["came"] / ticks["due"]) if ticks and ticks["due"] else None


def _locks(facts: list[Json]) -> Locks | None:
    """Waits for the kernel's locks added up: by kind, and by who wanted them; None where they were not asked for."""
    contentions = [about["contention"] for about in facts if about.get("contention")]
    if not contentions:
        return None

    def added(key: str) -> list[LockWait]:
        return _added(row for contention in contentions for row in contention.get(key) or [])[: 2 * FUNCTIONS_MAX]

    return {"kinds": added("kinds"), "sites": added("sites")}


def _added(rows: Iterable[Json]) -> list[LockWait]:
    sums: dict[tuple[str, str], LockWait] = {}
    for row in rows:
        kind, stack = str(row["kind"]), str(row.get("stack") or "")
        caller = str(row.get("caller") or "")
        none: LockWait = {"kind": kind, "caller": caller, "stack": stack, "count": 0, "total_ns": 0, "max_ns": 0}
        total = sums.setdefault((kind, stack), none)
        total["count"] += int(row["count"])
        total["total_ns"] += int(row["total_ns"])
        total["max_ns"] = max(total["max_ns"], int(row["max_ns"]))
    return sorted(sums.values(), key=lambda row: (-row["total_ns"], row["kind"], row["stack"]))


def _nameless(facts: list[Json]) -> list[NamelessFile]:
    """Files in which samples have no function's name: how many, and what would name them."""
    images: dict[str, NamelessFile] = {}
    for image in (image for about in facts for image in about.get("images") or []):
        if image.get("unnamed"):
            none: NamelessFile = {
                "path": image["path"],
                "unnamed": 0,
                "samples": 0,
                "symbols": image.get("symbols") or "none",
                "remedy": image.get("remedy"),
            }
            total = images.setdefault(str(image["path"]), none)
            total["unnamed"] += int(image["unnamed"])
            total["samples"] += int(image["samples"])
    return sorted(images.values(), key=lambda row: (-row["unnamed"], row["path"]))


def share_of(samples: int, entry: TreatmentProfile) -> float:
    """The share of a treatment's samples."""
    return samples / entry["samples"]


def wait_mean_ns(row: LockWait) -> float | None:
    """How long a wait for a lock of this kind or at this place took; None of none."""
    return row["total_ns"] / row["count"] if row["count"] else None


def cost_shares(entry: TreatmentProfile) -> tuple[float, float] | None:
    """What profiling took of one CPU, and what of it the agent did; None where the segment's length is not known."""
    if not entry["segment_ns"]:
        return None
    return (entry["cost_ns"] + entry["agent_cpu_ns"]) / entry["segment_ns"], entry["agent_cpu_ns"] / entry["segment_ns"]


def stacks_of(trials: Iterable[Trial]) -> list[tuple[tuple[str, ...], int]]:
    """The stacks of some trials with their samples, in the order of their frames."""
    return sorted(together(_stacks(trial.measure) for trial in trials).items())


def _judge(context: Context) -> Profile | None:
    return profile(context.run.trials, context.used, context.treatments)


def _judge_off_cpu(context: Context) -> dict[str, list[Box]] | None:
    return None if context.parts["profile"] is None else off_cpu(context.parts["breakdown"])


PART = Part("profile", _judge)
OFF_CPU = Part("off_cpu", _judge_off_cpu, needs=("profile", "breakdown"))
