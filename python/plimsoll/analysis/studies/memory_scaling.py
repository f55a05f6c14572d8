"""Study S5's form: throughput with its CPU cost and steal, a knob on and off, at each memory size.

Known by what the design varies: the memory of the server's group, and one factor of two levels of which one is "off".
What the knob does is the ratio of on over off within blocks; steal, which is zero on most machines and has no ratio, is
a difference within blocks.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from plimsoll.analysis import workloads
from plimsoll.analysis.comparing.compare import word
from plimsoll.analysis.comparing.treatment_settings import factor_of, factors_of, others, setting, settings_by_treatment
from plimsoll.analysis.metrics import METRICS
from plimsoll.analysis.part import Context, Part, is_named
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.studies.scaling import BESIDE, METRIC, ratio_within
from plimsoll.record.verdict import Used

Json = dict[str, Any]
MEMORY = "environment.memory"
COST, STEAL = "cpu_ns_per_transaction", "cpu_steal_share"
_OFF = frozenset({"never", "off", "no", "none", "false", "0"})
_USUAL = "environment.transparent_huge_pages"


def memory_scaling(plan: Json, experiment: Json, used: Used, delta: float, spread_log: float) -> Json | None:
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
    rows = []
    for name, entry in (plan.get("treatments") or {}).items():
        levels = entry.get("levels") or {}
        at, names = others(plan, name, [by_memory, knob])
        row = {
            "treatment": name,
            "memory": str(levels.get(by_memory["path"])),
            "memory_bytes": _bytes(setting(settings[name], MEMORY)),
            "on": str(levels.get(knob["path"])) == on,
            "at": at,
            "at_labels": names,
        }
        if row["memory"] in order:
            rows.append(row | {key: _over(name, key, used) for key in (METRIC, *BESIDE)})
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


def _size(row: Json, order: list[str]) -> tuple[float, int]:
    """Smallest first; what has no limit is largest."""
    return (math.inf if row["memory_bytes"] is None else row["memory_bytes"], order.index(row["memory"]))


def _values(treatment: str, key: str, used: Used) -> dict[int, float]:
    by_block = {block: entry["metrics"].get(key) for (block, name), entry in used.items() if name == treatment}
    return {block: value for block, value in sorted(by_block.items()) if value is not None}


def _over(treatment: str, key: str, used: Used) -> Json | None:
    metric = METRICS[key]
    values = list(_values(treatment, key, used).values())
    mean = over_blocks(values, metric.scale == "log", metric.ceiling, floor=metric.floor)
    return None if mean is None else asdict(mean)


def _ratio(first: Json, second: Json, key: str, used: Used) -> Json | None:
    def known(row: Json) -> dict[int, float]:
        return {block: value for block, value in _values(row["treatment"], key, used).items() if value > 0}

    return ratio_within(known(first), known(second))


def _judged(ratio: Json | None, key: str, delta: float, spread_log: float) -> Json | None:
    """The ratio with its word: of the CPU cost less is better, and no A/A spread is known of it."""
    if ratio is None:
        return None
    half = math.nan if ratio["low"] is None else math.log(ratio["high"] / ratio["ratio"])
    sign = -1.0 if METRICS[key].better == "lower" else 1.0
    spread = spread_log if key == METRIC else 0.0
    return ratio | {"verdict": word(sign * math.log(ratio["ratio"]), half, delta, spread)}


def _pairs(rows: list[Json], used: Used, delta: float, spread_log: float) -> list[Json]:
    """On over off at each memory size."""
    pairs = []
    for off in (row for row in rows if not row["on"]):
        alike = [row for row in rows if row["on"] and (row["memory"], row["at"]) == (off["memory"], off["at"])]
        for on in alike:
            ratios = {
                name: _judged(_ratio(off, on, key, used), key, delta, spread_log)
                for name, key in (("throughput", METRIC), ("cpu", COST))
            }
            stands = {key: off[key] for key in ("memory", "memory_bytes", "at", "at_labels")}
            ends = {"on": on["treatment"], "off": off["treatment"]}
            pairs.append({**stands, **ends, **ratios, "steal": _steal(off, on, used)})
    return pairs


def _steal(off: Json, on: Json, used: Used) -> Json | None:
    """On less off, as a share of all CPU time."""
    first, second = _values(off["treatment"], STEAL, used), _values(on["treatment"], STEAL, used)
    mean = over_blocks([second[block] - first[block] for block in sorted(first.keys() & second.keys())], False,
                        floor=None)  # fmt: skip
    return None if mean is None else asdict(mean)


def _growth(rows: list[Json], used: Used) -> list[Json]:
    """Throughput over that of the smallest memory, the knob as it is."""
    grown = []
    for row in rows:
        smallest = next(other for other in rows if (other["on"], other["at"]) == (row["on"], row["at"]))
        ratio = None if smallest is row else _ratio(smallest, row, METRIC, used)
        if ratio is not None:
            stands = {key: row[key] for key in ("on", "memory", "memory_bytes", "at", "at_labels")}
            grown.append({**stands, "smallest": smallest["memory"], **ratio})
    return grown


def _judge(context: Context) -> Json | None:
    if not is_named(context.run, "scaling"):  # one section has what CPUs and what memory scale
        return None
    return memory_scaling(context.run.plan, context.run.experiment, context.used, context.delta, context.spread_log)


PART = Part("memory_scaling", _judge, is_null_where_absent=True)
