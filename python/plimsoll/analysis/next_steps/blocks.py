"""How many blocks would tell two levels apart, from how the trials of this run scatter.

A pair is told when it passes two tests at once (comparing/compare.py): Tukey's of all pairs on the scatter of all
trials, and its own t interval. The answer is the least number of blocks with which a true ratio passes both in about
four of five runs; that scatter is itself an estimate, so it is an order of magnitude and no promise.
tests/unit/analysis/test_next_steps.py has it by simulation.
"""

import math
import statistics

from plimsoll.analysis.comparing.compare import alpha_of_test
from plimsoll.analysis.statistics.distributions import normal_quantile, t_quantile
from plimsoll.analysis.statistics.intervals import BLOCKS_MIN, CONFIDENCE
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.record import Run
from plimsoll.record.verdict import Noise, Ratio

POWER = 0.8
BLOCKS_MAX = 400  # beyond it another machine, or longer trials, are the answer


def blocks_to_tell(ratio: float, levels: int, sd: float, freedom_a_block: float, own_sd: float) -> int | None:
    """The least number of blocks that tell a ratio; None where BLOCKS_MAX do not.

    `sd` of a trial's log and its degrees of freedom a block; `own_sd` of the pair's log ratio from block to block.
    """
    distance, power = abs(math.log(ratio)), float(normal_quantile(POWER))
    if not distance:
        return None

    def is_told(blocks: int) -> bool:
        critical = float(range_quantile(1 - alpha_of_test(blocks), levels, max(1, round(freedom_a_block * blocks))))
        pooled = (critical / math.sqrt(2) + power) * sd * math.sqrt(2 / blocks)
        own = (float(t_quantile(0.5 + CONFIDENCE / 2, blocks - 1)) + power) * own_sd / math.sqrt(blocks)
        return distance >= max(pooled, own)

    low, high = BLOCKS_MIN - 1, BLOCKS_MIN
    while not is_told(high):
        if high >= BLOCKS_MAX:
            return None
        low, high = high, min(2 * high, BLOCKS_MAX)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_told(middle) else (middle, high)
    return high


def own_sd(pair: Ratio, noise: Noise) -> float:
    """How a pair's log ratio scatters from block to block, from its interval; where it has none, from all trials."""
    low, high, blocks = pair["low"], pair["high"], pair["blocks"]
    if not low or not high or blocks < BLOCKS_MIN:
        return math.sqrt(2) * noise["sd_log"]
    return math.log(high / low) / 2 * math.sqrt(blocks) / float(t_quantile(0.5 + CONFIDENCE / 2, blocks - 1))


def block_seconds(run: Run) -> float | None:
    """How long a block took, from its first phase to its last: the median over blocks; None where no trial says."""
    spans: dict[int, list[float]] = {}
    for trial in run.trials:
        for phase in trial.data.get("phases") or []:
            if phase.get("start_ns") is not None and phase.get("end_ns") is not None:
                spans.setdefault(trial.block, []).extend((phase["start_ns"] / 1e9, phase["end_ns"] / 1e9))
    return statistics.median(max(one) - min(one) for one in spans.values()) if spans else None
