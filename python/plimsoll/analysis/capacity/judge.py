"""Does a rate hold? Trials at one rate, judged together against the objective.

holds        every percentile's interval ends within its limit, errors too, and no backlog builds
breaks       some interval begins beyond its limit, or a backlog builds
generator    it does not hold, and the load generator was late although connections were free
cannot tell  anything else: longer trials are needed
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plimsoll.analysis.capacity.document import ErrorsTerm, PercentileFound, PercentileTerm, Term
from plimsoll.analysis.capacity.heeded import STEAL_DISTURBS
from plimsoll.analysis.capacity.objective import Objective, time_words
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.analysis.statistics.distributions import share_interval
from plimsoll.analysis.statistics.percentile import Cells, Estimate, joined, percentile
from plimsoll.analysis.statistics.queueing import Backlog, backlog

Word = Literal["holds", "breaks", "generator", "cannot tell"]
FULL_SHARE = 0.5
BUSY_MAX = 0.90
LAG_SHARE_MAX = 0.20
CPU_EXHAUSTED = 0.95
EXCESS_MAX = math.log(4)
BACKLOG_EXCESS = 0.1  # a rate at which a backlog builds is beyond the line, however short the segment kept latencies
GENERATOR_RULE = (
    "at a rate that does not hold the load generator counts as saturated when its threads used at least "
    f"{BUSY_MAX:.0%} of their time, or when its lag reached {LAG_SHARE_MAX:.0%} of a limit at that limit's percentile "
    "although connections were free: in the seconds (at least half of them) in which, with as many in use as there "
    f"were, arrivals by chance find all of them in use (Erlang's C) less than {FULL_SHARE:g} times as often as "
    "operations lie beyond the percentile, "
    f"while the host's CPUs were less than {CPU_EXHAUSTED:.0%} busy; lag that waits for a connection is the server's "
    "queue"
)


@dataclass(frozen=True)
class Judged:
    """The outcome for one rate. `excess` is the largest log of a term over its limit, cut at a factor of 4.

    `disturbed`: what the hypervisor took, in words, where it took much and the rate did not hold.
    """

    word: Word
    reasons: list[str]
    excess: float
    terms: list[Term]
    backlog: Backlog | None
    building: bool
    disturbed: str | None = None

    def beyond(self, objective: Objective) -> float:
        """Operations beyond the strictest percentile, as many as if they were independent; inf where not known.

        Slow operations come together, in the queue's bad stretches: a trial short against them sees few.
        """
        counts = [
            term["operations"] / effect * (1 - wanted.share)
            for wanted, term in zip(objective.percentiles, self.terms, strict=False)
            if "limit_ns" in term and (effect := term["design_effect"])
        ]
        return min(counts, default=math.inf)


def judge(readings: list[Reading], objective: Objective) -> Judged:
    """Judges trials made at the same planned rate, or with as many connections, as one."""
    if objective.conforming is not None:
        return _judge_connections(readings, objective.conforming)
    cells = _cells(readings, objective)
    broken, open_, excess = [], [], -EXCESS_MAX
    terms: list[Term] = []
    for wanted in objective.percentiles:
        estimate = percentile(cells, wanted.share)
        if estimate is None:
            open_.append(f"{wanted.name} is not known: no operation ended")
            continue
        found: PercentileTerm = {"term": str(wanted), "limit_ns": wanted.limit_ns, **as_json(estimate)}
        terms.append(found)
        excess = max(excess, _log_ratio(estimate.value, wanted.limit_ns))
        if estimate.low > wanted.limit_ns:
            broken.append(f"{wanted.name} {_words(estimate)} is above {time_words(wanted.limit_ns)}")
        elif estimate.high > wanted.limit_ns:
            open_.append(f"{wanted.name} {_words(estimate)} spans {time_words(wanted.limit_ns)}")
    if objective.errors is not None:
        term, state = _errors(readings, objective.errors)
        terms.append(term)
        if state == "breaks" or objective.errors > 0:  # undecided it has a side, too: else every such rate would hold
            excess = max(excess, _log_ratio(term["value"], objective.errors))
        if state == "breaks":
            broken.append(f"errors {term['value']:.2%} are above {objective.errors:.2%}")
        elif state == "open":
            open_.append(f"errors {term['value']:.2%} are not distinguishable from {objective.errors:.2%}")
    looked = [queue for reading in readings if (queue := backlog(reading.outstanding)) is not None]
    fired = [queue for queue in looked if queue.building]
    building = bool(fired) and 2 * len(fired) >= len(looked)
    last = fired[-1] if fired else looked[-1] if looked else None
    if building and last is not None:
        broken.append(
            f"a backlog builds: outstanding operations grow by {last.growth:,.0f} around a mean of {last.mean:,.0f}"
        )
        excess = max(excess, BACKLOG_EXCESS)
    if not broken and not open_:
        return Judged("holds", ["every interval ends within its limit"], min(excess, -1e-9), terms, last, building)
    stolen = max((reading.steal_share or 0.0 for reading in readings), default=0.0)
    disturbed = f"the hypervisor took {stolen:.0%} of the CPU time" if stolen >= STEAL_DISTURBS else None
    limit = generator_limit(readings, objective)
    if limit:
        return Judged("generator", [limit, *broken, *open_], excess, terms, last, building, disturbed)
    word: Word = "breaks" if broken else "cannot tell"
    reasons = [*(broken or open_), *([disturbed] if disturbed else [])]
    return Judged(word, reasons, excess, terms, last, building, disturbed)


def _judge_connections(readings: list[Reading], wanted: float) -> Judged:
    """Whether enough of all the connections conform. A point is valid or not, as the benchmark has it: by the share.

    How near it is to the limit is told by what falls short; none at all counts as half a connection.
    """
    asked = sum(reading.clients for reading in readings)
    conforming = sum(reading.conforming or 0 for reading in readings)
    low, high = share_interval(conforming, asked, 0.95)
    share = conforming / max(1, asked)
    term: ErrorsTerm = {
        "term": f"conforming >= {wanted * 100:g}%",
        "limit": wanted,
        "value": share,
        "low": low,
        "high": high,
    }
    excess = _log_ratio(max(1 - share, 0.5 / max(1, asked)), 1 - wanted)
    if share >= wanted:
        reasons = [f"{conforming:,} of {asked:,} connections conform"]
        return Judged("holds", reasons, min(excess, -1e-9), [term], None, False)
    broken = [f"{conforming:,} of {asked:,} connections conform, {share:.1%} and not {wanted:.1%}"]
    stolen = max((reading.steal_share or 0.0 for reading in readings), default=0.0)
    disturbed = f"the hypervisor took {stolen:.0%} of the CPU time" if stolen >= STEAL_DISTURBS else None
    excess = max(excess, 1e-9)
    if (limit := _threads_full(readings)) is not None:
        return Judged("generator", [limit, *broken], excess, [term], None, False, disturbed)
    return Judged("breaks", [*broken, *([disturbed] if disturbed else [])], excess, [term], None, False, disturbed)


def _cells(readings: list[Reading], objective: Objective) -> Cells:
    """With failed operations beyond every limit, unless the objective speaks of errors."""
    parts = [
        reading.cells if objective.errors is not None or reading.failed is None else reading.failed
        for reading in readings
    ]
    return parts[0] if len(parts) == 1 else joined(parts)


def _log_ratio(value: float, limit: float) -> float:
    if limit <= 0 or not math.isfinite(value):
        return EXCESS_MAX
    return min(EXCESS_MAX, max(-EXCESS_MAX, math.log(max(value, 1e-9) / limit)))


def _errors(readings: list[Reading], limit: float) -> tuple[ErrorsTerm, str]:
    """The share of errors with its interval: exact binomial, since errors of one trial are counted only in total."""
    bad = sum(reading.identity["failed"] + reading.identity["lost"] for reading in readings)
    sent = max(1, bad + sum(reading.identity["done"] for reading in readings))
    low, high = share_interval(bad, sent, 0.95)
    term: ErrorsTerm = {
        "term": f"errors <= {limit * 100:g}%",
        "limit": limit,
        "value": bad / sent,
        "low": low,
        "high": high,
    }
    if limit == 0:
        return term, "breaks" if bad else "holds"
    return term, "breaks" if low > limit else "open" if high > limit else "holds"


def generator_limit(readings: list[Reading], objective: Objective) -> str | None:
    """Why the generator was saturated; None where it was not, or where the server kept every connection in use."""
    if (full := _threads_full(readings)) is not None:
        return full
    for reading in readings:
        if reading.host_busy_share is not None and reading.host_busy_share >= CPU_EXHAUSTED:
            continue  # server and generator used up the CPUs together
        if reading.lag_cells is None or (reading.steal_share or 0.0) >= STEAL_DISTURBS:
            continue  # what the hypervisor took makes a generator late, too
        in_use = all_in_use(reading.busy, reading.clients)
        for term in objective.percentiles:
            free = in_use < FULL_SHARE * (1 - term.share)
            if free.sum() * 2 < len(free):
                continue
            lag = percentile(_in_seconds(reading.lag_cells, free), term.share)
            if lag is not None and lag.value >= LAG_SHARE_MAX * term.limit_ns:
                return (
                    f"operations started late although connections were free: lag {term.name} {time_words(lag.value)}"
                )
    return None


def _threads_full(readings: list[Reading]) -> str | None:
    shares = [reading.load_busy_share for reading in readings if reading.load_busy_share is not None]
    if shares and max(shares) >= BUSY_MAX:
        return f"the generator's threads used {max(shares):.0%} of their time"
    return None


def all_in_use(busy: np.ndarray, connections: int) -> np.ndarray:
    """How often an arrival finds every connection in use when so many are on the mean: Erlang's C; 1 where not known.

    A few connections are often all in use at once although their mean says that some are free.
    """
    known = np.where(np.isfinite(busy), np.clip(busy, 0.0, connections), connections)
    blocked = np.ones(len(known))
    for count in range(1, connections + 1):
        blocked = known * blocked / (count + known * blocked)
    spare = 1 - known / connections
    return np.where(spare > 0, blocked / np.maximum(spare + (1 - spare) * blocked, 1e-300), 1.0)


def _in_seconds(cells: Cells, wanted: np.ndarray) -> Cells:
    kept = wanted[cells.second]
    places = np.cumsum(wanted) - 1
    return Cells(places[cells.second[kept]], cells.low[kept], cells.high[kept], cells.count[kept], cells.beyond[wanted])


def as_json(estimate: Estimate) -> PercentileFound:
    """A percentile as capacity.json keeps it; what is not bounded is null."""
    return {
        "value": _finite(estimate.value),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "operations": estimate.operations,
        "design_effect": _finite(estimate.design_effect),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _words(estimate: Estimate) -> str:
    if not math.isfinite(estimate.value):
        return "(among operations without an answer)"
    high = time_words(estimate.high) if math.isfinite(estimate.high) else "no bound"
    return f"{time_words(estimate.value)} [{time_words(estimate.low)}, {high}]"
