"""The rounds of a soak: each against the first, the drift of all, and where they changed for good.

The fact that constrains it: two rounds that differ prove nothing, since rounds of one machine agree with their
neighbours and wander. A drift is a slope that the machine's own wandering leaves no chance; "no drift larger than x
%" is what the interval of the whole drift excludes, which is a test of equivalence (two one-sided tests,
Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987) with the smallest bound that holds in place of one
that was chosen beforehand. Where that is too large to be of use, it says "cannot tell". What alarms is calibrated
together: by simulation at most one soak in a hundred without a drift raises one (benches/verdicts.py --only soak).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from plimsoll.analysis.soak.autoregressive import Coefficient, Fit, fit
from plimsoll.analysis.soak.document import FoundStep, RoundRow, Rounds, Share
from plimsoll.analysis.soak.steps import Step, steps
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.statistics.simultaneous import range_quantile

ROUNDS_MIN: Final = 4  # a line through three leaves one degree of freedom to its scatter
CHANCE: Final = 0.002  # of a drift where there is none; the rest of one in a hundred is for steps
BOUND_MAX: Final = 0.10  # a bound on the drift that is larger tells nobody anything
CANNOT_TELL: Final = "cannot tell"
RULE: Final = (
    "rounds' logarithms on a straight line, with noise of which each round keeps an unknown share of the last one's "
    "(all shares from 0 to 0.95 averaged by how well they explain the rounds); intervals of 95 %; a drift is told "
    "where chance has at most 0.2 % of so large a slope; steps by the energy statistic (E-divisive), each tested with "
    "the same noise; a round is as the first where the interval of their difference stays within 10 %, and where it "
    "neither does nor leaves out zero nobody can tell"
)


def judge_rounds(values: Sequence[float | None], remarks: Sequence[Sequence[str]] = ()) -> Rounds:
    """Positive values of rounds back to back, oldest first; None where a round has no figure."""
    numbers = [number for number, value in enumerate(values) if value is not None and value > 0]
    logs = np.log([float(values[number] or 1.0) for number in numbers])
    line = fit(logs, np.array(numbers, float)) if len(numbers) >= ROUNDS_MIN else None
    if line is None:
        return _of_few(values, remarks)
    found = steps(logs, CONFIDENCE)
    slope, times = line.coefficients[1], numbers[-1] - numbers[0]
    about, shape = _explained(logs, line, found, slope)
    over_all = _share(slope.value, *slope.interval(CONFIDENCE), times)
    return {
        "rounds": _rows(values, remarks, numbers, about),
        "a_round": _share(slope.value, *slope.interval(CONFIDENCE)),
        "over_all": over_all,
        "steps": [_step(one, numbers) for one in found],
        "shape": shape,
        "scatter": about.apart(1) / math.sqrt(2),
        "correlation": about.correlation,
        "widest": _widest(logs, about),
        "verdict": verdict_of(slope, over_all),
        "rule": RULE,
    }


def verdict_of(slope: Coefficient, over_all: Share) -> str:
    """ "lower", "higher", "no drift larger than 1.5 %" or "cannot tell"."""
    if slope.chance() <= CHANCE:
        return "lower" if slope.value < 0 else "higher"
    bound = math.ceil(round(1000 * max(-over_all["low"], over_all["high"]), 6)) / 1000
    return CANNOT_TELL if bound > BOUND_MAX else f"no drift larger than {100 * bound:g} %"


def _explained(logs: np.ndarray, line: Fit, found: list[Step], slope: Coefficient) -> tuple[Fit, str | None]:
    """The model that explains the rounds best, and its name: "steady" or "in steps"; None where nothing moves.

    By Schwarz's criterion (BIC), in which a step costs two figures, its place and its size, and a line one.
    """
    if not found:
        return line, "steady" if slope.chance() <= CHANCE else None
    places = np.arange(len(logs))
    stepped = fit(logs, *((places >= one.place).astype(float) for one in found))
    assert stepped is not None  # steps have rounds on both sides
    a_figure = math.log(len(logs)) / 2
    if line.likelihood - a_figure > stepped.likelihood - 2 * len(found) * a_figure:
        return line, "steady"
    return stepped, "in steps"


def _rows(
    values: Sequence[float | None], remarks: Sequence[Sequence[str]], numbers: list[int], about: Fit
) -> list[RoundRow]:
    """Each round against the first: how far two rounds so far apart differ by chance is its interval."""
    far = float(t_quantile(0.5 + CONFIDENCE / 2, about.freedom))
    rows: list[RoundRow] = []
    for number, value in enumerate(values):
        change: Share | None = None
        if number in numbers[1:]:
            apart = math.log(float(value or 1.0) / float(values[numbers[0]] or 1.0))
            half = far * about.apart(number - numbers[0])
            change = _share(apart, apart - half, apart + half)
        said = list(remarks[number]) if number < len(remarks) else []
        rows.append({"round": number + 1, "value": value, "change": change, "verdict": _word(change), "remarks": said})
    return rows


def _word(change: Share | None) -> str | None:
    if change is None:
        return None
    if change["high"] < 0 or change["low"] > 0:
        return "lower" if change["high"] < 0 else "higher"
    return "as the first" if max(-change["low"], change["high"]) <= BOUND_MAX else CANNOT_TELL


def _widest(logs: np.ndarray, about: Fit) -> Share:
    """The two rounds that differ most, of all pairs at once: the interval is Tukey's, as if all were far apart."""
    apart = float(logs.max() - logs.min())
    half = float(range_quantile(CONFIDENCE, len(logs), about.freedom)) * about.apart(len(logs)) / math.sqrt(2)
    return _share(apart, max(0.0, apart - half), apart + half)


def _step(step: Step, numbers: list[int]) -> FoundStep:
    return {"round": numbers[step.place] + 1, "size": _share(step.size, step.low, step.high), "chance": step.chance}


def _share(value: float, low: float, high: float, times: int = 1) -> Share:
    """What so many steps of a difference of logarithms, and its interval, come to."""
    return {"value": math.expm1(times * value), "low": math.expm1(times * low), "high": math.expm1(times * high)}


def _of_few(values: Sequence[float | None], remarks: Sequence[Sequence[str]]) -> Rounds:
    """Too few rounds for a line: their figures stand there, and nothing is said of them."""
    rows: list[RoundRow] = [
        {
            "round": number + 1,
            "value": value,
            "change": None,
            "verdict": None,
            "remarks": list(remarks[number]) if number < len(remarks) else [],
        }
        for number, value in enumerate(values)
    ]
    return {
        "rounds": rows,
        "a_round": None,
        "over_all": None,
        "steps": [],
        "shape": None,
        "scatter": None,
        "correlation": None,
        "widest": None,
        "verdict": CANNOT_TELL,
        "rule": RULE,
    }
