"""Where throughput changes for good inside a round: the method of the rounds (steps.py), on parts of each round.

The fact that constrains it: a change inside a round moves two means of rounds at most, and of four that the steps
over rounds need on either side it may be days until there are as many. Inside a round there are hundreds of seconds;
but a soak has hundreds of rounds, so each pays for all (Bonferroni), and seconds agree with their neighbours far more
than rounds do. So a round is cut into few parts, which leaves of that agreement what the noise model knows of.

Where the machine's own speed (speed.py) moves parts beside their round's mean, each change is told at equal speed,
too: by how much parts of all rounds go with it. A change of which that leaves less than what is told at all is the
machine's; it stays in the list, and raises no alarm.

Acceptance: benches/verdicts.py --only "inside rounds".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from plimsoll.analysis.soak.document import FoundInside, Share
from plimsoll.analysis.soak.steps import sizes, steps
from plimsoll.analysis.statistics.intervals import CONFIDENCE

PARTS_MAX: Final = 60  # of a round
PARTS_MIN: Final = 8  # fewer have no room for a step
DONE_MIN: Final = 20  # transactions of a part, on average: of fewer their number is mostly chance
# Of a false step inside any round of a soak, by the model. Heavy tails, and neighbours that agree closely, make that up
# to fifty times as many: by simulation false alarms stay within 0.5 %, and with those between rounds within 1 %.
LEVEL: Final = 0.0001
ROUNDS_MIN: Final = 4  # that tell how parts go by the machine's speed
SIZE_MIN: Final = 0.05  # a smaller change inside one round is no reason to look
RULE: Final = (
    f"inside rounds, transactions that were done in each of at most {PARTS_MAX} equal parts of a round, by the same "
    f"statistic and noise; by simulation chance names one in at most 0.5 % of soaks; a step is told from "
    f"{100 * SIZE_MIN:g} % on, and nothing is known inside rounds that are too short for {PARTS_MIN} parts of "
    f"{DONE_MIN} transactions each; one that is smaller than that at equal speed of the machine is the machine's"
)


def parts_of(table: np.ndarray | None, seconds: float, step_s: int = 1) -> tuple[float, np.ndarray] | None:
    """(seconds a part, transactions done in each), of the round's histograms by second or by blocks of `step_s`.

    None where the round is too short, or too little was done. The last part is left out where it is cut.
    """
    blocks = int(seconds // step_s)
    if table is None or blocks < PARTS_MIN:
        return None
    done = np.bincount((table["second"] // step_s).astype(int), table["count"].astype(float), blocks)[:blocks]
    parts = min(PARTS_MAX, blocks, int(done.sum() // DONE_MIN))
    if parts < PARTS_MIN:
        return None
    each = -(-blocks // parts)
    count = blocks // each
    return float(each * step_s), done[: count * each].reshape(count, each).sum(1)


def changes(
    rounds: Mapping[int, tuple[float, np.ndarray]], speeds: Mapping[int, np.ndarray] | None = None
) -> list[FoundInside]:
    """Changes for good inside rounds, by the rounds' numbers: how long after its begin, and by how much. `speeds`: of
    the machine in each part (logarithms, [part, piece]), of the rounds in which they are known."""
    # A part in which nothing was done is no end of the world.
    logs = {number: np.log(np.maximum(done, 0.5)) for number, (_, done) in rounds.items()}
    by_machine = _by_machine(logs, speeds or {})
    found: list[FoundInside] = []
    for number, (each_s, _) in rounds.items():
        of_round = steps(logs[number], CONFIDENCE, LEVEL / len(rounds))
        equal: list[Share | None] = [None] * len(of_round)
        if of_round and number in by_machine:
            places = [step.place for step in of_round]
            equal = [_share(*one) for one in sizes(logs[number] - by_machine[number], places, CONFIDENCE)]
        for step, left in zip(of_round, equal, strict=True):
            size = _share(step.size, step.low, step.high)
            if abs(size["value"]) >= SIZE_MIN:
                found.append(
                    {
                        "round": number,
                        "after_s": step.place * each_s,
                        "size": size,
                        "chance": step.chance,
                        "at_equal_speed": left,
                        "by_machine": left is not None and abs(left["value"]) < SIZE_MIN,
                    }
                )
    return found


def _by_machine(logs: Mapping[int, np.ndarray], speeds: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    """What the machine's speed did to each part beside its round's mean, by one line through the parts of all rounds;
    {} where it explains too little: parts agree with their neighbours, so each round counts as one figure (BIC)."""
    known = {number: speeds[number] for number in logs if number in speeds}
    if len(known) < ROUNDS_MIN:
        return {}
    apart = {number: one - one.mean(0) for number, one in known.items()}
    moved = np.concatenate([logs[number] - logs[number].mean() for number in known])
    by = np.concatenate(list(apart.values()))
    slopes = np.linalg.lstsq(by, moved, rcond=None)[0]
    before, after = float((moved**2).sum()), float(((moved - by @ slopes) ** 2).sum())
    if before <= 0 or len(known) * math.log(before / max(after, 1e-300)) <= len(slopes) * math.log(len(known)):
        return {}
    return {number: one @ slopes for number, one in apart.items()}


def _share(value: float, low: float, high: float) -> Share:
    return {"value": math.expm1(value), "low": math.expm1(low), "high": math.expm1(high)}
