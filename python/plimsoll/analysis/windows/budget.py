"""What difference a plan of windows can tell, by the noise that an A/A of this machine found."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.analysis.windows.judge import whole
from plimsoll.analysis.windows.power import Test, difference_told
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

    `noise` as a stored A/A has it (equals.py): a window's variance goes with the time that it counts. What that A/A
    says of trials counts in the run, too (judge.py); of an earlier version, which did not keep it, it is left out.
    """
    of_window, of_start = noise["window_sd_log"], noise["start_sd_log"]
    freedom = planned.arms * planned.blocks - planned.groups * planned.blocks - (planned.levels - 1)
    if of_window is None or of_start is None or planned.levels < 2 or planned.blocks < FIRST or freedom < 1:
        return None
    window = float(of_window) ** 2 * float(noise["window_seconds"]) / planned.seconds / planned.rounds
    share = at_end(planned.blocks, planned.blocks) if planned.stops_when_decided else FULL
    without_twins = planned.levels + planned.groups - 1
    # a duplicate halves the variance of its level in its block, each level in turn
    twins = 1 - (planned.arms - without_twins) / (2 * without_twins)
    comparisons = 2 if planned.groups > 1 else 1
    each = comparisons * 2 / planned.blocks

    def critical(degrees: float) -> float:
        known = float(whole(np.asarray(degrees)))
        return float(range_quantile(1 - share.alpha, planned.levels, known)) / math.sqrt(2)

    rho = max(0.0, float(noise.get("correlation") or 0.0))
    of_windows = critical(planned.blocks * (planned.rounds - 1) * (1 - rho) / (1 + rho)) ** 2
    least = of_windows * each * twins * window
    trial, explained = noise.get("trial_sd_log"), noise.get("windows_sd_log")
    if trial is not None and explained is not None and noise["start_freedom"]:
        beside = max(each * (twins * window - float(explained) ** 2), 0.0)
        of_trials = critical(float(noise["start_freedom"])) ** 2 * each * float(trial) ** 2
        least = max(least, of_windows * beside + of_trials)
    error = math.sqrt(each * twins * (window + float(of_start) ** 2))
    test = Test(planned.levels, planned.blocks, freedom, error, critical(freedom), math.sqrt(least), planned.groups)
    return math.exp(difference_told(test, POWER)) if error > 0 else None
