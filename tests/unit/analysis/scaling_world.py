"""Plans and trials by hand for analyses of scaling. Loaded by runpy, since tests are imported one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
CPUS, CLIENTS, MEMORY = "environment.target_cpus", "workload.clients", "environment.memory"
HUGE = "environment.transparent_huge_pages"
LABELS = {CPUS: "CPUs", CLIENTS: "clients", MEMORY: "memory", HUGE: "transparent_huge_pages"}
EXPERIMENT = {"workload": {"name": "order_entry", "clients": 8}, "environment": {"memory": "unlimited"}}


def cpu_text(count: int) -> str:
    """A list of so many CPUs."""
    return "0" if count == 1 else f"0-{count - 1}"


def plan(levels: dict[str, list[Any]]) -> Json:
    """A full factorial of the levels."""
    treatments = {
        f"t{place}": {"label": "", "levels": {path: str(value) for path, value in zip(levels, row, strict=True)}}
        for place, row in enumerate(itertools.product(*levels.values()), start=1)
    }
    factors = [
        {"path": path, "paths": [path], "label": LABELS.get(path, path), "unit": None}
        | {"levels": [{"label": str(value), "value": value} for value in values]}
        for path, values in levels.items()
    ]
    trials = [
        {"treatment": name, "resolved": resolved(dict(zip(levels, row, strict=True)))}
        for name, row in zip(treatments, itertools.product(*levels.values()), strict=True)
    ]
    return {"treatments": treatments, "factors": factors, "trials": trials}


def resolved(values: Json) -> Json:
    """Settings with what a treatment sets."""
    found: Json = {table: dict(entries) for table, entries in EXPERIMENT.items()}
    for path, value in values.items():
        table, _, key = path.partition(".")
        found.setdefault(table, {})[key] = value
    return found


def used(found: Json, blocks: int, metrics: Callable[[Json, int], Json], load: str | None = None) -> Json:
    """Trials of every treatment in every block: {metric: value} from its resolved settings and its block."""
    result = {}
    for trial in found["trials"]:
        for block in range(1, blocks + 1):
            target = trial["resolved"]["environment"].get("target_cpus")
            result[block, trial["treatment"]] = {
                "number": len(result) + 1,
                "block": block,
                "metrics": {**dict.fromkeys(BESIDE), **metrics(trial["resolved"], block)},
                "placement": {"target": target, "load": load, "agent": None},
            }
    return result


BESIDE = ("cpu_ns_per_transaction", "generator_cpu_ns_per_transaction", "cpu_steal_share")
