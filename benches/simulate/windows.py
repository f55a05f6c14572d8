"""Windows of servers that are served in turn: false alarms over all looks, coverage where it stopped, what is told.

Worlds: each arm has a start (its own factor in each block) and a noise of its windows; what goes on in time goes from
window to window in the random order in which they ran.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from plimsoll.analysis.windows import spending
from plimsoll.analysis.windows.budget import POWER, Arrangement, ratio_told
from plimsoll.analysis.windows.equals import noise_of_rates, start_of
from plimsoll.analysis.windows.judge import Start, compare
from plimsoll.analysis.windows.spending import Share
from plimsoll.analysis.windows.through import Through
from plimsoll.record.verdict import WindowsNoise
from simulate.rows import Row, Section

KINDS = ("normal", "heavy", "slow tail", "shared AR 0.9", "own AR 0.9", "stalls", "one noisy")
BOUND, BOUND_NOISY, COVERED = 0.01, 0.03, 0.93
DELTA = 0.05
WITHIN = 0.05  # of the power that is promised
_BLOCK_SD = 0.1
_CHUNK = 200
_NOISY = 3.0
_STALL, _STALLED_ON = 0.02, 0.6


@dataclass(frozen=True)
class Shape:
    """What ran: levels, blocks, rounds of each, and whether each block has a duplicate, of each level in turn."""

    levels: int
    blocks: int
    rounds: int
    duplicate: bool = False

    def __str__(self) -> str:
        twin = ", duplicate" if self.duplicate else ""
        return f"{self.levels} levels, {self.blocks} blocks, {self.rounds} rounds{twin}"


@dataclass(frozen=True)
class Noise:
    """Standard deviations: of a start's log, and of a window's rate as a share of it."""

    kind: str
    start: float
    window: float

    def __str__(self) -> str:
        return f"{self.kind}, start {self.start:.0%}, window {self.window:.0%}"


def rates(noise: Noise, shape: Shape, runs: int, seed: int, truth: np.ndarray | None = None) -> np.ndarray:
    """(runs, copies, blocks, levels, rounds) of rates; `truth` are the levels' effects on the log."""
    random = np.random.default_rng([seed, shape.levels, shape.blocks, shape.rounds, KINDS.index(noise.kind)])
    arms = shape.levels + shape.duplicate
    size = (runs, shape.blocks, arms, shape.rounds)
    window = np.maximum(_windows(noise.kind, random, size, noise.window), 0.0)
    starts = noise.start * random.standard_normal(size[:3]) + _BLOCK_SD * random.standard_normal((*size[:2], 1))
    if noise.kind == "one noisy":
        shape_of = (_NOISY * noise.window) ** -2  # of a gamma distribution: its mean stays 1
        window[:, :, 0] = random.gamma(shape_of, 1 / shape_of, window[:, :, 0].shape)
    placed = np.exp(starts)[..., None] * window
    found = np.full((runs, 2, shape.blocks, shape.levels, shape.rounds), np.nan)
    found[:, 0] = placed[:, :, : shape.levels]
    if shape.duplicate:
        blocks = np.arange(shape.blocks)
        found[:, 1, blocks, blocks % shape.levels] = placed[:, :, shape.levels]
    effect = np.zeros(shape.levels) if truth is None else truth
    return found * np.exp(effect)[:, None]


def _windows(kind: str, random: np.random.Generator, size: tuple[int, ...], sd: float) -> np.ndarray:
    """(runs, blocks, arms, rounds) about 1."""
    own = random.standard_normal(size)
    if kind == "heavy":
        return 1 + sd * np.clip(random.standard_t(3, size), -8, 8)
    if kind == "slow tail":
        return 1 / (1 + sd * np.exp(1.2 * own))
    if kind == "own AR 0.9":
        return 1 + sd * _carried(own, 0.9)
    if kind == "shared AR 0.9":
        return (1 + 0.3 * sd * own) * _in_order(np.exp(sd * _in_time(random, size, 0.9)), random, size)
    if kind == "stalls":
        stalled = np.zeros((*size[:2], size[2] * size[3]), bool)
        for place in range(stalled.shape[-1]):
            draw = random.random(size[:2])
            before = stalled[..., place - 1] if place else np.zeros(size[:2], bool)
            stalled[..., place] = draw < np.where(before, _STALLED_ON, _STALL)
        return (1 + sd * own) * ~_in_order(stalled, random, size)
    return 1 + sd * own


def _carried(noise: np.ndarray, rho: float) -> np.ndarray:
    """AR(1) along the last axis, of standard deviation 1."""
    found = noise.copy()
    for place in range(1, noise.shape[-1]):
        found[..., place] = rho * found[..., place - 1] + math.sqrt(1 - rho**2) * noise[..., place]
    return found


def _in_time(random: np.random.Generator, size: tuple[int, ...], rho: float) -> np.ndarray:
    return _carried(random.standard_normal((*size[:2], size[2] * size[3])), rho)


def _in_order(time: np.ndarray, random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """What went on in time, given to the arms: in each round in random order."""
    by_round = time.reshape(*size[:2], size[3], size[2])
    order = np.argsort(random.random(by_round.shape), -1)
    return np.swapaxes(np.take_along_axis(by_round, order, -1), -1, -2)


@dataclass(frozen=True)
class Shown:
    """What a verdict shows of all pairs, indexed [run, i, j]; `at` is the block after which it was made."""

    told: np.ndarray
    mean: np.ndarray
    half: np.ndarray
    at: np.ndarray


def _look(found: np.ndarray, block: int, share: Share, start: Start | None, through: Through | None) -> Shown:
    said, _ = compare(found, start, share, through)
    return Shown(said.beaten, said.shown.mean, said.half(), np.full(len(found), block))


def decided(said: Shown) -> np.ndarray:
    """[run]: every pair told apart or shown to be alike (looks.py has the same rule for a run)."""
    alike = np.abs(said.mean) + said.half <= math.log1p(DELTA)
    apart = said.told | np.swapaxes(said.told, -1, -2)
    return np.asarray((alike | apart | np.eye(said.mean.shape[-1], dtype=bool)).all((-1, -2)))


def run(found: np.ndarray, start: Start | None = None, through: Through | None = None) -> tuple[Shown, np.ndarray]:
    """What was shown where each run stopped, and [run]: whether any look would have called a level worse.

    In groups (`through`) a replicate takes the place of a block.
    """
    each = through.groups if through else 1
    planned = found.shape[2] // each
    ended, ever = None, np.zeros(len(found), bool)
    first = min(planned, spending.FIRST if start is None else planned)
    for block in range(first, planned + 1):
        share = spending.at_end(block, planned) if block == planned else spending.at_look(block, planned)
        said = _look(found[:, :, : block * each], block, share, start, through)
        ever |= said.told.any((-1, -2))
        if ended is None:
            ended, open_ = said, ~decided(said)
            continue
        for field in ("told", "mean", "half", "at"):
            getattr(ended, field)[open_] = getattr(said, field)[open_]
        open_ &= ~decided(said)
    assert ended is not None
    return ended, ever


def _chunks(noise: Noise, shape: Shape, runs: int, seed: int, truth: np.ndarray | None = None) -> Iterator[np.ndarray]:
    for part in range(0, runs, _CHUNK):
        yield rates(noise, shape, min(_CHUNK, runs - part), seed + part, truth)


def _false_alarms(noise: Noise, shape: Shape, seed: int, runs: int) -> list[Row]:
    ever = np.concatenate([run(found)[1] for found in _chunks(noise, shape, runs, seed)])
    bound = BOUND_NOISY if noise.kind == "one noisy" else BOUND
    return [Row("windows: any level called worse", f"{noise}: {shape}", float(ever.mean()), bound, True, runs)]


def _coverage(noise: Noise, shape: Shape, apart: float, seed: int, runs: int) -> list[Row]:
    truth = -apart * np.arange(shape.levels)
    held = []
    for found in _chunks(noise, shape, runs, seed, truth):
        shown, _ = run(found)
        held.append(np.abs(shown.mean[:, 0, 1] - apart) <= shown.half[:, 0, 1])
    case = f"{noise}, apart {apart:.0%}: {shape}"
    return [Row("windows: a pair's interval holds", case, float(np.concatenate(held).mean()), COVERED, False, runs)]


def _power(noise: Noise, shape: Shape, ratio: float, bound: float, seed: int, runs: int) -> list[Row]:
    truth = np.zeros(shape.levels)
    truth[-1] = -math.log(ratio)
    told, at = [], []
    for found in _chunks(noise, shape, runs, seed, truth):
        shown, _ = run(found)
        told.append(shown.told[:, -1, :].any(-1))
        at.append(shown.at)
    blocks = float(np.concatenate(at).mean())
    case = f"{ratio - 1:.0%} at {noise}: {shape}; ends after {blocks:.1f}"
    return [Row("windows: told", case, float(np.concatenate(told).mean()), bound, False, runs)]


def stored(noise: Noise, blocks: int, rounds: int, runs: int, seed: int) -> Iterator[Start]:
    """What A/As of the same machine have found of starts: one treatment and its duplicate in so many blocks."""
    for found in rates(noise, Shape(1, blocks, rounds, duplicate=True), runs, seed):
        kept = noise_of_rates(found, 1.0)
        assert kept is not None
        start = start_of({"ratio_spread": None, "windows": kept})
        assert start is not None
        yield start


def _stored(noise: Noise, shape: Shape, blocks: int, rounds: int, seed: int, runs: int) -> list[Row]:
    """One block, judged with what an A/A of so many blocks and rounds has kept of the same machine."""
    wrong, held = [], []
    known = stored(noise, blocks, rounds, runs, seed + 1)
    for found in _chunks(noise, shape, runs, seed):
        for one, start in zip(found, known, strict=False):
            said, _ = compare(one, start)
            wrong.append(bool(said.beaten.any()))
            held.append(abs(said.shown.mean[0, 1]) <= said.half()[0, 1])
    case = f"{noise}: {shape}, stored of {blocks} blocks of {rounds} rounds"
    return [
        Row("windows: one block, called worse", case, float(np.mean(wrong)), BOUND, True, runs),
        Row("windows: one block, interval", case, float(np.mean(held)), COVERED, False, runs),
    ]


def planned(noise: Noise, shape: Shape, runs: int, seed: int) -> tuple[float, np.ndarray]:
    """The ratio that a plan promises by an A/A of ten blocks of 30 rounds, and [run]: whether such a one was told."""
    known = Start(math.hypot(noise.start, noise.window / math.sqrt(30)), 10.0, noise.window / math.sqrt(30))
    kept: WindowsNoise = {
        "window_sd_log": noise.window,
        "window_seconds": 1.0,
        "correlation": 0.0,
        "trial_sd_log": known.trial_sd_log,
        "windows_sd_log": known.windows_sd_log,
        "start_sd_log": noise.start,
        "start_freedom": known.freedom,
    }
    arms = shape.levels + shape.duplicate
    ratio = ratio_told(kept, Arrangement(shape.levels, arms, shape.blocks, shape.rounds, 1.0, stops_when_decided=False))
    assert ratio is not None
    truth = np.zeros(shape.levels)
    truth[-1] = -math.log(ratio)
    found = [compare(one, known)[0].beaten[:, -1, 0] for one in _chunks(noise, shape, runs, seed, truth)]
    return ratio, np.concatenate(found)


def _planned(noise: Noise, shape: Shape, seed: int, runs: int) -> list[Row]:
    ratio, told = planned(noise, shape, runs, seed)
    case, share = f"{ratio - 1:.1%} at {noise}: {shape}", float(told.mean())
    return [
        Row("windows: a promised pair is told", case, share, POWER - WITHIN, False, runs),
        Row("windows: and not much more often", case, share, POWER + WITHIN, True, runs),
    ]


SHAPES = (
    Shape(2, 2, 20),
    Shape(2, 3, 40, duplicate=True),
    Shape(2, 6, 20),
    Shape(3, 3, 120),
    Shape(4, 2, 40),
    Shape(4, 4, 20),
    Shape(6, 3, 40, duplicate=True),
    Shape(8, 2, 20),
    Shape(8, 6, 20),
)
SCATTER = ((0.0, 0.15), (0.01, 0.15), (0.02, 0.5), (0.05, 0.05))


def _all_false_alarms(kind: str, start: float, window: float, seed: int, runs: int) -> list[Row]:
    return [row for shape in SHAPES for row in _false_alarms(Noise(kind, start, window), shape, seed, runs)]


def _all_coverage(kind: str, start: float, window: float, seed: int, runs: int) -> list[Row]:
    shapes = (Shape(2, 3, 40, duplicate=True), Shape(2, 6, 20), Shape(4, 3, 30), Shape(8, 2, 40))
    noise = Noise(kind, start, window)
    return [row for shape in shapes for apart in (0.0, 0.03, 0.3) for row in _coverage(noise, shape, apart, seed, runs)]


def _all_power(ratio: float, start: float, seed: int, runs: int) -> list[Row]:
    """Five minutes of windows of a second, of two treatments, in more and shorter blocks and with a duplicate.

    A small difference has no bound: how often it is told is printed, to plan by.
    """
    shapes = [Shape(2, 3, 50), Shape(2, 6, 25), Shape(2, 10, 15)]
    shapes += [Shape(2, blocks, 100 // blocks, duplicate=True) for blocks in (3, 6, 10)]
    noise, rows = Noise("normal", start, 0.11), []
    for shape in shapes:
        bound = 0.9 if ratio >= 1.5 else 0.3 if ratio >= 1.05 and shape.blocks >= 6 else 0.0
        rows += _power(noise, shape, ratio, bound, seed, runs)
    return rows


def sections() -> list[Section]:
    """What this file can show."""
    each = [(kind, *scatter) for kind in KINDS for scatter in SCATTER]
    false = [
        (f"{kind} {start} {window}", partial(_all_false_alarms, kind, start, window)) for kind, start, window in each
    ]
    covered = [
        (f"{kind} {start} {window}", partial(_all_coverage, kind, start, window)) for kind, start, window in each
    ]
    power = [
        (f"{ratio} {start}", partial(_all_power, ratio, start)) for ratio in (1.02, 1.05, 1.5) for start in (0.0, 0.01)
    ]
    promised = [
        (f"{shape} {start}", partial(_planned, Noise("normal", start, 0.12), shape))
        for start in (0.01, 0.03)
        for levels in range(2, 9)
        for shape in (Shape(levels, 3, 20, duplicate=True), Shape(levels, 8, 20, duplicate=levels % 2 == 1))
    ]
    one_block = [
        (f"stored {blocks} {start} {shape}", partial(_stored, Noise("normal", start, 0.15), shape, blocks, rounds))
        for shape in (Shape(2, 1, 40), Shape(4, 1, 40), Shape(4, 1, 120))
        for blocks, rounds in ((4, 20), (10, 30))
        for start in (0.0, 0.02, 0.05)
    ]
    return [
        Section("windows", tuple(false), 2_000),
        Section("windows coverage", tuple(covered), 1_000),
        Section("windows power", tuple(power), 1_000),
        Section("windows planned", tuple(promised), 1_000),
        Section("windows stored", tuple(one_block), 4_000),
    ]
