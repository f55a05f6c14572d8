"""Scaling on the page: study S4's table and S5's form, the law's parameters, and what of a transaction's time grows."""

from typing import Any

from plimsoll.analysis.breakdown.document import Band, Breakdown
from plimsoll.analysis.breakdown.parts import in_order, largest_share
from plimsoll.analysis.breakdown.trial import MEAN
from plimsoll.analysis.metrics import metric_of
from plimsoll.analysis.statistics.law import Scale
from plimsoll.analysis.studies.document import (
    At,
    Beside,
    Law,
    MemoryGrowth,
    MemoryPair,
    MemoryRow,
    MemoryScaling,
    OfMemory,
    Over,
    Scaling,
    ScalingRow,
    Stands,
)
from plimsoll.analysis.studies.scaling import ABOUT
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.report.original_studies import S4_FACTORS
from plimsoll.words.probes.breakdown import is_told
from plimsoll.words.studies import scaling as scaling_words

Json = dict[str, Any]
_US = 1e-3
_PART_WORTH = 0.005  # of the latency, at some level: smaller parts have no row here


def scaling_part(verdict: Json) -> Json | None:
    """What the template needs; None for a run that varies neither CPUs, nor memory with a knob."""
    scaling: Scaling | None = verdict.get("scaling")
    by_memory: MemoryScaling | None = verdict.get("memory_scaling")
    if not scaling and not by_memory:
        return None
    lines = scaling_words.scaling_lines(verdict)
    return {
        "lines": lines if len(lines) > scaling_words.SHOWN_MAX else [],  # the others stand on top of the page
        "notes": scaling["notes"] if scaling else [],
        "factors": _factor_tables(scaling) if scaling else [],
        "rows": _rows(scaling) if scaling else [],
        "rows_label": "clients",
        "unit": metric_of(scaling["metric"] if scaling else None, verdict).shown.unit,
        "laws": [_law(law, metric_of(scaling["metric"]).shown.factor) for law in scaling["laws"]] if scaling else [],
        "method": scaling["method"] if scaling else "",
        "memory": _memory_tables(by_memory) if by_memory else [],
        "growth": scaling_words.growth_lines(verdict),
        "parts": _parts(verdict) if scaling else [],
        "parts_absent": _parts_absent(verdict) if scaling else "",
    }


def at_words(row: At) -> str:
    """Levels of the other factors: "isolation serializable"."""
    return ", ".join(f"{row['at_labels'].get(path, path)} {level}" for path, level in row["at"].items())


def _clients(row: Stands) -> str:
    return "" if row["clients"] is None else scaling_words.many(row["clients"], "client")


def _label(row: Stands) -> str:
    return ", ".join(part for part in (_clients(row), at_words(row)) if part) or "as given"


def _form(value: float) -> str:
    return ",.0f" if abs(value) >= 100 else ".1f" if abs(value) >= 10 else ".2f"


def _rate(row: Mean | Scale | None, scale: float = 1.0) -> str:
    return NONE if not row else interval(row, _form(row["value"] * scale), scale)


def _factor(row: Over | None) -> str:
    if row is None:
        return NONE
    return f"{row['ratio']:.2f}" if row["low"] is None else f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _factor_tables(scaling: Scaling) -> list[Json]:
    """The study's table: a row a number of clients, a column a number of CPUs, the study's own rows below."""
    tables = []
    for at in dict.fromkeys(at_words(row) for row in scaling["factors"]):
        for fewest in sorted({row["fewest"] for row in scaling["factors"] if at_words(row) == at}):
            alike = [row for row in scaling["factors"] if at_words(row) == at and row["fewest"] == fewest]
            theirs = {count for row in S4_FACTORS.values() for count in row}
            columns = sorted({row["cpus"] for row in alike} | theirs)
            rows = []
            for count in dict.fromkeys(row["clients"] for row in alike):
                by_cpus = {row["cpus"]: row for row in alike if row["clients"] == count}
                name = "this run" if count is None else f"this run, {scaling_words.many(count, 'client')}"
                cells = [_factor(by_cpus.get(cpus)) for cpus in columns]
                rows.append({"name": name, "ours": True, "cells": cells})
            for name, factors in S4_FACTORS.items():
                cells = [number(factors.get(cpus), ".1f") for cpus in columns]
                rows.append({"name": f"the study, {name}", "ours": False, "cells": cells})
            tables.append({"at": at, "fewest": scaling_words.many(fewest, "CPU"), "columns": columns, "rows": rows})
    return tables


def _rows(scaling: Scaling) -> list[Json]:
    factors = {(row["cpus"], row["clients"], at_words(row)): row for row in scaling["factors"]}
    rows, scale = [], metric_of(scaling["metric"]).shown.factor
    for row in scaling["rows"]:
        factor = factors.get((row["cpus"], row["clients"], at_words(row)))
        own = row["generator_cpu_ns_per_transaction"]
        rows.append(
            {
                "label": _label(row),
                "cpus": row["cpus"],
                "throughput": _rate(row, scale),
                "ratio": _factor(factor),
                "efficiency": NONE if factor is None else f"{factor['efficiency']:.0%}",
                **_cost(row),
                "generator": number(own["value"] if own else None, ",.1f", _US),
                "blocks": row["blocks"],
            }
        )
    return rows


def _cost(row: Beside) -> Json:
    return {
        "cost": interval(row["cpu_ns_per_transaction"], ",.1f", _US),
        "steal": interval(row["cpu_steal_share"], ".1f", 100),
    }


def _law(law: Law, scale: float) -> Json:
    at = scaling_words.where(law).removesuffix(": ")
    words = {"over": "CPUs" if law["over"] == "cpus" else "clients", "at": at or "as given", "why": law["why"]}
    sigma, kappa = law["sigma"], law["kappa"]
    if law["status"] != "fitted" or sigma is None or kappa is None:
        return words
    lack = law["lack_of_fit_p"]
    holds = [" includes zero" if parameter["holds_zero"] else "" for parameter in (sigma, kappa)]
    return words | {
        "scale": _rate(law["lambda"], scale),
        "sigma": scaling_words.share(sigma) + holds[0],
        "kappa": scaling_words.small(kappa) + holds[1],
        "peak": scaling_words.peak_words(law),
        "lack": number(lack, ".2f"),
    }


def _memory_tables(memory_scaling: MemoryScaling) -> list[Json]:
    """A row a memory size and knob; what on does against off stands in the row of on."""
    tables = []
    for at in dict.fromkeys(at_words(row) for row in memory_scaling["rows"]):
        rows = []
        for row in (entry for entry in memory_scaling["rows"] if at_words(entry) == at):
            growth = next(
                (other for other in memory_scaling["growth"] if _same(other, row) and other["on"] == row["on"]), None
            )
            pair = next((other for other in memory_scaling["pairs"] if _same(other, row)), None) if row["on"] else None
            rows.append(_memory_row(memory_scaling, row, growth, pair))
        names = {"memory": memory_scaling["memory_label"], "knob": memory_scaling["knob"]["label"]}
        ends = {"on": memory_scaling["knob"]["on"], "off": memory_scaling["knob"]["off"]}
        tables.append({"at": at, **names, **ends, "rows": rows})
    return tables


def _same(other: OfMemory, row: OfMemory) -> bool:
    return other["memory"] == row["memory"] and other["at"] == row["at"]


def _memory_row(
    memory_scaling: MemoryScaling, row: MemoryRow, growth: MemoryGrowth | None, pair: MemoryPair | None
) -> Json:
    throughput, cpu, steal = (pair["throughput"], pair["cpu"], pair["steal"]) if pair else (None, None, None)
    return {
        "memory": row["memory"],
        "knob": memory_scaling["knob"]["on" if row["on"] else "off"],
        "throughput": _rate(row["throughput_per_second"]),
        "growth": _factor(growth),
        **_cost(row),
        "throughput_ratio": _factor(throughput),
        "throughput_word": throughput["verdict"] if throughput else None,
        "cost_ratio": _factor(cpu),
        "cost_word": cpu["verdict"] if cpu else None,
        "steal_more": interval(steal, "+.2f", 100),
    }


def _parts_absent(verdict: Json) -> str:
    breakdown: Breakdown | None = verdict.get("breakdown")
    if breakdown is None:
        return "no record of this run has a breakdown"
    return str(breakdown["why_absent"] or "")


def _parts(verdict: Json) -> list[Json]:
    """A table a line of the law: the parts of a transaction's time at each level, and which grow."""
    breakdown: Breakdown | None = verdict.get("breakdown")
    if not breakdown or breakdown["why_absent"]:
        return []
    tables = []
    scaling: Scaling = verdict["scaling"]
    for law in scaling["laws"]:
        bands = _bands(verdict, law)
        ends = (law["fewest"], law["most"], ABOUT[law["over"]], MEAN)
        difference = next(
            (
                row
                for row in breakdown["differences"]
                if (row["first"], row["second"], row["about"], row["band"]) == ends
                and row["kind"] == scaling_words.first_kind(verdict, row["second"])
            ),
            None,
        )
        if len(bands) > 1:
            tables.append(_parts_table(law, bands, difference["parts"] if difference else {}))
    return tables


def _bands(verdict: Json, law: Law) -> dict[int, Band]:
    """The mean's parts at each level of a line."""
    is_over_cpus = law["over"] == "cpus"
    bands: dict[int, Band] = {}
    breakdown: Breakdown = verdict["breakdown"]
    rows: list[ScalingRow] = verdict["scaling"]["rows"]
    for row in rows:
        here, fixed = (row["cpus"], row["clients"]) if is_over_cpus else (row["clients"], row["cpus"])
        if here is None or (fixed, row["at"]) != (law["clients"] if is_over_cpus else law["cpus"], law["at"]):
            continue
        entry = breakdown["treatments"].get(row["treatments"][0])
        band = next(iter(entry["types"].values()))["bands"][MEAN] if entry else None
        if band:
            bands[here] = band
    return dict(sorted(bands.items()))


def _parts_table(law: Law, bands: dict[int, Band], differences: dict[str, Mean]) -> Json:
    names = in_order({part for band in bands.values() for part in band["parts"]} | set(differences))
    rows = []
    for part in names:
        values = [band["parts"].get(part) for band in bands.values()]
        if largest_share(part, bands.values()) < _PART_WORTH:
            continue
        change = differences.get(part)
        word = "cannot tell" if not change or not is_told(change) else "grows" if change["value"] > 0 else "shrinks"
        cells = [interval(estimate, ",.1f", _US) for estimate in values]
        rows.append({"part": part, "cells": cells, "difference": interval(change, "+,.1f", _US), "word": word})
    over = "CPU" if law["over"] == "cpus" else "client"
    at = scaling_words.where(law).removesuffix(": ")
    title = f"{at}, by number of {over}s" if at else f"by number of {over}s"
    return {"title": title, "columns": [scaling_words.many(level, over) for level in bands], "rows": rows}
