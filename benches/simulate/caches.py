"""Caches that fill, and noise: which trials are let into a verdict, by the code that decides it in a run.

A trial warms up until a look each second says that it is stationary, at most so long, and is measured; its blocks hit
and read come from a stated curve with AR(1) noise, or from a clock that PostgreSQL's cache follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from plimsoll.analysis.admission_stationary import Sample, standing
from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.statistics.room import Room
from simulate.rows import Row, Section

PER_SECOND = 10_000  # blocks asked for
WARMUP_MIN, WARMUP_MAX, MEASURED = 10, 60, 30
Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """Miss ratio over the seconds since the server's start, its noise, and the cache's room in blocks."""

    curve: Curve
    sd: float
    rho: float
    room: Room | None

    def samples(self, random: np.random.Generator, seconds: int) -> list[Sample]:
        """Cumulative samples, one a second."""
        steps, noise = random.standard_normal(seconds + 50), np.zeros(seconds + 50)
        for second in range(1, seconds + 50):
            noise[second] = self.rho * noise[second - 1] + np.sqrt(1 - self.rho**2) * steps[second]
        ratio = np.clip(self.curve(np.arange(seconds)) + self.sd * noise[50:], 0, 1)
        read = np.concatenate([[0.0], np.cumsum(ratio * PER_SECOND)])
        return [
            {"t_ns": s * 10**9, "done": s * 1000, "blks_hit": s * PER_SECOND - read[s], "blks_read": read[s]}
            for s in range(seconds + 1)
        ]


def is_admitted(world: World, random: np.random.Generator) -> bool:
    """One trial: warmed up, measured, and judged."""
    samples, end, reached = world.samples(random, WARMUP_MAX + MEASURED), WARMUP_MAX, False
    for now in range(WARMUP_MIN, WARMUP_MAX + 1):
        if stationary.judge(samples[: now + 1], WARMUP_MIN, room=world.room).reached:
            end, reached = now, True
            break
    told = {"reached": reached, "seconds": end}
    measured = samples[end + 1 : end + 1 + MEASURED]
    return not standing(told, samples[: end + 1], measured, world.room).reasons


def level(value: float) -> Curve:
    """At rest."""
    return lambda times: np.full(len(times), value)


def filling(value: float, distance: float, tau: float) -> Curve:
    """On its way down to `value`."""
    return lambda times: value + distance * np.exp(-times / tau)


def _noisy(value: float, sd: float, rho: float, seed: int, runs: int) -> list[Row]:
    # Filled often enough before the warm-up began; with a small cache this takes seconds.
    world = World(level(value), sd, rho, Room(value * PER_SECOND, -10 * value * PER_SECOND))
    random = np.random.default_rng([seed, round(1000 * sd), round(100 * rho)])
    share = sum(is_admitted(world, random) for _ in range(runs)) / runs
    return [Row("at rest, admitted", f"level {value:g}, sd {sd:g}, rho {rho:g}", share, 0.90, False, runs)]


def _filling(value: float, distance: float, tau: float, sd: float, rho: float, seed: int, runs: int) -> list[Row]:
    curve = filling(value, distance, tau)
    blocks = float(curve(np.arange(5 * tau)).sum()) * PER_SECOND
    world = World(curve, sd, rho, Room(blocks, 0.0))
    random = np.random.default_rng([seed, round(tau), round(1000 * sd)])
    share = sum(is_admitted(world, random) for _ in range(runs)) / runs
    case = f"{value:g} + {distance:g} exp(-t / {tau:g} s), sd {sd:g}, rho {rho:g}"
    return [Row("still filling, admitted", case, share, 0.0, True, runs)]


REST = ((0.005, 0.0), (0.01, 0.5), (0.02, 0.0), (0.02, 0.5), (0.02, 0.9), (0.04, 0.9))
FILLING = (
    (0.1, 0.1, 300.0, 0.02, 0.9),
    (0.1, 0.1, 300.0, 0.01, 0.5),
    (0.1, 0.1, 300.0, 0.002, 0.0),
    (0.1, 0.3, 60.0, 0.02, 0.5),
    (0.02, 0.05, 1000.0, 0.005, 0.5),
)


def sections() -> list[Section]:
    """What this file can show."""
    cases = [(f"rest {one}", partial(_noisy, 0.1, *one)) for one in REST]
    cases += [(f"filling {one}", partial(_filling, *one)) for one in FILLING]
    return [Section("stationary", tuple(cases), 300)]
