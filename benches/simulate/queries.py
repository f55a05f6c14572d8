"""Queries of a decision-support test under two treatments: what is told of one that is slower, and of none."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from plimsoll.analysis.statistics.intervals import CONFIDENCE, paired
from plimsoll.analysis.statistics.moderated import holm, moderated
from simulate.rows import Row, Section

QUERIES = 24


def told(logs: np.ndarray) -> np.ndarray:
    """[query]: whether its time changed, of (queries, blocks) log ratios."""
    means = moderated([one for row in logs if (one := paired(row.tolist())) is not None])
    chances = [one.chance() for one in means]
    return np.array([chance <= level for chance, level in zip(chances, holm(chances, 1 - CONFIDENCE), strict=True)])


def _case(ratio: float, sd: float, spread: float, blocks: int, seed: int, runs: int) -> list[Row]:
    """`sd` is that of a query's time; queries differ in it by a factor that scatters with `spread` (of its log)."""
    random = np.random.default_rng([seed, blocks, round(1000 * sd), round(10 * spread)])
    shown = np.zeros((runs, QUERIES), bool)
    for run in range(runs):
        own = sd * np.exp(spread * random.standard_normal((QUERIES, 1)))
        own[0] = sd
        logs = own * math.sqrt(2) * random.standard_normal((QUERIES, blocks))
        logs[0] += math.log(ratio)
        shown[run] = told(logs)
    case = f"{ratio:g} x, {sd:.0%} noise, scatter {spread:g}, {blocks} blocks"
    false = Row("any equal query told", case, float(shown[:, 1:].any(1).mean()), 1 - CONFIDENCE, True, runs)
    return [false] + ([Row("query told", case, float(shown[:, 0].mean()), 0.8, False, runs)] if ratio > 1 else [])


def sections() -> list[Section]:
    """What this file can show."""
    cases = [
        (f"{ratio} x", partial(_case, ratio, 0.05, spread, blocks))
        for ratio in (1.0, 2.0)
        for spread in (0.0, 0.5)
        for blocks in (3, 5)
    ]
    return [Section("queries", tuple(cases), 2_000)]
