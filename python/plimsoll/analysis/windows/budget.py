"""What difference a plan of windows can tell, by the noise that an A/A of this machine found."""

from __future__ import annotations

import math
from dataclasses import dataclass

from plimsoll.analysis.statistics.distributions import normal_quantile
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.analysis.windows.spending import FIRST, FULL, at_end
from plimsoll.record.verdict import WindowsNoise

POWER = 0.8  # how often so large a difference is told


@dataclass(frozen=True)
class Arrangement:
    """What is planned: `arms` are the servers of a block, `seconds` what counts of a window.

    In groups a replicate takes the place of a block: `arms` are those of all its `groups`.
    """

    levels: int
    arms: int
    blocks: int
    rounds: int
    seconds: float
    stops_when_decided: bool
    groups: int = 1


def ratio_told(noise: WindowsNoise, planned: Arrangement) -> float | None:
    """The ratio of two levels that is told in POWER of such runs; None where starts are not known or too few ran.

    In groups it is that of two levels which are not up together, each compared with the reference (through.py).

    `noise` as a stored A/A has it (part.py, `noise_of_run`): a window's variance goes with the time that it counts,
    and what duplicates add to the levels' own precision is left out, so a little less is told than will be.
    """
    of_window, of_start = noise["window_sd_log"], noise["start_sd_log"]
    freedom = planned.arms * planned.blocks - planned.groups * planned.blocks - (planned.levels - 1)
    if of_window is None or of_start is None or planned.levels < 2 or planned.blocks < FIRST or freedom < 1:
        return None
    window = float(of_window) ** 2 * float(noise["window_seconds"]) / planned.seconds / planned.rounds
    comparisons = 2 if planned.groups > 1 else 1
    error = math.sqrt(comparisons * 2 * (window + float(of_start) ** 2) / planned.blocks)
    alpha = (at_end(planned.blocks, planned.blocks) if planned.stops_when_decided else FULL).alpha
    critical = float(range_quantile(1 - alpha, planned.levels, float(freedom))) / math.sqrt(2)
    return math.exp((critical + float(normal_quantile(POWER))) * error)
