"""The comparison of levels: false alarms among equals, coverage of what is shown, and what is told."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from plimsoll.analysis.comparing.compare import beaten, pairs
from plimsoll.analysis.comparing.noise import cells, noise_of
from plimsoll.analysis.comparing.unbounded import compare
from simulate.rows import Row, Section
from simulate.trials import Shape, copies

KINDS = {"normal": 0.01, "heavy": 0.01, "AR 0.5": 0.01, "AR 0.9": 0.01, "drift": 0.02, "one noisy": 0.03}
LEVELS = (2, 3, 4, 6, 8)
BLOCKS = (3, 4, 5, 7, 10)
COVERED = 0.93


def told(logs: np.ndarray) -> np.ndarray:
    """[run, i, j]: j is said to beat i."""
    return beaten(pairs(cells(logs)), noise_of(logs))


def _false_alarms(kind: str, duplicate: bool, seed: int, runs: int) -> list[Row]:
    found = []
    for levels in LEVELS:
        for blocks in BLOCKS:
            shape = Shape(blocks, levels, duplicate)
            share = float(told(copies(kind, shape, runs, seed)).any((-1, -2)).mean())
            found.append(Row("any level called worse", f"{kind}: {shape}", share, KINDS[kind], True, runs))
    return found


def _coverage(kind: str, seed: int, runs: int) -> list[Row]:
    found = []
    for levels in (2, 4, 8):
        for blocks in (3, 5, 10):
            shape = Shape(blocks, levels)
            for name, truth in (("equal", np.zeros(levels)), ("apart", -np.linspace(0, 1, levels))):
                pair, best = held(copies(kind, shape, runs, seed, truth=truth), truth)
                case = f"{kind}, {name}: {shape}"
                found.append(Row("a pair's interval holds", case, pair, COVERED, False, runs))
                found.append(Row("times slower holds", case, best, COVERED, False, runs))
    return found


def held(logs: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """How often the interval of the first two levels, and that of a level with the observed best, hold the truth."""
    both, levels = pairs(cells(logs)), logs.shape[-1]
    pair = np.abs(both.mean[:, 0, 1] - (truth[0] - truth[1])) <= both.half()[:, 0, 1]
    held, judged = 0, 0
    behind = truth.max() - truth
    centre = cells(logs).mean(-2)
    for run in range(min(len(logs), 400)):
        found, best = compare(logs[run], np.zeros(logs.shape[-2:], bool)), int(centre[run].argmax())
        index = (best + 1 + run % (levels - 1)) % levels
        shown = found.with_best(best, index)
        held += shown["low"] <= math.exp(behind[index]) <= shown["high"]
        judged += 1
    return float(pair.mean()), held / judged


def _power(case: str, ratio: float, sd: float, shape: Shape, bound: float, seed: int, runs: int) -> list[Row]:
    truth = np.zeros(shape.levels)
    truth[-1] = -math.log(ratio)
    share = float(told(copies("normal", shape, runs, seed, sd, truth))[:, -1, :].any(-1).mean())
    return [Row("told", f"{case}: {shape}", share, bound, False, runs)]


def sections() -> list[Section]:
    """What this file can show."""
    false = [
        (f"{kind}, duplicate {twin}", partial(_false_alarms, kind, twin)) for kind in KINDS for twin in (True, False)
    ]
    covered = [(kind, partial(_coverage, kind)) for kind in KINDS]
    power = []
    for levels in (2, 3, 4, 6, 8):
        for case, ratio, sd, blocks, bound in (("2 x at 20 %", 2.0, 0.2, 3, 0.5), ("10 % at 2 %", 1.1, 0.02, 3, 0.8)):
            power.append((case, partial(_power, case, ratio, sd, Shape(blocks, levels), bound)))
    for twin in (True, False):
        power.append(("2 % at 2 %", partial(_power, "2 % at 2 %", 1.02, 0.02, Shape(20, 2, twin), 0.6)))
    return [
        Section("levels", tuple(false), 20_000),
        Section("coverage", tuple(covered), 20_000),
        Section("power", tuple(power), 20_000),
    ]
