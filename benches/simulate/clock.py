"""A clock as PostgreSQL's cache has one: how far its miss ratio is from its level once it was filled so often."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from plimsoll.analysis.statistics.room import TURNED
from plimsoll.analysis.statistics.stationary import MISS_RATIO
from simulate.rows import Row, Section

USAGE_MAX = 5
BUFFERS = 10_000
LEVEL_TURNS, LAST_TURN = 5.0, 9.0
Draw = Callable[[int], np.ndarray]


def draws(kind: str, data: int, random: np.random.Generator) -> Draw:
    """Blocks asked for: all alike, four fifths of them in a fifth of the data, or by Zipf's law with exponent 0.9."""
    if kind == "uniform":
        return lambda count: random.integers(0, data, count)
    if kind == "hot fifth":
        return lambda count: np.where(
            random.random(count) < 0.8, random.integers(0, data // 5, count), random.integers(0, data, count)
        )
    upto = np.cumsum(1 / np.arange(1, data + 1) ** 0.9)
    return lambda count: np.searchsorted(upto / upto[-1], random.random(count))


def misses(draw: Draw, buffers: int) -> np.ndarray:
    """Rows of (turns, miss ratio), one for as many blocks asked for as a tenth of the cache."""
    usage, holds, place = [0] * buffers, [-1] * buffers, {}
    hand, read, found = 0, 0, []
    while read < LAST_TURN * buffers:
        before, asked = read, buffers // 10
        for block in draw(asked).tolist():
            at = place.get(block)
            if at is not None:
                usage[at] = min(usage[at] + 1, USAGE_MAX)
                continue
            while usage[hand]:
                usage[hand] -= 1
                hand = (hand + 1) % buffers
            place.pop(holds[hand], None)
            holds[hand], usage[hand], place[block] = block, 1, hand
            hand, read = (hand + 1) % buffers, read + 1
        found.append((before / buffers, (read - before) / asked))
    return np.array(found)


def _case(kind: str, share: float, seed: int, runs: int) -> list[Row]:
    random, data = np.random.default_rng([seed, round(100 * share)]), round(BUFFERS / share)
    turns, ratio = np.concatenate([misses(draws(kind, data, random), BUFFERS) for _ in range(runs)]).T
    level = ratio[turns >= LEVEL_TURNS].mean()
    near = ratio[(turns >= TURNED) & (turns < TURNED + 0.5)].mean()
    case = f"{kind}, {share:.0%} of the data fit"
    return [Row(f"off its level, {TURNED:g} turns", case, abs(near / level - 1), MISS_RATIO.share, True, 0)]


def sections() -> list[Section]:
    """What this file can show."""
    kinds = ("uniform", "hot fifth", "Zipf")
    cases = [(kind, partial(_case, kind, share)) for kind in kinds for share in (0.1, 0.5)]
    return [Section("clock", tuple(cases), 20)]
