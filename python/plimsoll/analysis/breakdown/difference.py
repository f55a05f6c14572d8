"""Breakdowns over blocks, and the difference of two by part: intervals are Student's t over blocks, one value a block.

All values are nanoseconds a transaction. The parts of a difference and its closure error add up to its total.
"""

from collections.abc import Mapping

from plimsoll.analysis.breakdown.document import Band, PartsDifference
from plimsoll.analysis.breakdown.parts import WAY_OUT, in_order
from plimsoll.analysis.breakdown.reading import BandSums, Reading
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST, mean_latency, mean_parts
from plimsoll.analysis.part import Pair
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Comparison, Mean

Readings = Mapping[int, Reading]  # one treatment's, by block


def bands_of(readings: Readings, kind: str, band: str) -> dict[int, BandSums]:
    """One band of a type in every block that has transactions in it."""
    of_kind = {block: entry["types"].get(kind) for block, entry in readings.items()}
    return {
        block: entry["bands"][band]
        for block, entry in of_kind.items()
        if entry and entry["bands"][band]["transactions"]
    }


def over(values: list[float], floor: float | None = None) -> Mean:
    """A mean over blocks with its interval; there is at least one block."""
    mean = as_mean(over_blocks(values, log=False, floor=floor))
    assert mean is not None, "each block has a value"
    return mean


def band_over_blocks(readings: Readings, kind: str, band: str) -> Band | None:
    """{transactions, requests, latency, parts: {part: mean and interval}, split} of a band; None without any."""
    bands = list(bands_of(readings, kind, band).values())
    if not bands:
        return None
    split = all(band_of_block["cpu_can_be_split"] for band_of_block in bands)
    means = [mean_parts(band_of_block, split) for band_of_block in bands]
    names = in_order({name for mean in means for name in mean})
    return {
        "transactions": sum(band_of_block["transactions"] for band_of_block in bands),
        "requests": sum(band_of_block["requests"] for band_of_block in bands),
        "latency": over([mean_latency(band_of_block) for band_of_block in bands], 0.0),
        "parts": {
            name: over([mean.get(name, 0.0) for mean in means], None if name == WAY_OUT else 0.0) for name in names
        },
        "split": split,
    }


def _difference(first: Mapping[int, BandSums], second: Mapping[int, BandSums]) -> PartsDifference | None:
    """Second less first, within the blocks that have both."""
    blocks = sorted(first.keys() & second.keys())
    if not blocks:
        return None
    split = all(side[block]["cpu_can_be_split"] for side in (first, second) for block in blocks)
    rows, totals, errors = [], [], []
    for block in blocks:
        parts_before, parts_after = (mean_parts(side[block], split) for side in (first, second))
        # In their order, whatever the sets' is: sums of numbers depend on it in their last digits.
        names = in_order(parts_before.keys() | parts_after.keys())
        rows.append({name: parts_after.get(name, 0.0) - parts_before.get(name, 0.0) for name in names})
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


def difference(first: Readings, second: Readings, kind: str, band: str) -> PartsDifference | None:
    """How much longer a transaction takes under the second treatment, by part; None without a common block."""
    return _difference(bands_of(first, kind, band), bands_of(second, kind, band))


def beyond_mean(readings: Readings, kind: str) -> PartsDifference | None:
    """How much longer the slowest hundredth take than the mean of their own trial, by part."""
    return _difference(bands_of(readings, kind, MEAN), bands_of(readings, kind, SLOWEST))


def kinds_of(readings: list[Reading]) -> list[str]:
    """The types in their order, all of them together first; a single type stands for all."""
    kinds = list(dict.fromkeys(kind for reading in readings for kind in reading["types"]))
    return [kind for kind in kinds if kind != ALL] if len(kinds) == 2 else kinds


def pairs(comparisons: list[Comparison], beside: list[Pair] | None = None) -> list[Pair]:
    """What is set against what: each level against the best estimate, and `beside`, what other parts set so.

    The difference is second less first.
    """
    rows: list[Pair] = []
    for comparison in comparisons:
        base = next((level for level in comparison["levels"] if level["level"] == comparison["reference"]), None)
        for level in comparison["levels"] if base else []:
            if base is not None and level["treatment"] != base["treatment"] and level["blocks"]:
                row: Pair = {
                    "first": base["treatment"],
                    "second": level["treatment"],
                    "first_label": base["level"],
                    "second_label": f"{comparison['label']} {level['level']}",
                    "at": comparison["at"],
                    "about": "levels",
                    "verdict": level["verdict"],
                }
                rows.append(row)
    return rows + (beside or [])
