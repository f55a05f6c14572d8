"""Windows of treatments that are up in groups which share one: false alarms, coverage and power through the reference.

Worlds are those of windows.py, a group a block; blocks differ from one another by far more than servers of one do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from plimsoll.analysis.windows.through import Through
from simulate import windows
from simulate.rows import Row, Section
from simulate.windows import BOUND, BOUND_NOISY, COVERED, KINDS, Noise

_CHUNK = 200


@dataclass(frozen=True)
class Shape:
    """What ran: how many levels each group has beside the reference, and replicates of all groups."""

    others: tuple[int, ...]
    replicates: int
    rounds: int
    duplicate: bool = False

    @property
    def levels(self) -> int:
        """All of them, with the reference."""
        return 1 + sum(self.others)

    @property
    def through(self) -> Through:
        """Level 0 is the reference."""
        return Through(0, self.levels, len(self.others))

    def members(self, group: int) -> list[int]:
        """Levels of a group."""
        begin = 1 + sum(self.others[:group])
        return [0, *range(begin, begin + self.others[group])]

    def __str__(self) -> str:
        twin = ", duplicate" if self.duplicate else ""
        groups = " + ".join(map(str, self.others))
        return f"1 with {groups}, {self.replicates} replicates, {self.rounds} rounds{twin}"


def rates(noise: Noise, shape: Shape, runs: int, seed: int, truth: np.ndarray | None = None) -> np.ndarray:
    """(runs, copies, blocks, levels, rounds) of rates, NaN of levels that were not up in a block."""
    count = len(shape.others)
    found = np.full((runs, 2, shape.replicates * count, shape.levels, shape.rounds), np.nan)
    for group in range(count):
        members = shape.members(group)
        one = windows.Shape(len(members), shape.replicates, shape.rounds, shape.duplicate)
        effects = None if truth is None else truth[members]
        placed = windows.rates(noise, one, runs, seed + 7919 * (group + 1), effects)
        for place, level in enumerate(members):
            found[:, :, group::count, level] = placed[:, :, :, place]
    return found


def _chunks(noise: Noise, shape: Shape, runs: int, seed: int, truth: np.ndarray | None = None) -> Iterator[np.ndarray]:
    for part in range(0, runs, _CHUNK):
        yield rates(noise, shape, min(_CHUNK, runs - part), seed + part, truth)


def _false_alarms(noise: Noise, shape: Shape, seed: int, runs: int) -> list[Row]:
    said = [windows.run(found, None, shape.through)[1] for found in _chunks(noise, shape, runs, seed)]
    bound = BOUND_NOISY if noise.kind == "one noisy" else BOUND
    share = float(np.concatenate(said).mean())
    return [Row("groups: any level called worse", f"{noise}: {shape}", share, bound, True, runs)]


def _coverage(noise: Noise, shape: Shape, apart: float, seed: int, runs: int) -> list[Row]:
    """Of the first two levels, of which one is the reference, and of the first and last but that, of other groups."""
    truth = -apart * np.arange(shape.levels)
    direct, across, last = [], [], shape.levels - 1
    for found in _chunks(noise, shape, runs, seed, truth):
        shown, _ = windows.run(found, None, shape.through)
        direct.append(np.abs(shown.mean[:, 0, 1] - apart) <= shown.half[:, 0, 1])
        across.append(np.abs(shown.mean[:, 1, last] - apart * (last - 1)) <= shown.half[:, 1, last])
    case = f"{noise}, apart {apart:.0%}: {shape}"
    named = (("with the reference", direct), ("across groups", across))
    return [
        Row(f"groups: an interval {which}", case, float(np.concatenate(held).mean()), COVERED, False, runs)
        for which, held in named
    ]


def _power(noise: Noise, shape: Shape, ratio: float, bound: float, seed: int, runs: int) -> list[Row]:
    """How often the last level, which is slower, is called worse than one of another group."""
    truth, told = np.zeros(shape.levels), []
    truth[-1] = -math.log(ratio)
    for found in _chunks(noise, shape, runs, seed, truth):
        told.append(windows.run(found, None, shape.through)[0].told[:, -1, 1])
    case = f"{ratio - 1:.0%} at {noise}: {shape}"
    return [Row("groups: told across groups", case, float(np.concatenate(told).mean()), bound, False, runs)]


SHAPES = (
    Shape((3, 2), 2, 40),
    Shape((2, 2, 1), 3, 20),
    Shape((2, 2, 1), 4, 20, duplicate=True),
    Shape((1, 1, 1, 1, 1), 4, 20),
    Shape((1, 1), 2, 40),
)


def _all_false_alarms(kind: str, start: float, window: float, seed: int, runs: int) -> list[Row]:
    return [row for shape in SHAPES for row in _false_alarms(Noise(kind, start, window), shape, seed, runs)]


def _all_coverage(start: float, window: float, seed: int, runs: int) -> list[Row]:
    noise = Noise("normal", start, window)
    return [row for shape in SHAPES[:3] for apart in (0.0, 0.1) for row in _coverage(noise, shape, apart, seed, runs)]


def sections() -> list[Section]:
    """What this file can show."""
    each = [(kind, *scatter) for kind in KINDS for scatter in windows.SCATTER]
    false = [
        (f"{kind} {start} {window}", partial(_all_false_alarms, kind, start, window)) for kind, start, window in each
    ]
    covered = [(f"{start} {window}", partial(_all_coverage, start, window)) for start, window in windows.SCATTER]
    power = [
        (str(ratio), partial(_power, Noise("normal", 0.01, 0.11), Shape((2, 2, 1), 6, 25), ratio, bound))
        for ratio, bound in ((1.05, 0.0), (1.2, 0.9))
    ]
    return [
        Section("groups", tuple(false), 2_000),
        Section("groups coverage", tuple(covered), 1_000),
        Section("groups power", tuple(power), 1_000),
    ]
