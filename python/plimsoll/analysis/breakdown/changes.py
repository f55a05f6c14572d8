"""What changed between two treatments or two runs: parts of the latency, wait events and users of the CPU, ranked.

Amounts are nanoseconds a transaction, one value a block. Within a run the difference is taken within blocks; between
runs, whose blocks have nothing to do with each other, by Welch's interval. Wait events are parts of their part, so the
two lists are not to be added up.
"""

from collections.abc import Mapping
from typing import TypeVar

from plimsoll.analysis.breakdown.document import Change, CpuChange, LatencyChange, Whole
from plimsoll.analysis.breakdown.parts import CPU, KERNEL, USER
from plimsoll.analysis.breakdown.reading import BandSums, Reading, Told, TypeSums
from plimsoll.analysis.breakdown.trial import MEAN, mean_latency, mean_parts
from plimsoll.analysis.statistics.intervals import MeanDifference, paired, unpaired
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Mean

Readings = Mapping[int, Reading]  # one treatment's, by block
Key = tuple[str, str]  # of a wait event its name and its part, of anything else its name and nothing
Amounts = Mapping[int, Mapping[Key, float]]  # by block
Metrics = Mapping[int, Mapping[str, float | None]]  # of trials, by number
OfBlock = TypeVar("OfBlock")
WAITS_MAX = 12
CANNOT_TELL = "cannot tell"
_CPU = "cpu_ns_per_transaction"
GENERATOR = "the load generator"
BACKENDS = {CPU: "backends", USER: "backends, in the server's own code", KERNEL: "backends, in the kernel"}


def rows_of(first: Amounts, second: Amounts, whole: Whole, is_paired: bool) -> list[Change]:
    """Each amount, the largest difference first.

    What one block lacks and others have was watched and did not happen there: it is 0. Of a whole of which cannot be
    told that it changed there are no shares.
    """
    keys = dict.fromkeys(key for side in (first, second) for amounts in side.values() for key in amounts)
    total = total_of(whole)
    rows = []
    for key in keys:
        before, after = ({block: amounts.get(key, 0.0) for block, amounts in side.items()} for side in (first, second))
        difference = difference_of(before, after, is_paired)
        if difference is not None:
            rows.append(row_of(key, before, after, difference.interval(), total))
    return in_rank(rows)


def total_of(whole: Whole) -> float | None:
    """The difference that shares are of; None where it cannot be told that there is one."""
    return whole["total"]["value"] if whole["word"] != CANNOT_TELL else None


def row_of(
    key: Key, first: Mapping[int, float], second: Mapping[int, float], difference: Mean, total: float | None
) -> Change:
    """One amount; `total`: what shares are of."""
    share = difference["value"] / total if total else None
    return {
        "name": key[0],
        "part": key[1] or None,
        "first": mean(first),
        "second": mean(second),
        "difference": difference,
        "share": share,
        "word": word(difference),
    }


def in_rank(rows: list[Change]) -> list[Change]:
    """The largest difference first."""
    return sorted(rows, key=lambda row: (-abs(row["difference"]["value"]), row["name"], row["part"] or ""))


def word(difference: Mean) -> str:
    """Whether there is more or less of it in the second; "cannot tell" where the interval holds zero."""
    low, high = difference["low"], difference["high"]
    if low is None or high is None or not (low > 0 or high < 0):
        return CANNOT_TELL
    return "more" if difference["value"] > 0 else "less"


def difference_of(first: Mapping[int, float], second: Mapping[int, float], is_paired: bool) -> MeanDifference | None:
    """Second less first, of values by block; None without a block to take it from."""
    if not is_paired:
        return unpaired(list(first.values()), list(second.values()))
    return paired([second[block] - first[block] for block in sorted(first.keys() & second.keys())])


def mean(values: Mapping[int, float]) -> float:
    """Over blocks."""
    return sum(values.values()) / len(values)


def of_latency(
    first: Readings, second: Readings, kind: str, band: Told, is_paired: bool, spread: float | None = None
) -> LatencyChange | None:
    """What changed of a type's latency.

    None where a side has none of the type. `spread`: the ratio by which equal trials differ.
    """
    sides = common_blocks([_of_kind(readings, kind, band) for readings in (first, second)], is_paired)
    if not all(sides):
        return None
    split = all(entry["bands"][band]["cpu_can_be_split"] for side in sides for entry in side.values())
    whole = [{block: mean_latency(entry["bands"][band]) for block, entry in side.items()} for side in sides]
    parts = [{block: _parts(entry, band, split) for block, entry in side.items()} for side in sides]
    waits = [{block: _waits(entry, band) for block, entry in side.items()} for side in sides]
    left = [
        {block: total - sum(named_parts[block].values()) for block, total in totals.items()}
        for totals, named_parts in zip(whole, parts, strict=True)
    ]
    whole_difference = whole_of(whole, is_paired, spread)
    named = rows_of(waits[0], waits[1], whole_difference, is_paired)
    return {
        **whole_difference,
        "parts": rows_of(parts[0], parts[1], whole_difference, is_paired),
        "waits": named[:WAITS_MAX],
        "waits_left_out": max(0, len(named) - WAITS_MAX),
        "closure_error": _interval(left[0], left[1], is_paired),
    }


def _interval(first: Mapping[int, float], second: Mapping[int, float], is_paired: bool) -> Mean | None:
    difference = difference_of(first, second, is_paired)
    return None if difference is None else difference.interval()


def common_blocks(sides: list[dict[int, OfBlock]], is_paired: bool) -> list[dict[int, OfBlock]]:
    """Of pairs, the blocks that both have."""
    common = sides[0].keys() & sides[1].keys()
    return [{block: side[block] for block in side if block in common} for side in sides] if is_paired else sides


def whole_of(values: list[dict[int, float]], is_paired: bool, spread: float | None) -> Whole:
    """The means and their difference, which is told only if equal trials differ less; each side has a block."""
    means = [mean(side) for side in values]
    total = _interval(values[0], values[1], is_paired)
    assert total is not None, "both sides have a block"
    ratio = means[1] / means[0] if means[0] else None
    is_within = spread is not None and ratio is not None and ratio > 0 and max(ratio, 1 / ratio) <= spread
    said = CANNOT_TELL if is_within else word(total)
    return {"first": means[0], "second": means[1], "total": total, "ratio": ratio, "word": said}


def _of_kind(readings: Readings, kind: str, band: Told) -> dict[int, TypeSums]:
    entries = {block: entry["types"].get(kind) for block, entry in readings.items()}
    return {block: entry for block, entry in entries.items() if entry and entry["bands"][band]["transactions"]}


def _parts(entry: TypeSums, band: Told, split: bool) -> dict[Key, float]:
    return {(name, ""): value for name, value in mean_parts(entry["bands"][band], split).items()}


def _waits(entry: TypeSums, band: Told) -> dict[Key, float]:
    count = entry["bands"][band]["transactions"]
    return {(row["name"], row["bucket"]): row["ns"] / count for row in entry[band]["waits"]}


def of_cpu(
    first: tuple[Readings, Metrics],
    second: tuple[Readings, Metrics],
    is_paired: bool,
    spread: float | None = None,
) -> CpuChange | None:
    """The CPU's time a transaction, of all CPUs, by who took it, from readings and the trials' metrics by number.

    The server's other processes are not known by transaction where only slices of time were watched.
    """
    sides = (first, second)
    split = all(_mean_band(entry)["cpu_can_be_split"] for readings, _ in sides for entry in readings.values())
    sampled = any(entry["sampling"]["one_in_max"] > 1 for readings, _ in sides for entry in readings.values())
    known = [{block: metrics[entry["number"]] for block, entry in readings.items()} for readings, metrics in sides]
    wholes = [
        {block: took for block, figures in of_side.items() if (took := figures.get(_CPU)) is not None}
        for of_side in known
    ]
    wholes = common_blocks(wholes, is_paired)
    if not all(wholes):
        return None
    users = [
        {block: _users(readings[block], of_side[block], split, sampled) for block in whole}
        for (readings, _), of_side, whole in zip(sides, known, wholes, strict=True)
    ]
    whole_difference = whole_of(wholes, is_paired, spread)
    return {
        **whole_difference,
        "users": rows_of(users[0], users[1], whole_difference, is_paired),
        "others_known": not sampled,
    }


def _mean_band(entry: Reading) -> BandSums:
    return entry["types"][ALL]["bands"][MEAN]


def _users(entry: Reading, metrics: Mapping[str, float | None], split: bool, sampled: bool) -> dict[Key, float]:
    parts = mean_parts(_mean_band(entry), split)
    users = {(name, ""): parts[part] for part, name in BACKENDS.items() if part in parts}
    generator = metrics.get("generator_cpu_ns_per_transaction")
    if generator is not None:
        users[GENERATOR, ""] = generator
    done = entry["done"]
    for process in entry["processes"] if done and not sampled else []:
        key = (str(process.get("what") or "unknown"), "")
        users[key] = users.get(key, 0.0) + int(process.get("cpu_ns") or 0) / (done or 1)
    return users
