"""Study S4's table in today's terms: how throughput grows with the CPUs, for each number of clients.

Known by what the design varies: the server's CPUs in at least two numbers. A scaling factor is the throughput at n CPUs
over that at the fewest, within blocks. Two lists of as many CPUs are averaged within the block. Where the generator has
CPUs of its own at few CPUs and shares them at many, what it takes is part of the scaling, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from plimsoll.analysis.comparing.treatment_settings import (
    factor_of,
    level_value,
    others,
    setting,
    settings_by_treatment,
)
from plimsoll.analysis.metrics import METRICS, judged_of
from plimsoll.analysis.part import Context, Pair, Part, is_named
from plimsoll.analysis.statistics import usl
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.studies.document import Law, Over, Scaling, ScalingFactor, ScalingRow, Stands
from plimsoll.analysis.trial.readings import cpu_list
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
CPUS, CLIENTS = "environment.target_cpus", "workload.clients"
METRIC = "throughput_per_second"  # where what is judged is no rate
ABOUT = {"cpus": "more CPUs", "clients": "more clients"}  # of the breakdown's differences, by what a line runs over
OVER: Final[tuple[Literal["cpus", "clients"], ...]] = ("cpus", "clients")  # what a line may run over


@dataclass(frozen=True)
class Place:
    """Where a treatment stands: its CPUs and clients, and what the other factors are at."""

    cpus: int
    clients: int | None
    at: tuple[tuple[str, str], ...] = ()


@dataclass
class _Grid:
    """Throughputs by place and block, and the treatments that stand at each place."""

    values: dict[Place, dict[int, float]] = field(default_factory=dict)
    treatments: dict[Place, list[str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


def scaling(plan: Json, experiment: Json, used: Used, delta: float) -> Scaling | None:
    """The `scaling` of verdict.json; None unless the server's CPUs vary in number."""
    by_cpus = factor_of(plan, CPUS)
    if by_cpus is None:
        return None
    metric = metric_of(plan, experiment)
    grid = _grid(plan, experiment, used, by_cpus, metric)
    if len({place.cpus for place in grid.treatments}) < 2:
        return None
    places = sorted(grid.treatments, key=lambda place: (place.at, place.clients or 0, place.cpus))
    return {
        "metric": metric,
        "delta": delta,
        "method": usl.METHOD,
        "rows": [_row(place, grid, used, metric) for place in places if place in grid.values],
        "factors": [row for place in places if (row := _factor(place, grid)) is not None],
        "laws": [_law(over, line, grid) for over in OVER for line in _lines(grid, over)],
        "notes": _notes(grid, used),
    }


def metric_of(plan: Json, experiment: Json) -> str:
    """What grows: the metric that is judged where that is a rate, so that a study's own throughput can be named."""
    judged = METRICS[judged_of(plan, experiment)]
    return judged.key if judged.better == "higher" and judged.scale == "log" else METRIC


def _grid(plan: Json, experiment: Json, used: Used, by_cpus: Json, metric: str) -> _Grid:
    grid, by_clients = _Grid(), factor_of(plan, CLIENTS)
    # Clients that the CPUs' own factor sets grow with the CPUs: they are part of the level and make no line each.
    together = by_clients is not None and by_clients is by_cpus
    for name, settings in settings_by_treatment(plan, experiment).items():
        count = _cpus_of(plan, name, settings, used)
        if count is None:
            continue
        clients = None if together else level_value(plan, name, CLIENTS) or setting(settings, CLIENTS)
        at, labels = others(plan, name, [by_cpus, by_clients])
        place = Place(count, int(clients) if isinstance(clients, int | float) else None, tuple(sorted(at.items())))
        grid.treatments.setdefault(place, []).append(name)
        grid.labels |= labels
    for place, names in grid.treatments.items():
        by_block: dict[int, list[float]] = {}
        for (block, treatment), entry in sorted(used.items(), key=lambda item: item[0]):
            value = entry["metrics"].get(metric)
            if treatment in names and value:
                by_block.setdefault(block, []).append(math.log(value))
        if by_block:
            grid.values[place] = {block: math.exp(float(np.mean(logs))) for block, logs in by_block.items()}
    return grid


def _cpus_of(plan: Json, treatment: str, settings: Json, used: Used) -> int | None:
    """How many CPUs the server may use: as set; where that is "all", as a trial recorded it."""
    wanted = level_value(plan, treatment, CPUS) or setting(settings, CPUS)
    listed = cpu_list(str(wanted)) if isinstance(wanted, int) else cpu_list(wanted)
    if listed is None:
        mine = (entry["placement"] for (_, name), entry in used.items() if name == treatment)
        listed = next((cpus for placed in mine if placed and (cpus := cpu_list(placed["target"])) is not None), None)
    return len(set(listed)) if listed else None


def _stands(place: Place, grid: _Grid) -> Stands:
    at = dict(place.at)
    return {
        "cpus": place.cpus,
        "clients": place.clients,
        "at": at,
        "at_labels": {path: grid.labels.get(path, path) for path in at},
    }


def _row(place: Place, grid: _Grid, used: Used, metric: str) -> ScalingRow:
    values = grid.values[place]
    mean = as_mean(over_blocks(list(values.values()), METRICS[metric].scale == "log"))
    assert mean is not None, "it stands where there are values"
    names = grid.treatments[place]
    return {
        **_stands(place, grid),
        "treatments": names,
        "points": [{"block": block, "value": value} for block, value in values.items()],
        **mean,
        "cpu_ns_per_transaction": _beside("cpu_ns_per_transaction", names, used),
        "generator_cpu_ns_per_transaction": _beside("generator_cpu_ns_per_transaction", names, used),
        "cpu_steal_share": _beside("cpu_steal_share", names, used),
    }


def _beside(key: str, names: list[str], used: Used) -> Mean | None:
    metric = METRICS[key]
    by_block: dict[int, list[float]] = {}
    for (block, treatment), entry in sorted(used.items(), key=lambda item: item[0]):
        value = entry["metrics"].get(key)
        if treatment in names and value is not None:
            by_block.setdefault(block, []).append(value)
    means = [float(np.mean(values)) for values in by_block.values()]
    return as_mean(over_blocks(means, metric.scale == "log", metric.ceiling, floor=metric.floor))


def ratio_within(first: Mapping[int, float], second: Mapping[int, float]) -> Over | None:
    """Second over first in the blocks that have both, with its interval over blocks."""
    logs = [second[block] / first[block] for block in sorted(first.keys() & second.keys())]
    mean = over_blocks(logs, log=True)
    return None if mean is None else {"ratio": mean.value, "low": mean.low, "high": mean.high, "blocks": mean.blocks}


def _factor(place: Place, grid: _Grid) -> ScalingFactor | None:
    """Throughput over that of the fewest CPUs with as many clients; `efficiency` is its share of what CPUs promise."""
    alike = [other for other in grid.values if (other.clients, other.at) == (place.clients, place.at)]
    fewest = min(alike, key=lambda other: other.cpus, default=place)
    if place not in grid.values or fewest.cpus == place.cpus:
        return None
    ratio = ratio_within(grid.values[fewest], grid.values[place])
    if ratio is None:
        return None
    return {**_stands(place, grid), "fewest": fewest.cpus, **ratio,
            "efficiency": ratio["ratio"] * fewest.cpus / place.cpus}  # fmt: skip


def _lines(grid: _Grid, over: str) -> list[list[Place]]:
    """Places that differ in the CPUs alone, or in the clients alone; of at least two levels."""
    by_fixed: dict[Any, list[Place]] = {}
    for place in grid.values:
        if over == "clients" and place.clients is None:
            continue
        by_fixed.setdefault((place.clients if over == "cpus" else place.cpus, place.at), []).append(place)
    lines = [sorted(line, key=lambda place: getattr(place, over)) for line in by_fixed.values()]
    return sorted((line for line in lines if len(line) > 1), key=lambda line: (line[0].at, _fixed(line[0], over)))


def _fixed(place: Place, over: str) -> int:
    return (place.clients or 0) if over == "cpus" else place.cpus


def _law(over: Literal["cpus", "clients"], line: list[Place], grid: _Grid) -> Law:
    """The Universal Scalability Law over one line, with the treatments at its two ends."""
    blocks = sorted({block for place in line for block in grid.values[place]})
    logs = np.array([[math.log(grid.values[p][b]) if b in grid.values[p] else np.nan for p in line] for b in blocks])
    stands = _stands(line[0], grid)
    fitted = usl.fit(np.array([getattr(place, over) for place in line], float), logs)
    return {
        "over": over,
        "cpus": None if over == "cpus" else stands["cpus"],
        "clients": None if over == "clients" else stands["clients"],
        "at": stands["at"],
        "at_labels": stands["at_labels"],
        "fewest": grid.treatments[line[0]][0],
        "most": grid.treatments[line[-1]][0],
        **fitted,
    }


def _notes(grid: _Grid, used: Used) -> list[str]:
    """Where the generator's share of the CPUs is part of the scaling."""
    apart: dict[int, set[bool]] = {}
    for place, names in grid.treatments.items():
        for (_, treatment), entry in used.items():
            placed = entry["placement"]
            target, load = (cpu_list(placed["target"]), cpu_list(placed["load"])) if placed else (None, None)
            if treatment in names and target is not None and load is not None:
                apart.setdefault(place.cpus, set()).add(bool(set(load) - set(target)))
    own = sorted(cpus for cpus, found in apart.items() if found == {True})
    none = sorted(cpus for cpus, found in apart.items() if found == {False})
    if not own or not none:
        return []
    return [
        f"with {_many(own)} for the server the load generator had CPUs of its own, with {_many(none)} it had none: "
        "the CPU time that it takes there makes the server's scaling look worse than it is"
    ]


def _many(counts: list[int]) -> str:
    return f"{', '.join(map(str, counts))} {'CPU' if counts == [1] else 'CPUs'}"


def pairs(scaled: Scaling | None) -> list[Pair]:
    """For the breakdown: over each line the most against the fewest, so that what grows can be named."""
    rows: list[Pair] = []
    for law in scaled["laws"] if scaled else []:
        over = law["over"]
        name, other, count = ("CPUs", "clients", law["clients"]) if over == "cpus" else ("clients", "CPUs", law["cpus"])
        at = {law["at_labels"].get(path, path): level for path, level in law["at"].items()}
        if count is not None:
            at = {other: f"{count}"} | at
        rows.append(
            {
                "first": law["fewest"],
                "second": law["most"],
                "at": at,
                "about": ABOUT[over],
                "verdict": None,
                "first_label": f"{law['levels'][0]:g}",
                "second_label": f"{name} {law['levels'][-1]:g}",
            }
        )
    return rows


def _judge(context: Context) -> Scaling | None:
    if not is_named(context.run, "scaling"):
        return None
    return scaling(context.run.plan, context.run.experiment, context.used, context.delta)


PART = Part("scaling", _judge, is_null_where_absent=True, pairs=pairs)
