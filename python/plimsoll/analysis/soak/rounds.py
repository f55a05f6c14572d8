"""The rounds of a soak: each against the first, the drift of all, and where they changed for good.

The fact that constrains it: two rounds that differ prove nothing, since rounds of one machine agree with their
neighbours and wander. A drift is a slope that the machine's own wandering leaves no chance; "no drift larger than x
%" is what the interval of the whole drift excludes, which is a test of equivalence (two one-sided tests,
Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987) with the smallest bound that holds in place of one
that was chosen beforehand. Where that is too large to be of use, it says "cannot tell". Where the machine's own speed
explains the rounds (speed.py), a drift is looked for as measured and at equal speed, and the bound is that at equal
speed. What alarms is calibrated together: by simulation at most one soak in a hundred without a drift raises one
(benches/verdicts.py --only soak).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from plimsoll.analysis.soak.autoregressive import Coefficient, Fit, fit
from plimsoll.analysis.soak.document import AtEqualSpeed, FoundStep, RoundRow, Rounds, Share
from plimsoll.analysis.soak.speed import Explained, Speed, explained
from plimsoll.analysis.soak.steps import Step, steps
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.intervals import CONFIDENCE
from plimsoll.analysis.statistics.simultaneous import range_quantile

ROUNDS_MIN: Final = 4  # a line through three leaves one degree of freedom to its scatter
CHANCE: Final = 0.002  # of a drift where there is none; the rest of one in a hundred is for steps
BOUND_MAX: Final = 0.10  # a bound on the drift that is larger tells nobody anything
CANNOT_TELL: Final = "cannot tell"
LOWER, HIGHER = MOVED = ("lower", "higher")
AS_MEASURED, EQUAL_SPEED = "as measured", "at equal speed"
RULE: Final = (
    "rounds' logarithms on a straight line, with noise of which each round keeps an unknown share of the last one's "
    "(all shares from 0 to 0.95 averaged by how well they explain the rounds); intervals of 95 %; a drift is told "
    "where chance has at most 0.2 % of so large a slope; steps by the energy statistic (E-divisive), each tested with "
    "the same noise; a round is as the first where the interval of their difference stays within 10 %, and where it "
    "neither does nor leaves out zero nobody can tell; where the machine's speeds in twelve rounds or more explain "
    "them (Schwarz's criterion), the line is told at equal speed, too, and chance has at most 0.1 % of either"
)


def judge_rounds(
    values: Sequence[float | None], remarks: Sequence[Sequence[str]] = (), speeds: Sequence[Speed] = ()
) -> Rounds:
    """Positive values of rounds back to back, oldest first; None where a round has no figure. `speeds`: of the machine
    in each."""
    numbers = [number for number, value in enumerate(values) if value is not None and value > 0]
    logs = np.log([float(values[number] or 1.0) for number in numbers])
    line = fit(logs, np.array(numbers, float)) if len(numbers) >= ROUNDS_MIN else None
    if line is None:
        return _of_few(values, remarks)
    found = steps(logs, CONFIDENCE)
    slope, times = line.coefficients[1], numbers[-1] - numbers[0]
    equal = explained(logs, np.array(numbers, float), [speeds[one] for one in numbers], line) if speeds else None
    told, verdict = _told(slope, equal, times)
    about, shape = _shaped(logs, line, found, verdict in MOVED)
    return {
        "rounds": _rows(values, remarks, numbers, about, equal),
        "a_round": _over(slope, 1),
        "over_all": _over(slope, times),
        "at_equal_speed": _at_equal_speed(equal, times),
        "steps": [_step(one, numbers) for one in found],
        "shape": shape,
        "scatter": about.apart(1) / math.sqrt(2),
        "correlation": about.correlation,
        "widest": _widest(logs, about),
        "told": told,
        "verdict": verdict,
        "rule": RULE,
    }


def _told(slope: Coefficient, equal: Explained | None, times: int) -> tuple[str, str]:
    """By which of the two lines the verdict is told, and the verdict: "lower", "higher", "no drift larger than 1.5 %"
    or "cannot tell"."""
    if equal is None:
        return AS_MEASURED, _moved(slope, CHANCE) or _bound(_over(slope, times))
    at_equal = equal.line.coefficients[1]
    if (moved := _moved(slope, CHANCE / 2)) is not None:
        return AS_MEASURED, moved
    return EQUAL_SPEED, _moved(at_equal, CHANCE / 2) or _bound(_over(at_equal, times))


def _moved(slope: Coefficient, chance: float) -> str | None:
    if slope.chance() > chance:
        return None
    return LOWER if slope.value < 0 else HIGHER


def _bound(over_all: Share) -> str:
    bound = math.ceil(round(1000 * max(-over_all["low"], over_all["high"]), 6)) / 1000
    return CANNOT_TELL if bound > BOUND_MAX else f"no drift larger than {100 * bound:g} %"


def _over(slope: Coefficient, times: int) -> Share:
    """What so many rounds of a slope come to."""
    return _share(slope.value, *slope.interval(CONFIDENCE), times)


def _at_equal_speed(equal: Explained | None, times: int) -> AtEqualSpeed | None:
    if equal is None:
        return None
    return {
        "over_all": _over(equal.line.coefficients[1], times),
        "scatter": equal.line.apart(1) / math.sqrt(2),
        "by_machine_widest": math.expm1(float(np.ptp(equal.by_machine))),
    }


def _shaped(logs: np.ndarray, line: Fit, found: list[Step], has_moved: bool) -> tuple[Fit, str | None]:
    """The model that explains the rounds best, and its name: "steady" or "in steps"; None where nothing moves.

    By Schwarz's criterion (BIC), in which a step costs two figures, its place and its size, and a line one.
    """
    if not found:
        return line, "steady" if has_moved else None
    places = np.arange(len(logs))
    stepped = fit(logs, *((places >= one.place).astype(float) for one in found))
    assert stepped is not None  # steps have rounds on both sides
    a_figure = math.log(len(logs)) / 2
    if line.likelihood - a_figure > stepped.likelihood - 2 * len(found) * a_figure:
        return line, "steady"
    return stepped, "in steps"


def _rows(
    values: Sequence[float | None],
    remarks: Sequence[Sequence[str]],
    numbers: list[int],
    about: Fit,
    equal: Explained | None,
) -> list[RoundRow]:
    """Each round against the first: how far two rounds so far apart differ by chance is its interval."""
    by_machine = {} if equal is None else dict(zip(numbers, np.expm1(equal.by_machine).tolist(), strict=True))
    first = float(values[numbers[0]] or 1.0)
    far = float(t_quantile(0.5 + CONFIDENCE / 2, about.freedom))
    rows: list[RoundRow] = []
    for number, value in enumerate(values):
        change: Share | None = None
        if number in numbers[1:]:
            apart = math.log(float(value or 1.0) / first)
            half = far * about.apart(number - numbers[0])
            change = _share(apart, apart - half, apart + half)
        row = _row(number, value, remarks)
        row["change"], row["verdict"] = change, _word(change)
        if (by := by_machine.get(number)) is not None:
            row["by_machine"], row["value_by_machine"] = by, first * (1 + by)
        rows.append(row)
    return rows


def _row(number: int, value: float | None, remarks: Sequence[Sequence[str]]) -> RoundRow:
    """A round of which nothing is said yet."""
    return {
        "round": number + 1,
        "value": value,
        "change": None,
        "by_machine": None,
        "value_by_machine": None,
        "verdict": None,
        "remarks": list(remarks[number]) if number < len(remarks) else [],
    }


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
    return {
        "rounds": [_row(number, value, remarks) for number, value in enumerate(values)],
        "a_round": None,
        "over_all": None,
        "at_equal_speed": None,
        "steps": [],
        "shape": None,
        "scatter": None,
        "correlation": None,
        "widest": None,
        "told": AS_MEASURED,
        "verdict": CANNOT_TELL,
        "rule": RULE,
    }
