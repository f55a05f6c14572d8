"""Study S5's form: throughput with its CPU cost and steal, a knob on and off, at each memory size.

Known by what the design varies: the memory of the server's group, and one factor of two levels of which one is "off".
What the knob does is the ratio of on over off within blocks; steal, which is zero on most machines and has no ratio, is
a difference within blocks.
"""

from __future__ import annotations

import math
from typing import Any

from plimsoll.analysis import workloads
from plimsoll.analysis.comparing.compare import word
from plimsoll.analysis.comparing.treatment_settings import factor_of, factors_of, others, setting, settings_by_treatment
from plimsoll.analysis.metrics import METRICS
from plimsoll.analysis.part import Context, Part, is_named
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.studies.document import JudgedOver, MemoryGrowth, MemoryPair, MemoryRow, MemoryScaling, Over
from plimsoll.analysis.studies.scaling import METRIC, ratio_within
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
MEMORY = "environment.memory"
COST, OWN_COST, STEAL = "cpu_ns_per_transaction", "generator_cpu_ns_per_transaction", "cpu_steal_share"
_OFF = frozenset({"never", "off", "no", "none", "false", "0"})
_USUAL = "environment.transparent_huge_pages"


def memory_scaling(plan: Json, experiment: Json, used: Used, delta: float, spread_log: float) -> MemoryScaling | None:
    """The `memory_scaling` of verdict.json; None unless memory and a knob of on and off vary.

    None of a workload of tests, too, which have no stream of transactions: its levels are compared by its own figures.
    """
    if workloads.of_settings(experiment).is_of_tests:
        return None
    by_memory = factor_of(plan, MEMORY)
    knob = _knob(plan, by_memory)
    if by_memory is None or knob is None:
        return None
    off, on = sorted((str(level["label"]) for level in knob["levels"]), key=lambda label: label.lower() not in _OFF)
    order = [str(level["label"]) for level in by_memory["levels"]]
    settings = settings_by_treatment(plan, experiment)
    rows: list[MemoryRow] = []
    for name, entry in (plan.get("treatments") or {}).items():
        levels = entry.get("levels") or {}
        at, names = others(plan, name, [by_memory, knob])
        row: MemoryRow = {
            "treatment": name,
            "memory": str(levels.get(by_memory["path"])),
            "memory_bytes": _bytes(setting(settings[name], MEMORY)),
            "on": str(levels.get(knob["path"])) == on,
            "at": at,
            "at_labels": names,
            "throughput_per_second": _over(name, METRIC, used),
            "cpu_ns_per_transaction": _over(name, COST, used),
            "generator_cpu_ns_per_transaction": _over(name, OWN_COST, used),
            "cpu_steal_share": _over(name, STEAL, used),
        }
        if row["memory"] in order:
            rows.append(row)
    rows.sort(key=lambda row: (sorted(row["at"].items()), _size(row, order), row["on"]))
    return {
        "metric": METRIC,
        "delta": delta,
        "memory_label": by_memory.get("label") or "memory",
        "knob": {"path": knob["path"], "label": knob.get("label") or knob["path"], "on": on, "off": off},
        "rows": rows,
        "pairs": _pairs(rows, used, delta, spread_log),
        "growth": _growth(rows, used),
    }


def _knob(plan: Json, by_memory: Json | None) -> Json | None:
    """The factor that is on or off; transparent huge pages where there are several."""
    knobs = []
    for factor, paths in factors_of(plan):
        off = [level for level in factor["levels"] if str(level.get("label")).lower() in _OFF]
        if factor is not by_memory and len(factor["levels"]) == 2 and len(off) == 1:
            knobs.append((_USUAL not in paths, factor))
    return min(knobs, key=lambda knob: knob[0])[1] if knobs else None


def _bytes(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _size(row: MemoryRow, order: list[str]) -> tuple[float, int]:
    """Smallest first; what has no limit is largest."""
    return (math.inf if row["memory_bytes"] is None else row["memory_bytes"], order.index(row["memory"]))


def _values(treatment: str, key: str, used: Used) -> dict[int, float]:
    by_block = {block: entry["metrics"].get(key) for (block, name), entry in used.items() if name == treatment}
    return {block: value for block, value in sorted(by_block.items()) if value is not None}


def _over(treatment: str, key: str, used: Used) -> Mean | None:
    metric = METRICS[key]
    values = list(_values(treatment, key, used).values())
    return as_mean(over_blocks(values, metric.scale == "log", metric.ceiling, floor=metric.floor))


def _ratio(first: MemoryRow, second: MemoryRow, key: str, used: Used) -> Over | None:
    def known(row: MemoryRow) -> dict[int, float]:
        return {block: value for block, value in _values(row["treatment"], key, used).items() if value > 0}

    return ratio_within(known(first), known(second))


def _judged(ratio: Over | None, key: str, delta: float, spread_log: float) -> JudgedOver | None:
    """The ratio with its word: of the CPU cost less is better, and no A/A spread is known of it."""
    if ratio is None:
        return None
    half = math.nan if ratio["high"] is None else math.log(ratio["high"] / ratio["ratio"])
    sign = -1.0 if METRICS[key].better == "lower" else 1.0
    spread = spread_log if key == METRIC else 0.0
    return {**ratio, "verdict": word(sign * math.log(ratio["ratio"]), half, delta, spread)}


def _pairs(rows: list[MemoryRow], used: Used, delta: float, spread_log: float) -> list[MemoryPair]:
    """On over off at each memory size."""
    pairs: list[MemoryPair] = []
    for off in (row for row in rows if not row["on"]):
        alike = [row for row in rows if row["on"] and (row["memory"], row["at"]) == (off["memory"], off["at"])]
        for on in alike:
            pairs.append(
                {
                    "memory": off["memory"],
                    "memory_bytes": off["memory_bytes"],
                    "at": off["at"],
                    "at_labels": off["at_labels"],
                    "on": on["treatment"],
                    "off": off["treatment"],
                    "throughput": _judged(_ratio(off, on, METRIC, used), METRIC, delta, spread_log),
                    "cpu": _judged(_ratio(off, on, COST, used), COST, delta, spread_log),
                    "steal": _steal(off, on, used),
                }
            )
    return pairs


def _steal(off: MemoryRow, on: MemoryRow, used: Used) -> Mean | None:
    """On less off, as a share of all CPU time."""
    first, second = _values(off["treatment"], STEAL, used), _values(on["treatment"], STEAL, used)
    more = [second[block] - first[block] for block in sorted(first.keys() & second.keys())]
    return as_mean(over_blocks(more, log=False, floor=None))


def _growth(rows: list[MemoryRow], used: Used) -> list[MemoryGrowth]:
    """Throughput over that of the smallest memory, the knob as it is."""
    grown: list[MemoryGrowth] = []
    for row in rows:
        smallest = next(other for other in rows if (other["on"], other["at"]) == (row["on"], row["at"]))
        ratio = None if smallest is row else _ratio(smallest, row, METRIC, used)
        if ratio is not None:
            grown.append(
                {
                    "on": row["on"],
                    "memory": row["memory"],
                    "memory_bytes": row["memory_bytes"],
                    "at": row["at"],
                    "at_labels": row["at_labels"],
                    "smallest": smallest["memory"],
                    **ratio,
                }
            )
    return grown


def _judge(context: Context) -> MemoryScaling | None:
    if not is_named(context.run, "scaling"):  # one section has what CPUs and what memory scale
        return None
    return memory_scaling(context.run.plan, context.run.experiment, context.used, context.delta, context.spread_log)


PART = Part("memory_scaling", _judge, is_null_where_absent=True)
