"""The load line and the knee from all trials: a rate with an interval, and where the queue starts to grow.

The line is where the objective's excess (log of the percentile over its limit, the largest of several terms) crosses
zero, on a monotone regression over the rates tried. Its interval joins two things: the bracket (the rates around the
boundary that leaves the fewest trials on its wrong side; a trial that cannot tell stands on the side of its estimate)
and the scatter of the trials around it (each trial near the line says by the local slope where the line is; Student's t
over these, widened where neighbours in time are alike). tests/unit/analysis/test_capacity_line.py
states by simulation how often the interval holds the true line, and how far repeated searches lie apart.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plimsoll.analysis.capacity.heeded import heeded
from plimsoll.analysis.capacity.search import NEIGHBOUR, Tried, bracket
from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.percentile import inflation

Carries = Callable[[float], bool]
Status = Literal["found", "at least", "below", "cannot tell"]
EXCESS_CUT = math.log(2)
NEAR = 1.15
DEPARTED = 2.0
BEYOND_MIN = 3.0  # independent operations beyond the percentile; with fewer the interval was too narrow (simulated)
BEYOND_DECIDES = 8.0  # with so many at one rate its percentile is bounded above, if it is well below the limit
MORE_MIN = 2.0
SIMULATED_SECONDS = 600.0  # how long the searches of benches/verdicts.py are
LOWER = 2.0  # with 1.5 rare pauses were promised away too often (simulated)
PROMISE_TRIALS = 2  # one trial that holds may have been lucky
LINE_RULE = (
    "where the monotone regression of log(percentile / limit) over that of the rate crosses zero; its interval "
    "joins the bracket and the 95 % t interval of the trials near it, each moved to the line by the local slope"
)
INTERVAL_RULE = (
    "the interval covers the scatter of this search's trials and what the machine did while it went on, as far as the "
    "trials near the line show it; not what the machine does at another hour. Where those trials are short against "
    f"the queue's memory (fewer than {BEYOND_MIN:g} independent operations beyond the percentile) it begins a step of "
    f"{NEIGHBOUR - 1:.0%} below the highest rate that all of its trials together hold, and with them all trials at "
    f"rates down to {LOWER:g} times lower. In simulated searches of steady servers (one, four or eight processors, "
    "with and without pauses) of ten minutes it held the true line in 94 of 100 or more and began above it in at most "
    "4; with rare long pauses (200 ms, three a minute) in 89 and 10 (benches/verdicts.py, loadline); "
    "where the machine drifts it holds it less often (schema/capacity.md)"
)
KNEE_RULE = (
    "the lowest rate from which on, at every rate tried, a backlog builds or the median latency is at least "
    f"{DEPARTED:g} times its low-load level (the smallest median of all rates); it may lie above the load line, where "
    "the slowest operations break the objective before a queue shows in the median"
)


@dataclass(frozen=True)
class Line:
    """The load line, per second. `low` and `high` are None where nothing bounds it on that side.

    `more`: where it cannot be told, in about how many times as long a search it could; None where nothing says so.
    """

    status: Status
    rate: float | None
    low: float | None
    high: float | None
    trials_near: int
    generator: bool
    more: float | None = None


Place = Literal["below", "beside", "above"]


@dataclass(frozen=True)
class Knee:
    """Where the queue starts to grow: above `low` and at most `high`; `why` is "latency" or "backlog"."""

    rate: float
    low: float | None
    high: float
    why: str
    level_ns: float


def load_line(tried: list[Tried], carries: Carries | None = None) -> Line:
    """The line from trials at planned rates; the closed loop has no say.

    `carries`: whether all trials from LOWER times below a rate up to it hold together; None: not asked.
    """
    opened = heeded(tried)
    low, high = bracket(opened, estimated=True)
    generator = _generator(opened, high)
    near = 0
    if low is None and high is None:
        return _cannot_tell(opened)
    if low is None:
        # That a server does not carry a rate is a verdict as any other: an estimate alone does not give it.
        broken = bracket(opened)[1]
        return _cannot_tell(opened) if broken is None else Line("below", None, None, broken, near, generator)
    if high is None or generator:
        held = _held(opened)
        return _cannot_tell(opened, generator) if held is None else Line("at least", held, held, None, near, generator)
    crossing = _crossing(opened, low, high)
    carried = _carried(opened, carries) if _are_short(opened, crossing) else high
    if carried is None:
        return _cannot_tell(opened)
    implied = _implied(opened, crossing)
    near = len(implied)
    spread = (math.log(low), math.log(high))
    if near >= 4:
        middle = float(np.mean(implied))
        # In the order of the trials: a machine that drifts makes neighbours alike.
        error = math.sqrt(inflation(implied - middle) / near) * float(np.std(implied, ddof=2))
        half = float(t_quantile(0.975, near - 2)) * error
        spread = (min(spread[0], middle - half), max(spread[1], middle + half))
    bottom = min(spread[0], math.log(carried))
    return Line("found", math.exp(max(crossing, bottom)), math.exp(bottom), math.exp(spread[1]), near, False)


def _are_short(opened: list[Tried], crossing: float) -> bool:
    """Whether the trials near the line, by the median, are short against the queue's memory.

    Such a trial sees few of the queue's bad stretches, and most see none: one by one they are too hopeful.
    """
    beyond = [
        trial.beyond
        for trial in opened
        if trial.rate is not None and abs(math.log(trial.rate) - crossing) <= math.log(NEAR)
    ]
    return bool(beyond) and float(np.median(beyond)) < BEYOND_MIN


def _carried(opened: list[Tried], carries: Carries | None) -> float | None:
    """A step below the highest rate that all of its trials together hold, whatever each of them says.

    A step below, because the highest of several that held by chance is too high, too. Lower rates are asked as well:
    the rare pause that spares a few trials at one rate strikes others, and what breaks them would break it.
    """
    last = {trial.rate: trial.pooled for trial in opened if trial.rate is not None}
    held = sorted((rate for rate, word in last.items() if word == "holds"), reverse=True)
    return next((rate / NEIGHBOUR for rate in held if carries is None or carries(rate)), None)


def _cannot_tell(opened: list[Tried], generator: bool = False) -> Line:
    """With how much longer a search some rate would have been seen often enough beyond its percentile."""
    seen: dict[float, float] = {}
    for trial in opened:
        if trial.rate is not None and math.isfinite(trial.beyond):
            seen[trial.rate] = seen.get(trial.rate, 0.0) + trial.beyond
    most = max(seen.values(), default=0.0)
    more = max(MORE_MIN, BEYOND_DECIDES / most) if most > 0 else None
    return Line("cannot tell", None, None, None, 0, generator, more)


def _held(opened: list[Tried]) -> float | None:
    """The highest rate that held, if at least two trials speak for it, and more than against it.

    A trial at a higher rate speaks for it, too; estimates alone say nothing here.
    """
    for rate in sorted(
        {trial.rate for trial in opened if trial.rate is not None and trial.word == "holds"}, reverse=True
    ):
        held = sum(trial.word == "holds" for trial in opened if trial.rate is not None and trial.rate >= rate)
        broke = sum(trial.word == "breaks" for trial in opened if trial.rate is not None and trial.rate <= rate)
        if held >= PROMISE_TRIALS and held > broke:
            return rate
    return None


def _generator(opened: list[Tried], high: float | None) -> bool:
    """Whether what stood in the way at the upper side of the boundary was the generator, by most of its trials."""
    words = [trial.word for trial in opened if high is not None and trial.rate is not None and trial.rate >= high]
    bad = [word for word in words if word in ("breaks", "generator")]
    return bool(bad) and 2 * sum(word == "generator" for word in bad) > len(bad)


def _cut(trial: Tried) -> float:
    return min(EXCESS_CUT, max(-EXCESS_CUT, trial.excess))


def monotone(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted isotonic regression: neighbours that fall are pooled until nothing falls."""
    pools: list[list[float]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            last, before = pools.pop(), pools.pop()
            total = last[1] + before[1]
            pools.append([(last[0] * last[1] + before[0] * before[1]) / total, total, last[2] + before[2]])
    return np.concatenate([np.full(int(size), value) for value, _, size in pools])


def _crossing(opened: list[Tried], low: float, high: float) -> float:
    """Log of the rate at which the regression crosses zero, inside the bracket."""
    rates = sorted({trial.rate for trial in opened if trial.rate is not None})
    same = [[trial for trial in opened if trial.rate == rate] for rate in rates]
    weights = np.array([sum(trial.seconds for trial in group) for group in same])
    means = np.array([sum(_cut(trial) * trial.seconds for trial in group) for group in same]) / weights
    fitted, places = monotone(means, weights), np.log(rates)
    under = np.flatnonzero(fitted <= 0)
    if not len(under):
        return math.log(low)
    if len(under) == len(fitted):
        return math.log(high)
    first = int(under[-1])
    rise = fitted[first + 1] - fitted[first]
    crossing = places[first] - fitted[first] / rise * (places[first + 1] - places[first])
    return float(min(max(crossing, math.log(low)), math.log(high)))


def _implied(opened: list[Tried], crossing: float) -> np.ndarray:
    """Where each trial near the line says it is: its own rate, moved by its excess over the local slope.

    Trials whose excess was cut say only on which side they are, and have no say here.
    """
    near = [
        (math.log(trial.rate), trial.excess)
        for trial in opened
        if trial.rate is not None
        and abs(math.log(trial.rate) - crossing) <= math.log(NEAR)
        and abs(trial.excess) < EXCESS_CUT
    ]
    if len(near) < 4:
        return np.array([])
    places, excess = np.array(near).T
    centred = places - places.mean()
    power = float((centred**2).sum())
    slope = float((centred * excess).sum()) / power if power > 0 else 0.0
    if slope <= 0:
        return np.array([])
    reach = math.log(NEAR)
    return np.clip(places - excess / slope, crossing - reach, crossing + reach)


def knee(points: list[tuple[float, float, bool]]) -> Knee | None:
    """From (rate, median latency in ns, whether a backlog builds), one a trial; None where no queue grew."""
    rates = sorted({rate for rate, _, _ in points})
    if len(rates) < 2:
        return None
    medians = [float(np.median([value for rate, value, _ in points if rate == at])) for at in rates]
    building = [
        2 * sum(flag for rate, _, flag in points if rate == at) > sum(rate == at for rate, _, _ in points)
        for at in rates
    ]
    level = min(medians)
    grown = [flag or median >= DEPARTED * level for flag, median in zip(building, medians, strict=True)]
    first = len(grown)
    while first and grown[first - 1]:
        first -= 1
    if first == len(grown):
        return None
    if not first:
        return Knee(rates[0], None, rates[0], "backlog" if building[0] else "latency", level)
    before, after = medians[first - 1], medians[first]
    if after < DEPARTED * level or after <= before:
        return Knee(rates[first], rates[first - 1], rates[first], "backlog", level)
    share = math.log(max(DEPARTED * level / before, 1.0)) / math.log(after / before)
    rate = rates[first - 1] * (rates[first] / rates[first - 1]) ** share
    return Knee(rate, rates[first - 1], rates[first], "latency", level)


def knee_place(grown: Knee, line: Line) -> Place | None:
    """Where the knee lies against the line: "beside" where their intervals meet; None where the line is not bounded."""
    if line.rate is not None and grown.high <= (line.rate if line.low is None else line.low):
        return "below"
    if line.status != "found" or line.high is None:
        return None
    return "above" if grown.low is not None and grown.low >= line.high else "beside"
