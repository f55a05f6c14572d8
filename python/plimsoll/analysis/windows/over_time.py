"""How the interval of each pair closes as a run goes on: by its windows alone, and at each look with its starts."""

from __future__ import annotations

import math

import numpy as np

from plimsoll.analysis.comparing.noise import cells
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.windows.document import ClosingPlaces, ClosingPoint
from plimsoll.analysis.windows.judge import Start, compare, logs_of, noise
from plimsoll.analysis.windows.spending import FIRST, FULL, at_look
from plimsoll.analysis.windows.through import Through

_STEPS = 12  # of each block
_ROUNDS_MIN = 5  # fewer tell no variance worth a line


def closing(
    rates: np.ndarray, start: Start | None, planned: int | None, through: Through | None = None
) -> list[ClosingPlaces]:
    """One entry a pair; rates are (copies, blocks, levels, rounds).

    `windows`: second over first, 95 % by the windows alone: what
    these starts differ by, and not what the levels do. `looks`: the same after each block from the second on, with the
    starts' noise and at the confidence of that look (`planned`: None where nothing was to end the run early); of
    groups of treatments after each replicate. `through`: how levels are compared that have no block in common.
    """
    levels, blocks = rates.shape[2] if through is None else through.levels, rates.shape[1]
    each = 1 if through is None else through.groups
    rounds = [int(np.isfinite(rates[:, block]).any((0, 1)).sum()) for block in range(blocks)]
    found: list[ClosingPlaces] = [
        {"first": one, "second": two, "windows": [], "looks": []}
        for one in range(levels)
        for two in range(one + 1, levels)
    ]
    for block, count in enumerate(rounds):
        for upto in sorted({max(_ROUNDS_MIN, round(count * step / _STEPS)) for step in range(1, _STEPS + 1)}):
            if upto <= count:
                _windows(found, rates, block, upto, sum(rounds[:block]) + upto, through)
        if (block + 1) % each == 0 and (block + 1) // each >= FIRST:
            _look(found, rates[:, : block + 1], start, planned, sum(rounds[: block + 1]), through)
    return found


def _windows(
    found: list[ClosingPlaces], rates: np.ndarray, block: int, upto: int, at: int, through: Through | None
) -> None:
    cut = rates[:, : block + 1].copy()
    cut[:, block, :, upto:] = np.nan
    scatter, inside = noise(cut)
    logs = cells(logs_of(cut))
    # blocks weigh as their rounds, since windows alone are asked
    weight = np.isfinite(cut).any((0, 2)).sum(-1).astype(float)
    critical = float(t_quantile(0.5 + CONFIDENCE / 2, scatter.window_freedom))

    def compared(first: int, second: int) -> tuple[float, float] | None:
        """Second less first and its variance; None without a block that has both."""
        difference, variance = logs[:, second] - logs[:, first], inside.pair[:, first, second]
        known = np.isfinite(difference) & np.isfinite(variance)
        if not known.any():
            return None
        share = weight[known] / weight[known].sum()
        return float(share @ difference[known]), float((share**2 * variance[known]).sum())

    for one in found:
        first, second = one["first"], one["second"]
        if not np.isfinite(logs[block, [first, second]]).any():
            continue  # it was not up in this block
        direct = compared(first, second)
        legs = [direct]
        if direct is None and through is not None:
            legs = [compared(first, through.reference), compared(through.reference, second)]
        parts = [leg for leg in legs if leg is not None]
        if len(parts) == len(legs):
            half = critical * math.sqrt(sum(variance for _, variance in parts))
            one["windows"].append(_point(block + 1, at, sum(centre for centre, _ in parts), half))


def _look(
    found: list[ClosingPlaces],
    rates: np.ndarray,
    start: Start | None,
    planned: int | None,
    at: int,
    through: Through | None,
) -> None:
    block = rates.shape[1]
    replicate = block if through is None else block // through.groups
    share = FULL if planned is None else at_look(replicate, planned)
    said, _ = compare(rates, start, share, through)
    mean, half = said.shown.mean, said.half()
    for one in found:
        place = (one["second"], one["first"])
        if math.isfinite(half[place]):
            one["looks"].append(_point(block, at, float(mean[place]), float(half[place])))


def _point(block: int, at: int, centre: float, half: float) -> ClosingPoint:
    low, high = math.exp(centre - half), math.exp(centre + half)
    return {"block": block, "round": at, "ratio": math.exp(centre), "low": low, "high": high}
