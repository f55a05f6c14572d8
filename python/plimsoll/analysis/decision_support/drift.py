"""How throughput moves from test to test of a series: each against the first, and the trend of all.

The fact that constrains it: a series has a handful of tests and often only one block, so a difference from the first
test alone has no interval. The trend has one: a straight line through the logarithms of all tests, whose scatter around
it is the measure of what chance does. Where blocks are enough, each block's line counts once (docs/decisions/0004).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from plimsoll.analysis.decision_support.document import Drifted, LinePoint, Share, ThroughputTest, Trend, TrialReading
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE, over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.record.verdict import Mean

TESTS_MIN: Final = 3  # a line through two has no scatter
RULE: Final = (
    "the trend is a straight line through the logarithms of the tests' throughput, by least squares; its interval is "
    "of the scatter around it (from three blocks on: of the blocks' lines), taken as independent from test to test"
)


def drift(blocks: Mapping[int, TrialReading]) -> list[Drifted]:
    """Each throughput test by its number, over blocks, and its change against the first; [] where none was repeated."""
    runs = [trial["runs"] for trial in blocks.values() if len(trial["runs"]) > 1]
    rows: list[Drifted] = []
    for place in range(max((len(run) for run in runs), default=0)):
        have = [run for run in runs if place < len(run)]
        values = [value for run in have if (value := run[place]["value"]) is not None]
        ratios = [
            value / first
            for run in have
            if (value := run[place]["value"]) is not None and (first := run[0]["value"]) is not None
        ]
        lasted = [elapsed_s for run in have if (elapsed_s := run[place]["elapsed_s"]) is not None]
        rows.append(
            {
                "run": place + 1,
                "value": _over(values),
                "elapsed_s": float(np.mean(lasted)) if lasted else None,
                "change": _change(_over(ratios)) if place else None,
                "verdict": drift_word(_over(ratios)) if place else None,
                "remarks": list(dict.fromkeys(remark for run in have for remark in run[place]["remarks"])),
            }
        )
    return rows


def trend(blocks: Mapping[int, TrialReading]) -> Trend | None:
    """The trend over the tests of the series; None of one test, `verdict` alone where there are too few."""
    series = [_numbered(reading["runs"]) for reading in blocks.values() if len(reading["runs"]) > 1]
    if not series:
        return None
    tests = max(number for points in series for number, _ in points) if any(series) else 0
    lines = [points for points in series if len(points) > 1]  # one figure is no line
    slope = _over_lines(lines) if len(lines) >= BLOCKS_MIN else _one_line(lines)
    if slope is None:
        return {
            "tests": tests,
            "blocks": len(lines),
            "a_test": None,
            "over_all": None,
            "line": [],
            "verdict": "cannot tell",
        }
    over_all = _share(slope, tests - 1)
    return {
        "tests": tests,
        "blocks": len(lines),
        "a_test": _share(slope, 1),
        "over_all": over_all,
        "line": _line(series, slope[0], tests),
        "verdict": _word(over_all["low"] + 1, over_all["high"] + 1),
    }


def _share(slope: tuple[float, float], times: int) -> Share:
    """What so many steps of a slope of logarithms, and half its interval, come to."""
    value, half = slope
    return {
        "value": math.expm1(times * value),
        "low": math.expm1(times * (value - half)),
        "high": math.expm1(times * (value + half)),
    }


def _line(series: list[list[tuple[int, float]]], slope: float, tests: int) -> list[LinePoint]:
    """The straight line of this slope through the middle of the series, against the mean of their first tests."""
    firsts = [math.log(points[0][1]) for points in series if points and points[0][0] == 1]
    if not firsts:
        return []
    middles = [
        float(np.mean([math.log(value) - slope * number for number, value in points])) for points in series if points
    ]
    above = float(np.mean(middles)) - float(np.mean(firsts))
    return [{"run": number, "change": math.expm1(above + slope * number)} for number in range(1, tests + 1)]


def _numbered(runs: list[ThroughputTest]) -> list[tuple[int, float]]:
    """The tests that have a figure, with their numbers: one without leaves its place empty."""
    return [(number, value) for number, run in enumerate(runs, start=1) if (value := run["value"]) is not None]


def _one_line(series: list[list[tuple[int, float]]]) -> tuple[float, float] | None:
    """The slope that all blocks share, each on a level of its own, and half its interval; None of too few tests."""
    numbers, logs = [], []
    for points in series:
        x = np.array([number for number, _ in points], float)
        y = np.log([value for _, value in points])
        numbers.append(x - x.mean())
        logs.append(y - y.mean())
    if not numbers:
        return None
    x, y = np.concatenate(numbers), np.concatenate(logs)
    freedom = len(x) - len(series) - 1
    if len(x) < TESTS_MIN or freedom < 1:
        return None
    spread = float((x**2).sum())
    slope = float((x * y).sum()) / spread
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / freedom / spread)
    return slope, float(t_quantile(0.5 + CONFIDENCE / 2, freedom)) * error


def _over_lines(series: list[list[tuple[int, float]]]) -> tuple[float, float] | None:
    """The mean slope of the blocks, and half its interval."""
    slopes = [
        float(np.polyfit([number for number, _ in points], np.log([value for _, value in points]), 1)[0])
        for points in series
    ]
    mean = over_blocks(slopes, log=False, floor=None)
    if mean is None or mean.low is None or mean.high is None:
        return None
    return mean.value, mean.high - mean.value


def _over(values: list[float]) -> Mean | None:
    return as_mean(over_blocks(values, log=True))


def _change(ratio: Mean | None) -> Mean | None:
    if ratio is None:
        return None
    low, high = (None if end is None else end - 1 for end in (ratio["low"], ratio["high"]))
    return {"value": ratio["value"] - 1, "low": low, "high": high, "blocks": ratio["blocks"]}


def drift_word(ratio: Mean | None) -> str:
    """ "lower", "higher", "no drift larger than 5 %" (the smallest whole bound that holds), or "cannot tell"."""
    if ratio is None or ratio["low"] is None or ratio["high"] is None or ratio["blocks"] < BLOCKS_MIN:
        return "cannot tell"
    return _word(ratio["low"], ratio["high"])


def _word(low: float, high: float) -> str:
    if high < 1:
        return "lower"
    if low > 1:
        return "higher"
    bound = max(1 - low, high - 1)
    # A bound that allows anything says nothing.
    return f"no drift larger than {math.ceil(100 * bound):d} %" if bound < 1 else "cannot tell"
