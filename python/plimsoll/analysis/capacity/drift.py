"""Did the machine change while the search went on? Trials at one rate asked the same, so what differs is the machine.

Their percentiles are compared with what their own intervals allow (Cochran's Q over the logarithms); trials at the
line count as trials at one rate, moved there by the slope over them, else few could be compared. Where they differ by
more, the conditions that went with the slower trials are named (rank correlation over them); that they moved together
does not prove that one moved the other. Trials in which a backlog built are left out: there the latency is a matter of
how long the trial was. schema/capacity.md states by simulation how often it fires.
"""

import math
import statistics
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.capacity.document import (
    ConditionWords,
    DriftedCondition,
    DriftEnd,
    DriftFound,
    ErrorsTerm,
    PercentileFound,
    PercentileTerm,
    SearchTrial,
)
from plimsoll.analysis.capacity.objective import time_words
from plimsoll.analysis.statistics.distributions import chi2_beyond
from plimsoll.quantities import rate

P_MAX = 0.01
FREEDOM_MIN = 3
CONDITIONS_MIN = 5
AT_LINE = 1.06
MEDIAN = "p50"  # known closely in every trial, where the objective's percentile is often not bounded above
_HALF_WIDTH = 1.96  # the intervals are 95 %
DRIFT_RULE = (
    f"trials at one rate without a backlog, and those within {AT_LINE - 1:.0%} of the line less the slope over them, "
    "are compared by Cochran's Q over the logarithms of the median and of each percentile of the objective, with "
    f"errors from their intervals; below p = {P_MAX:g} (divided by the number of percentiles) the machine drifted, and "
    "the conditions are named whose rank correlation with the percentile over these trials is below p = 0.05 (divided "
    f"by the number of conditions); with fewer than {FREEDOM_MIN} degrees of freedom nothing is said"
)


@dataclass(frozen=True)
class _Point:
    """A trial's percentile, as a logarithm with its error, and how far it lies from the others at its rate."""

    entry: SearchTrial
    rate: float
    value: float
    error: float
    apart: float = 0.0


def drift(
    trials: list[SearchTrial], described: dict[str, ConditionWords], line_rate: float | None
) -> DriftFound | None:
    """What trials at one rate say of the machine; None where too few trials can be compared.

    `trials` and `described`: the `trials` and `conditions` of capacity.json. The percentile that differs most decides.
    """
    named = [
        term["term"].partition(" ")[0] for trial in trials for term in trial.get("terms", []) if "limit_ns" in term
    ]
    names = list(dict.fromkeys([MEDIAN, *named]))
    drifts = [
        drift_of for name in names if (drift_of := _of(name, len(names), trials, described, line_rate)) is not None
    ]
    return min(drifts, key=lambda by_percentile: by_percentile["p_value"], default=None)


def _of(
    name: str, tests: int, trials: list[SearchTrial], described: dict[str, ConditionWords], line_rate: float | None
) -> DriftFound | None:
    """By one percentile, out of so many that are tested."""
    groups: dict[float, list[_Point]] = {}
    for trial in trials:
        point = _point(name, trial)
        if point is not None:
            at_line = line_rate is not None and abs(math.log(point.rate / line_rate)) <= math.log(AT_LINE)
            groups.setdefault(line_rate if at_line and line_rate else point.rate, []).append(point)
    compared, freedom = [], 0
    for group in groups.values():
        apart, spent = _apart(group)
        if len(group) > spent:
            compared.append(apart)
            freedom += len(group) - spent
    if freedom < FREEDOM_MIN:
        return None
    points = [point for group in compared for point in group]
    p_value = min(
        1.0, tests * float(chi2_beyond(sum((point_of.apart / point_of.error) ** 2 for point_of in points), freedom))
    )
    widest = max(
        compared, key=lambda group: max(member.apart for member in group) - min(member.apart for member in group)
    )
    drifted = p_value < P_MAX
    return {
        "percentile": name,
        "trials": len(points),
        "p_value": p_value,
        "drifted": drifted,
        "fast": _end(min(widest, key=lambda member: member.apart)),
        "slow": _end(max(widest, key=lambda member: member.apart)),
        "moved": _moved(compared, described) if drifted else [],
    }


def _point(name: str, entry: SearchTrial) -> _Point | None:
    planned, backlog = entry["rate"], entry.get("backlog")
    if planned is None or (backlog is not None and backlog["building"]):
        return None
    terms = {term["term"].partition(" ")[0]: term for term in entry.get("terms", [])}
    known: PercentileTerm | ErrorsTerm | PercentileFound | None
    known = terms.get(name) or entry.get("percentiles", {}).get(name)
    if known is None or not known["value"] or not known["low"] or not known["high"]:
        return None  # not bounded: such a trial differs from none
    error = (math.log(known["high"]) - math.log(known["low"])) / (2 * _HALF_WIDTH)
    return _Point(entry, planned, math.log(known["value"]), error) if error > 0 else None


def _apart(group: list[_Point]) -> tuple[list[_Point], int]:
    """How far each lies from the others, and the parameters that took: their mean, and a slope where rates differ."""
    weights = np.array([point.error**-2 for point in group])
    values = np.array([point.value for point in group])
    places = np.log([point.rate for point in group])
    middle, mean = (float(np.average(what, weights=weights)) for what in (places, values))
    power = float((weights * (places - middle) ** 2).sum())
    differ = len({point.rate for point in group}) > 1
    slope = float((weights * (places - middle) * values).sum()) / power if differ else 0.0
    rest = values - mean - slope * (places - middle)
    moved = [
        _Point(point.entry, point.rate, point.value, point.error, float(apart))
        for point, apart in zip(group, rest, strict=True)
    ]
    return moved, 1 + differ


def _end(point: _Point) -> DriftEnd:
    return {"number": point.entry["number"], "rate": point.rate, "value": math.exp(point.value)}


def _moved(compared: list[list[_Point]], described: dict[str, ConditionWords]) -> list[DriftedCondition]:
    """The conditions that went with the latency, the closest first: each less its mean over the trials compared."""
    from scipy.stats import spearmanr

    rows: list[DriftedCondition] = []
    for key, words in described.items():
        values, latency, apart = [], [], []
        for group in compared:
            known = [
                (float(value), point.apart)
                for point in group
                if (value := point.entry["conditions"].get(key)) is not None
            ]
            middle = statistics.fmean(value for value, _ in known) if known else 0.0
            values += [value for value, _ in known]
            latency += [late for _, late in known]
            apart += [value - middle for value, _ in known]
        if len(values) < CONDITIONS_MIN or len(set(apart)) < 2 or len(set(latency)) < 2:
            continue
        rank = spearmanr(apart, latency)
        if not rank.pvalue < 0.05 / len(described):
            continue
        half = statistics.median(latency)
        fast = statistics.median(value for value, late in zip(values, latency, strict=True) if late <= half)
        slow = statistics.median(value for value, late in zip(values, latency, strict=True) if late >= half)
        rows.append({"condition": key, **words, "fast": fast, "slow": slow, "correlation": float(rank.statistic)})
    return sorted(rows, key=lambda row: -abs(row["correlation"]))


def value_words(unit: str, value: float | None) -> str:
    """A condition's value with its unit."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{value:.1%}"
    return time_words(value) if unit == "ns" else f"{value:,.0f} {unit}"


def drift_words(drifted: DriftFound) -> str:
    """That the machine drifted, by how much it showed, and what moved with it."""
    name = drifted["percentile"]
    fast, slow = (
        f"{time_words(end['value'])} at {rate(end['rate'])}/s (trial {end['number']})"
        for end in (drifted["fast"], drifted["slow"])
    )
    moved = "; ".join(
        f"{row['label']}, {value_words(row['unit'], row['fast'])} in the faster trials and "
        f"{value_words(row['unit'], row['slow'])} in the slower"
        for row in drifted["moved"][:3]
    )
    return (
        "the machine drifted, so the interval covers the true line less often: trials at one rate or close "
        f"together differ by more than their intervals allow, such as {name} {fast} and {slow}; what changed with it: "
        f"{moved or 'nothing that is recorded'}"
    )
