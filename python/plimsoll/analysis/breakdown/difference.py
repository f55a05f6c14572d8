"""Breakdowns over blocks, and the difference of two by part: intervals are Student's t over blocks, one value a block.

All values are nanoseconds a transaction. The parts of a difference and its closure error add up to its total.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from plimsoll.analysis.breakdown.parts import WAY_OUT, in_order
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST, mean_latency, mean_parts
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Comparison

Json = dict[str, Any]
Readings = Mapping[int, Json]  # one treatment's, by block


def bands_of(readings: Readings, kind: str, band: str) -> dict[int, Json]:
    """One band of a type in every block that has transactions in it."""
    found = {block: one["types"].get(kind) for block, one in readings.items()}
    return {block: one["bands"][band] for block, one in found.items() if one and one["bands"][band]["transactions"]}


def over(values: list[float], floor: float | None = None) -> Json | None:
    """A mean over blocks with its interval."""
    mean = over_blocks(values, log=False, floor=floor)
    return None if mean is None else asdict(mean)


def band_over_blocks(readings: Readings, kind: str, band: str) -> Json | None:
    """{transactions, requests, latency, parts: {part: mean and interval}, split} of a band; None without any."""
    bands = list(bands_of(readings, kind, band).values())
    if not bands:
        return None
    split = all(one["cpu_can_be_split"] for one in bands)
    means = [mean_parts(one, split) for one in bands]
    names = in_order({name for mean in means for name in mean})
    return {
        "transactions": sum(one["transactions"] for one in bands),
        "requests": sum(one["requests"] for one in bands),
        "latency": over([mean_latency(one) for one in bands], 0.0),
        "parts": {
            name: over([mean.get(name, 0.0) for mean in means], None if name == WAY_OUT else 0.0) for name in names
        },
        "split": split,
    }


def _difference(first: Mapping[int, Json], second: Mapping[int, Json]) -> Json | None:
    """Second less first, within the blocks that have both."""
    blocks = sorted(first.keys() & second.keys())
    if not blocks:
        return None
    split = all(one[block]["cpu_can_be_split"] for one in (first, second) for block in blocks)
    rows, totals, errors = [], [], []
    for block in blocks:
        one, two = (mean_parts(side[block], split) for side in (first, second))
        # In their order, whatever the sets' is: sums of numbers depend on it in their last digits.
        names = in_order(one.keys() | two.keys())
        rows.append({name: two.get(name, 0.0) - one.get(name, 0.0) for name in names})
        before, after = (mean_latency(side[block]) for side in (first, second))
        totals.append(after - before)
        errors.append(after - before - sum(rows[-1].values()))
    names = in_order({name for row in rows for name in row})
    before = sum(mean_latency(first[block]) for block in blocks)
    return {
        "blocks": len(blocks),
        "total": over(totals),
        "ratio": 1 + sum(totals) / before if before else None,
        "parts": {name: over([row.get(name, 0.0) for row in rows]) for name in names},
        "closure_error": over(errors),
    }


def difference(first: Readings, second: Readings, kind: str, band: str) -> Json | None:
    """How much longer a transaction takes under the second treatment, by part; None without a common block."""
    return _difference(bands_of(first, kind, band), bands_of(second, kind, band))


def beyond_mean(readings: Readings, kind: str) -> Json | None:
    """How much longer the slowest hundredth take than the mean of their own trial, by part."""
    return _difference(bands_of(readings, kind, MEAN), bands_of(readings, kind, SLOWEST))


def kinds_of(readings: list[Json]) -> list[str]:
    """The types in their order, all of them together first; a single type stands for all."""
    found = list(dict.fromkeys(kind for one in readings for kind in one["types"]))
    return [kind for kind in found if kind != ALL] if len(found) == 2 else found


def pairs(comparisons: list[Comparison], beside: list[Json] | None = None) -> list[Json]:
    """What is set against what: each level against the best estimate, and `beside`, what other parts set so.

    {first, second (treatments), first_label, second_label, at, about}: the difference is second less first.
    """
    found = []
    for comparison in comparisons:
        base = next((level for level in comparison["levels"] if level["level"] == comparison["reference"]), None)
        for level in comparison["levels"] if base else []:
            if base is not None and level["treatment"] != base["treatment"] and level["blocks"]:
                row = {"first": base["treatment"], "second": level["treatment"]}
                row |= {"first_label": base["level"], "second_label": f"{comparison['label']} {level['level']}"}
                found.append(row | {"at": comparison["at"], "about": "levels", "verdict": level["verdict"]})
    return found + (beside or [])
