"""Which trial next? A pure function from the trials so far to the next one, or to the end of the search.

    saturation   one closed-loop trial: what all connections together get done gives the scale
    bracket      rates in geometric steps until one holds and one breaks
    bisect       between the highest that holds and the lowest that breaks, down to RESOLUTION
    curve        a few low rates, for the latency without a queue
    confirm      the boundary and its neighbours again, in random order, until the time is used up

A disturbed trial has no say (heeded.py), so that its rate is asked for again; rates far below one that held are not
asked for. The fact that constrains it: the machine drifts while the search goes on, so that one trial at a rate is no
last word; the boundary is where the fewest trials stand on the wrong side, and about a third of the time goes into
testing it again. The seed decides the order, so the same trials give the same search.
"""

import itertools
import math
import random
from dataclasses import dataclass

from plimsoll.analysis.capacity.heeded import FAR_BELOW, heeded, highest_held
from plimsoll.analysis.capacity.judge import Word

FIRST_SHARE = 0.7
UP, DOWN = 1.3, 1.6
RESOLUTION = 1.04
NEIGHBOUR = 1.03
LOWEST_SHARE = 0.01
RATE_MIN = 0.2
ATTEMPTS = 3
FAR = math.log(2)  # stalls make latencies longer and nothing makes them shorter: far below the limit is on its side
BEYOND_WANTED = 40
SEARCH_SHARE = 0.6
CURVE_SHARES = (0.25, 0.5, 0.75)
CONFIRM_CYCLE = 4
TRIALS_MAX = 300


@dataclass(frozen=True)
class Limits:
    """What the search may spend, and what its trials need. `tail` is the share beyond the strictest percentile.

    `most`: of a search over connections, which are whole, how many there can be; None of one over rates.
    """

    seconds: float
    tail: float
    seed: int
    short: float
    long: float
    most: int | None = None


@dataclass(frozen=True)
class Tried:
    """One finished trial. `word` judges it alone, `pooled` with every trial at its rate up to it.

    `beyond`: how many operations beyond the strictest percentile it saw, counted as if they were independent.
    """

    number: int
    role: str
    rate: float | None
    seconds: float
    word: Word
    pooled: Word
    excess: float
    throughput: float
    beyond: float = math.inf
    disturbed: bool = False


@dataclass(frozen=True)
class Step:
    """A trial to run. `rate` is None for the closed loop."""

    role: str
    rate: float | None
    seconds: int


def limits(budget_seconds: float, tail: float, seed: int, most: int | None = None) -> Limits:
    """Lengths of trials that fit the budget: ten minutes allow about 25 trials."""
    short = min(10.0, max(8.0, budget_seconds / 60))
    return Limits(budget_seconds, tail, seed, short, min(20.0, max(short, budget_seconds / 25)), most)


def next_step(tried: list[Tried], within: Limits, spent: float, overhead: float = 1.0) -> Step | None:
    """The next trial, or None when the search is over.

    `spent`: seconds of the budget that are gone; `overhead`: what a trial takes beside its seconds.
    """
    step = _not_far_below(_wanted(tried, within, spent), heeded(tried))
    if step is None or len(tried) >= TRIALS_MAX:
        return None
    left = within.seconds - spent - overhead
    if left < step.seconds:
        # What is left of the time is still worth a trial when it is long enough to say something.
        return Step(step.role, step.rate, int(left)) if left >= within.short and step.role == "confirm" else None
    return step


def _wanted(tried: list[Tried], within: Limits, spent: float) -> Step | None:
    saturation = next((trial for trial in tried if trial.role == "saturation"), None)
    if saturation is None:
        return Step("saturation", None, round(within.short))
    scale = saturation.throughput
    opened = heeded(tried)
    if scale <= 0:
        return None
    if not opened:
        return _step("bracket", FIRST_SHARE * scale, within, within.short)
    again = _again(opened, within)
    if again is not None:
        return again
    low, high = bracket(opened)
    if low is None:
        lower = min(trial.rate for trial in opened if trial.rate is not None) / DOWN
        least = max(RATE_MIN if within.most is None else 1.0, LOWEST_SHARE * scale)
        return _step("bracket", lower, within, within.short) if lower >= least else None
    if high is None and within.most is not None and low >= within.most:
        return None
    if high is None:
        return _step("bracket", low * UP, within, within.short)
    if high / low > RESOLUTION and spent < SEARCH_SHARE * within.seconds:
        inside = _inside(opened, low, high, within)
        if inside is not None:
            return _step("bisect", inside, within, (within.short + within.long) / 2)
    for share in CURVE_SHARES[sum(trial.role == "curve" for trial in opened) :]:  # not anew whenever the line moves
        if not any(trial.rate and abs(math.log(trial.rate / (share * low))) < 0.15 for trial in opened):
            return _step("curve", share * low, within, within.short)
    return _confirm(opened, within)


def _not_far_below(step: Step | None, opened: list[Tried]) -> Step | None:
    """A rate that held is asked for again before rates far below it are: those would hold, too."""
    held = highest_held(opened)
    if step is None or step.rate is None or held is None or step.role == "curve" or step.rate >= held / FAR_BELOW:
        return step
    return Step(step.role, held, step.seconds)


def _step(role: str, rate: float, within: Limits, floor: float) -> Step:
    return Step(role, _rounded(rate, within), _seconds(rate, within, floor))


def _seconds(rate: float, within: Limits, floor: float) -> int:
    """Long enough for some operations beyond the percentile, at most an eighth of the whole time."""
    wanted = BEYOND_WANTED / (within.tail * rate)
    return math.ceil(max(floor, min(wanted, within.seconds / 8)))


def _rounded(rate: float, within: Limits) -> float:
    """Four significant digits: what people read, and the same rate for the same decision. Connections are whole."""
    if within.most is not None:
        return float(min(within.most, max(1, round(float(f"{rate:.4g}")))))
    return float(f"{rate:.4g}")


def _again(opened: list[Tried], within: Limits) -> Step | None:
    """The last rate once more, twice as long, where it could not be told and may break; three times at most."""
    last = opened[-1]
    same = [trial for trial in opened if trial.rate == last.rate]
    if last.role not in ("bracket", "bisect") or last.pooled != "cannot tell" or len(same) >= ATTEMPTS:
        return None
    if last.excess <= -FAR:
        return None
    seconds = min(2 * last.seconds, within.seconds / 8)
    return Step(last.role, last.rate, math.ceil(max(seconds, within.short)))


def side(trial: Tried) -> int:
    """-1 holds, 1 does not; where it cannot be told 0."""
    return {"holds": -1, "breaks": 1, "generator": 1, "cannot tell": 0}[trial.word]


def bracket(opened: list[Tried], estimated: bool = False) -> tuple[float | None, float | None]:
    """The rates around the boundary that leaves the fewest trials on its wrong side; None where there is none.

    Where several boundaries are as good, from below the lowest to above the highest of them. `estimated`: a trial that
    cannot tell stands on the side of its estimate, and of equal boundaries those beyond every trial count last; else it
    stands on none, unless its estimate is far below the limit or longer trials could not tell either.
    """
    rates = sorted({trial.rate for trial in opened if trial.rate is not None})
    sides = {rate: [_settled(trial, opened, estimated) for trial in opened if trial.rate == rate] for rate in rates}
    wrong = [
        sum(value > 0 for rate in rates[:place] for value in sides[rate])
        + sum(value < 0 for rate in rates[place:] for value in sides[rate])
        for place in range(len(rates) + 1)
    ]
    best = [place for place, count in enumerate(wrong) if count == min(wrong)]
    if estimated:
        best = [place for place in best if 0 < place < len(rates)] or best
    low = next((rate for rate in reversed(rates[: best[0]]) if any(value < 0 for value in sides[rate])), None)
    high = next((rate for rate in rates[best[-1] :] if any(value > 0 for value in sides[rate])), None)
    return low, high


def _settled(trial: Tried, opened: list[Tried], estimated: bool) -> int:
    """The side of a trial; of one that cannot tell the side of its estimate, where that may count."""
    own = side(trial)
    if own:
        return own
    if estimated or trial.excess <= -FAR:
        return -1 if trial.excess < 0 else 1
    same = [other for other in opened if other.rate == trial.rate]
    pooled = same[-1].pooled
    if pooled in ("holds", "breaks", "generator"):
        return -1 if pooled == "holds" else 1
    if len(same) >= ATTEMPTS:
        return -1 if trial.excess < 0 else 1
    return 0


def _inside(opened: list[Tried], low: float, high: float, within: Limits) -> float | None:
    """A rate between the two that was not tried: the middle of the widest gap."""
    inside = sorted(
        {low, high} | {trial.rate for trial in opened if trial.rate is not None and low < trial.rate < high}
    )
    gaps = [(after / before, before, after) for before, after in itertools.pairwise(inside)]
    ratio, before, after = max(gaps)
    middle = math.sqrt(before * after)
    return middle if ratio > RESOLUTION and _rounded(middle, within) not in (before, after) else None


def _confirm(opened: list[Tried], within: Limits) -> Step | None:
    """The boundary and a neighbour on either side, each once a cycle, in an order the seed decides."""
    done = sum(trial.role == "confirm" for trial in opened)
    cycle, place = divmod(done, CONFIRM_CYCLE)
    low, high = bracket(opened[: len(opened) - place] if place else opened)
    if low is None or high is None:
        return None
    rates = [low / NEIGHBOUR, low, high, high * NEIGHBOUR]
    if high / low > RESOLUTION**2:  # trials disagree over a wide stretch: look inside it
        rates = [low, low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3), high]
    random.Random(f"{within.seed}/{cycle}").shuffle(rates)
    return _step("confirm", rates[place], within, within.long)
