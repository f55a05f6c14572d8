"""A plan whose treatments are up in groups: each group's trials are a block, and all groups once are a replicate. Pure.

Only what was up together is compared, so a block holds one group. The reference, which is in every group, runs as often
in a replicate as there are groups.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.experiment.design import Plan, PlannedTrial, blocks_of
from plimsoll.experiment.groups import Groups


def in_groups(plan: Plan, groups: Groups) -> Plan:
    """The same question, its blocks replaced by replicates: in each every group is a block, in random order.

    As with blocks (design.py): the second half of the replicates has the orders of the first half backwards, and in
    each block the duplicate is of one of its treatments in turn.
    """
    draw, design = random.Random(f"{plan.seed} groups"), plan.experiment.design
    by_id = {treatment.id: treatment for treatment in plan.treatments}
    first, half = draw.randrange(len(plan.treatments)), (design.blocks + 1) // 2
    trials: list[PlannedTrial] = []
    of_replicates: list[list[int]] = []
    orders: dict[tuple[int, int], list[int]] = {}  # of the servers of a group in a replicate
    for replicate in range(1, design.blocks + 1):
        again = replicate - half if replicate > half else None
        every = range(len(groups.members))
        of_replicates.append(_order(draw, len(every), None if again is None else of_replicates[again - 1]))
        for place in of_replicates[-1]:
            members = groups.members[place]
            arms = [(name, False) for name in members]
            if design.duplicate:
                arms.append((members[(first + replicate) % len(members)], True))
            order = _order(draw, len(arms), None if again is None else orders[again, place])
            orders[replicate, place] = order
            block = trials[-1].block + 1 if trials else 1
            for position, arm in enumerate(order, start=1):
                name, duplicate = arms[arm]
                trials.append(PlannedTrial(len(trials) + 1, block, position, by_id[name], duplicate, place + 1))
    return replace(plan, trials=trials, groups=groups)


def _order(draw: random.Random, count: int, backwards: Sequence[int] | None) -> list[int]:
    return draw.sample(range(count), count) if backwards is None else list(backwards[::-1])


def replicates_of(plan: Plan) -> list[list[list[PlannedTrial]]]:
    """The blocks of each replicate; without groups each is one by itself."""
    blocks = blocks_of(plan.trials)
    size = len(plan.groups.members) if plan.groups else 1
    return [list(blocks[place : place + size]) for place in range(0, len(blocks), size)]
