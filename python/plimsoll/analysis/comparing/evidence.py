"""What levels of one factor are told apart by: their logs by block, every pair compared, and the noise of it.

The fact that constrains it: how trials were arranged decides what they tell (here one after the other; the room
`windows` has another way). The comparison itself (levels.py) takes evidence of any kind, and names none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.comparing import unbounded
from plimsoll.analysis.comparing.compare import alpha_of_test
from plimsoll.analysis.comparing.unbounded import Compared
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.record.verdict import Noise, Used


@dataclass(frozen=True)
class Evidence:
    """Of some treatments; arrays are (copies, blocks, treatments) and (blocks, treatments).

    `sure` is `found` without the treatments of fewer than `blocks_min` blocks, which are not judged. `centre` has each
    treatment's level where its own blocks do not tell it; `apart` [i, j] are pairs without a block in common, compared
    through the treatment `reference`.
    """

    copies: np.ndarray
    beyond: np.ndarray
    found: Compared
    sure: Compared
    noise: Noise | None
    blocks_min: int = BLOCKS_MIN
    centre: np.ndarray | None = None
    apart: np.ndarray | None = None
    reference: str | None = None


# Of the treatments, the trials that stand for each block and treatment, and their duplicates.
Method = Callable[[Sequence[str], Used, Used, Metric], Evidence]


def blocks_of(treatments: Sequence[str], used: Used) -> list[int]:
    """The blocks that have a trial of any of them."""
    return sorted({block for block, treatment in used if treatment in treatments})


def matrix(
    blocks: Sequence[int], treatments: Sequence[str], used: Used, metric: Metric
) -> tuple[np.ndarray, np.ndarray]:
    """Logs of the metric, signed so that higher is better, NaN where no trial enters; and which have no bound.

    What has none stands at the least that it can be.
    """
    logs = np.full((len(blocks), len(treatments)), np.nan)
    beyond = np.zeros(logs.shape, bool)
    for row, block in enumerate(blocks):
        for column, treatment in enumerate(treatments):
            value, is_beyond = unbounded.reading(used.get((block, treatment)), metric.key)
            if value and value > 0:
                logs[row, column], beyond[row, column] = math.log(value), is_beyond
    return -logs if metric.better == "lower" else logs, beyond


def by_trials(floor: float = 0.0) -> Method:
    """Trials by themselves; `floor` is the standard deviation of a trial's log from a stored A/A."""

    def method(treatments: Sequence[str], used: Used, twins: Used, metric: Metric) -> Evidence:
        blocks = blocks_of(treatments, used)
        logs, beyond = matrix(blocks, treatments, used, metric)
        again, again_beyond = matrix(blocks, treatments, twins, metric)
        copies = np.stack([logs, np.where(beyond | again_beyond, np.nan, again)])
        judged = np.isfinite(logs).sum(0) >= BLOCKS_MIN
        found = unbounded.compare(copies, beyond, floor)
        # Only what has enough blocks takes part in the set; the number of levels that are allowed for stays.
        sure = unbounded.compare(np.where(judged, copies, np.nan), beyond & judged, floor)
        return Evidence(copies, beyond, found, sure, _noise(found, copies))

    return method


def _noise(found: Compared, copies: np.ndarray) -> Noise | None:
    """{sd_log, freedom, ratio_told}: a trial's scatter, and the ratio from which on two levels can be told apart.

    None where nothing scatters that could be judged by. That ratio is of two levels of all blocks without a
    duplicate; noisier ones need more.
    """
    blocks, noise = int(np.isfinite(copies[0]).sum(0).max(initial=0)), found.noise
    if blocks < BLOCKS_MIN or not np.isfinite(noise.variance):
        return None
    critical = float(range_quantile(1 - alpha_of_test(blocks), copies.shape[-1], noise.freedom))
    sd = math.sqrt(float(noise.variance))
    return {"sd_log": sd, "freedom": int(noise.freedom), "ratio_told": math.exp(critical * sd / math.sqrt(blocks))}
