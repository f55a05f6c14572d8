"""The rates of a run's windows as an array: what levels are compared by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plimsoll.analysis.trial.standstill import RATE
from plimsoll.analysis.trial.windows import Windows, windows
from plimsoll.record import Run
from plimsoll.record.verdict import TrialEntry, Used

ByTrial = Mapping[int, Windows]


def by_trial(run: Run) -> dict[int, Windows]:
    """The windows of each trial that has any, by its number."""
    found = {trial.number: windows(trial) for trial in run.trials}
    return {number: one for number, one in found.items() if one is not None}


def by_round(one: Windows) -> dict[int, float]:
    """The rate of each round; of a trial without any transaction as low as its `rate` says, and never 0 throughout."""
    rates = one.rates if one.done.any() else np.full(len(one.round), one.rate)
    return dict(zip(one.round.tolist(), rates.tolist(), strict=True))


def common_rounds(trials: Iterable[Windows]) -> list[int]:
    """The rounds that all of these trials have: what lacks one was cut short, and is paired with nothing."""
    found = [set(one.round.tolist()) for one in trials]
    return sorted(set.intersection(*found)) if found else []


def array(blocks: Sequence[int], treatments: Sequence[str], used: Used, twins: Used, known: ByTrial) -> np.ndarray:
    """(copies, blocks, treatments, rounds) as judge.py takes it; NaN where there is no window.

    A trial that stood still has none: how it scatters is not that of windows.
    """
    sides: tuple[Mapping[tuple[int, str], TrialEntry], ...] = (used, twins)
    of_block = [_of_block(block, sides, known) for block in blocks]
    rounds = max((len(one) for one in of_block), default=0)
    found = np.full((2, len(blocks), len(treatments), rounds), np.nan)
    for copy, side in enumerate(sides):
        for row, block in enumerate(blocks):
            for column, treatment in enumerate(treatments):
                entry = side.get((block, treatment))
                if entry is not None and entry["number"] in known and _most(entry) is None:
                    rates = by_round(known[entry["number"]])
                    found[copy, row, column, : len(of_block[row])] = [rates[place] for place in of_block[row]]
    return found


def with_standstills(
    found: np.ndarray, blocks: Sequence[int], treatments: Sequence[str], used: Used
) -> tuple[np.ndarray, np.ndarray]:
    """The same with those that stood still at the most that they can have done, and [block, treatment]: these.

    Such a one has no duplicate. Where nobody in a block did anything it has one round.
    """
    beyond = np.zeros((len(blocks), len(treatments)), bool)
    found = found if found.shape[-1] else np.full((*found.shape[:-1], 1), np.nan)
    rounds = np.isfinite(found).any((0, 2)).sum(-1)
    for row, block in enumerate(blocks):
        for column, treatment in enumerate(treatments):
            entry = used.get((block, treatment))
            most = None if entry is None else _most(entry)
            if most is not None:
                found[0, row, column, : max(1, rounds[row])], found[1, row, column] = most, np.nan
                beyond[row, column] = True
    return found, beyond


def _most(entry: TrialEntry) -> float | None:
    """The most that the rate of a trial which stood still can be; None of any other (trial/standstill.py)."""
    return (entry["unbounded"] or {}).get(RATE)


def _of_block(block: int, sides: Iterable[Used], known: ByTrial) -> list[int]:
    """The rounds of a block that all trials that enter have, those left out that stood still."""
    entries = [entry for side in sides for (mine, _), entry in side.items() if mine == block and _most(entry) is None]
    return common_rounds(known[entry["number"]] for entry in entries if entry["number"] in known)
