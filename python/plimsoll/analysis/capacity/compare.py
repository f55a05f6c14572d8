"""Load lines of several runs against each other: do they agree, and if not, what moved?

Runs of different hours saw a machine in different states, and no interval of one run accounts for that. So the
conditions of the trials near each line (CONDITIONS) are set side by side, and those that differ by more than their
scatter within the runs are named. That they moved together with the line does not prove that they moved it.
"""

import math
import statistics

from plimsoll.analysis.capacity.document import Capacity, ComparedLine, LinesCompared, MovedCondition

AGREE = 0.05
_MOVED_RATIO = 0.05
_MOVED_SHARE = 0.02
_NEAR = 1.3
SAME = ("subject", "objective", "arrivals", "clients")
AGREE_RULE = (
    f"two load lines agree when they differ by at most {AGREE:.0%}, and differ when the range of their ratio, "
    "from both intervals, excludes 1; else: cannot tell"
)


def unlike(one: Capacity, other: Capacity) -> list[str]:
    """What two capacity runs asked differently; lines of different questions are not compared."""
    differences = []
    for key in SAME:
        a, b = (_asked(document, key) for document in (one, other))
        if a != b:
            differences.append(f"{key}: {a} against {b}")
    return differences


def _asked(document: Capacity, key: str) -> object:
    value = document.get(key)
    return value.get("text") if isinstance(value, dict) else value


def compare_capacity(first: Capacity, second: Capacity, differences: list[str]) -> LinesCompared:
    """Second against first: the ratio of the lines with its range, whether they agree, and what moved."""
    line_a, line_b = first["line"], second["line"]
    ratio = line_b["rate"] / line_a["rate"] if line_a["rate"] and line_b["rate"] else None
    low = _over(line_b["low"], line_a["high"]) if ratio is not None else None
    high = _over(line_b["high"], line_a["low"]) if ratio is not None else None
    if low is None or high is None:
        low = high = None
    both = line_a["status"] == line_b["status"] == "found"
    agree = None if ratio is None or not both else _agree(ratio, low, high)
    return {
        "format": 1,
        "first": _name(first),
        "second": _name(second),
        "ratio": ratio,
        "low": low,
        "high": high,
        "agree": agree,
        "rule": AGREE_RULE,
        "moved": moved(first, second),
        "differences": differences,
    }


def _over(end: float | None, other: float | None) -> float | None:
    return None if end is None or other is None else end / other


def _agree(ratio: float, low: float | None, high: float | None) -> bool | None:
    """Whether lines agree; None where they lie apart and their intervals do not."""
    if abs(math.log(ratio)) <= math.log1p(AGREE):
        return True
    return False if low is not None and high is not None and (low > 1 or high < 1) else None


def _name(document: Capacity) -> ComparedLine:
    return {
        "run": document.get("run"),
        "started_epoch_ns": document.get("started_epoch_ns"),
        "line": document["line"],
        "knee": document.get("knee"),
    }


def moved(first: Capacity, second: Capacity) -> list[MovedCondition]:
    """The conditions that differ between the trials near the two lines, the largest difference first."""
    rows: list[MovedCondition] = []
    for key, described in second["conditions"].items():
        before, after = (_near_line(document, key) for document in (first, second))
        if len(before) < 2 or len(after) < 2:
            continue
        share = described["unit"] == "share"
        a, b = statistics.median(before), statistics.median(after)
        if not share and min(a, b) <= 0:
            continue
        change = b - a if share else math.log(b / a)
        scatter = math.hypot(_error(before, share), _error(after, share))
        if abs(change) > max(_MOVED_SHARE if share else _MOVED_RATIO, 2 * scatter):
            rows.append({"condition": key, **described, "first": a, "second": b, "change": change})
    return sorted(rows, key=lambda row: -abs(row["change"]))


def _near_line(document: Capacity, key: str) -> list[float]:
    """The condition in the trials at rates near the line."""
    rate = document["line"]["rate"]
    return [
        float(value)
        for trial in document["trials"]
        if rate and trial["rate"] and rate / _NEAR <= trial["rate"] <= rate * _NEAR
        if (value := trial["conditions"].get(key)) is not None
    ]


def _error(values: list[float], share: bool) -> float:
    """Standard error of a median, from the median deviation; of logarithms where ratios are compared."""
    scaled = values if share else [math.log(max(value, 1e-9)) for value in values]
    middle = statistics.median(scaled)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in scaled)
    return 1.2533 * spread / math.sqrt(len(scaled))
