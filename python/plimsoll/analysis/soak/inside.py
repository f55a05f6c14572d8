"""Where throughput changes for good inside a round: the method of the rounds (steps.py), on parts of each round.

The fact that constrains it: a change inside a round moves two means of rounds at most, and of four that the steps
over rounds need on either side it may be days until there are as many. Inside a round there are hundreds of seconds;
but a soak has hundreds of rounds, so each pays for all (Bonferroni), and seconds agree with their neighbours far more
than rounds do. So a round is cut into few parts, which leaves of that agreement what the noise model knows of.

Acceptance: benches/verdicts.py --only "inside rounds".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from plimsoll.analysis.soak.document import FoundInside, Share
from plimsoll.analysis.soak.steps import steps
from plimsoll.analysis.statistics.intervals import CONFIDENCE

PARTS_MAX: Final = 60  # of a round
PARTS_MIN: Final = 8  # fewer have no room for a step
DONE_MIN: Final = 20  # transactions of a part, on average: of fewer their number is mostly chance
# Of a false step inside any round of a soak, by the model. Heavy tails, and neighbours that agree closely, make that up
# to fifty times as many: by simulation false alarms stay within 0.5 %, and with those between rounds within 1 %.
LEVEL: Final = 0.0001
SIZE_MIN: Final = 0.05  # a smaller change inside one round is no reason to look
RULE: Final = (
    f"inside rounds, transactions that were done in each of at most {PARTS_MAX} equal parts of a round, by the same "
    f"statistic and noise; by simulation chance names one in at most 0.5 % of soaks; a step is told from "
    f"{100 * SIZE_MIN:g} % on, and nothing is known inside rounds that are too short for {PARTS_MIN} parts of "
    f"{DONE_MIN} transactions each"
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


def changes(rounds: Mapping[int, tuple[float, np.ndarray]]) -> list[FoundInside]:
    """Changes for good inside rounds, by the rounds' numbers: how long after its begin, and by how much."""
    found: list[FoundInside] = []
    for number, (each_s, done) in rounds.items():
        logs = np.log(np.maximum(done, 0.5))  # a part in which nothing was done is no end of the world
        for step in steps(logs, CONFIDENCE, LEVEL / len(rounds)):
            size = _share(step.size, step.low, step.high)
            if abs(size["value"]) >= SIZE_MIN:
                found.append({"round": number, "after_s": step.place * each_s, "size": size, "chance": step.chance})
    return found


def _share(value: float, low: float, high: float) -> Share:
    return {"value": math.expm1(value), "low": math.expm1(low), "high": math.expm1(high)}
