"""Which fault is planted in which round of a soak, and how far into it: decided by a seed, before anything is planted.

The constraint: a fault that comes while a server starts or data are loaded is no fault of a round, and how long those
take is the machine's affair. So places are rounds and shares of a round, never seconds from the begin.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

FRONT, AGENT, BACKEND, SERVER = "front killed", "agent killed", "backend killed", "server crash"
LOAD, LEAK, WARNING = "growing load", "leak", "kernel warning"
PARTS: Final = (FRONT, AGENT, BACKEND)  # of which any may be killed
KILLS: Final = 10
FIRST: Final = 2  # round 1 is what all others are compared with
UNTIL: Final = 0.65  # of the rounds that are expected: starts of the server and rounds done again take time of the soak
WITHIN: Final = (0.1, 0.7)  # of a round, so that it is under way still when the fault has been planted


@dataclass(frozen=True)
class Planned:
    """One fault: in which round, and after which share of it."""

    what: str
    round: int
    share: float


def planned(rounds: int, seed: int, kills: int = KILLS) -> list[Planned]:
    """Faults of a soak of so many rounds, in their order; what goes on to the end first.

    A round has one kill, crash or warning at most, so that a round that is cut was cut by one. Each part is killed at
    least once where there are kills enough. Raises ValueError where the rounds are too few.
    """
    chance = random.Random(seed)
    what = [PARTS[number % len(PARTS)] if number < len(PARTS) else chance.choice(PARTS) for number in range(kills)]
    what += [SERVER, WARNING]
    open_to_it = range(FIRST, int(rounds * UNTIL) + 1)
    if len(open_to_it) < len(what):
        least = next(count for count in range(rounds, 1000) if int(count * UNTIL) - FIRST + 1 >= len(what))
        raise ValueError(f"{rounds} rounds are too few for {len(what)} faults; {least} are enough")
    chance.shuffle(what)
    places = sorted(chance.sample(open_to_it, len(what)))
    lasting = [Planned(one, FIRST, chance.uniform(*WITHIN)) for one in (LOAD, LEAK)]
    once = [Planned(one, place, chance.uniform(*WITHIN)) for one, place in zip(what, places, strict=True)]
    return sorted([*lasting, *once], key=lambda one: (one.round, one.what not in (LOAD, LEAK), one.share))


def share_taken(rounds: float, a_round: float) -> float:
    """The share of the machine that the growing load takes after so many rounds, where each is to lose `a_round`."""
    return 1.0 - (1.0 - a_round) ** max(0.0, rounds)
