"""From an experiment to its trials: treatments, blocks, and an order that a seed decides.

Trials of one block run close together in random order, because a shared machine drifts and only what ran side by side
can be compared (docs/decisions/0004).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from plimsoll.experiment import size
from plimsoll.experiment.factors import AnyFactor, NamedLevel
from plimsoll.experiment.groups import Groups
from plimsoll.experiment.model import Experiment


@dataclass(frozen=True)
class Treatment:
    """One level of every factor. `levels` holds the values as the file has them, by the factor's path or name.

    `without`: the factors that vary nothing here, since nothing lies on the places that they are of. Their first level
    stands in `levels`, and there is no treatment of another.
    """

    id: str
    levels: dict[str, Any]
    settings: Experiment
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """For people: the last part of each path that varies, or its factor's name, with its level."""
        varied = [factor.key for factor in self.settings.factors if len(factor.levels) > 1]
        shown = [key for key in varied if key not in self.without]
        parts = [f"{key.rsplit('.', 1)[-1]} {show_level(self.levels[key])}" for key in shown]
        return ", ".join(parts) or "as given"


@dataclass(frozen=True)
class PlannedTrial:
    """One execution of one treatment; `number` and `position` count from 1."""

    number: int
    block: int
    position: int
    treatment: Treatment
    duplicate: bool
    group: int | None = None  # of the treatments that are up at once, from 1, where that is not all of them


@dataclass(frozen=True)
class Plan:
    """Everything that is going to run, in order. `groups`: where the servers of all treatments are not up at once."""

    experiment: Experiment
    seed: int
    treatments: list[Treatment]
    trials: list[PlannedTrial]
    groups: Groups | None = None


def show_level(level: Any) -> str:
    """A level for people."""
    if isinstance(level, NamedLevel):
        return level.label
    if isinstance(level, bool):
        return "on" if level else "off"
    if isinstance(level, list):
        return " + ".join(one["path"] if isinstance(one, dict) and "path" in one else show_level(one) for one in level)
    if isinstance(level, dict):
        return ", ".join(f"{key} {value}" for key, value in level.items())
    return str(level)


def combinations(experiment: Experiment) -> list[dict[str, Any]]:
    """The levels of each treatment, by factor, in the order of the file."""
    factors = experiment.factors
    if experiment.design.kind != "one factor at a time":
        rows = itertools.product(*(factor.levels for factor in factors))
        return [dict(zip((factor.key for factor in factors), row, strict=True)) for row in rows]
    base = {factor.key: factor.levels[0] for factor in factors}
    return [base] + [{**base, factor.key: level} for factor in factors for level in factor.levels[1:]]


def plan_trials(experiment: Experiment, treatments: list[Treatment], seed: int) -> Plan:
    """Blocks of all treatments in random order, decided by `seed`; the same seed gives the same plan.

    The second half of the blocks has the orders of the first half backwards, so that a drift strikes all alike; not the
    next block, because what lies close in time is alike. The duplicate is of each treatment in turn: that of a quiet
    one alone would say too little of how equals differ.
    """
    draw = random.Random(seed)
    trials: list[PlannedTrial] = []
    first = draw.randrange(len(treatments))
    orders: list[list[int]] = []
    half = (experiment.design.blocks + 1) // 2
    for block in range(1, experiment.design.blocks + 1):
        arms = [(treatment, False) for treatment in treatments]
        if experiment.design.duplicate:
            arms.append((treatments[(first + block) % len(treatments)], True))
        orders.append(orders[block - half - 1][::-1] if block > half else _order(arms, draw))
        for position, place in enumerate(orders[-1], start=1):
            treatment, duplicate = arms[place]
            trials.append(PlannedTrial(len(trials) + 1, block, position, treatment, duplicate))
    return Plan(experiment, seed, treatments, trials)


def _order(arms: list[tuple[Treatment, bool]], draw: random.Random) -> list[int]:
    """Of a block's trials: at random; of named kernels those of one boot together, the boots at random, too.

    A duplicate has a boot of its own: how equals differ from boot to boot is a part of how they differ.
    """
    if all(treatment.settings.environment.named_kernel is None for treatment, _ in arms):
        return draw.sample(range(len(arms)), len(arms))
    boots: dict[tuple[str, bool], list[int]] = {}
    for place, (treatment, duplicate) in enumerate(arms):
        boots.setdefault((treatment.settings.environment.kernel, duplicate), []).append(place)
    mixed = draw.sample(list(boots.values()), len(boots))
    return [place for boot in mixed for place in draw.sample(boot, len(boot))]


def boots_of(trials: Iterable[PlannedTrial]) -> list[list[PlannedTrial]]:
    """The trials of each boot of a named kernel, in their order: one in each block for each kernel, and one for the
    duplicate."""
    return [list(found) for _, found in itertools.groupby(trials, key=_boot)]


def _boot(trial: PlannedTrial) -> tuple[int, str, bool]:
    return trial.block, trial.treatment.settings.environment.kernel, trial.duplicate


def blocks_of(trials: Iterable[PlannedTrial]) -> list[list[PlannedTrial]]:
    """The trials of each block, in their order."""
    return [list(found) for _, found in itertools.groupby(trials, key=lambda trial: trial.block)]


def turns(seed: int, block: int, round_: int, servers: int) -> list[int]:
    """The order in which the servers of a block, numbered from 0, have their windows in a round."""
    return random.Random(f"{seed} {block} {round_}").sample(range(servers), servers)


def level_value(level: Any, memory: int) -> float | int | str | None:
    """A level as a number where it is one (sizes in bytes), for axes; else its text."""
    if size.is_size(level):
        return size.parse(level, memory)
    if isinstance(level, bool):
        return show_level(level)
    return level if isinstance(level, int | float) else show_level(level)


def level_unit(factor: AnyFactor) -> str | None:
    """ "bytes" where every level is a size, else None."""
    return (
        "bytes"
        if all(size.is_size(level) or level == 0 for level in factor.levels)
        and any(size.is_size(level) for level in factor.levels)
        else None
    )
