"""The search for the load line on queues of known truth: the search's own code decides each trial and judges it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from plimsoll.analysis.capacity.line import SIMULATED_SECONDS, Line, load_line
from plimsoll.analysis.capacity.objective import Objective, parse
from plimsoll.analysis.capacity.reading import Reading, settle_seconds
from plimsoll.analysis.capacity.search import Step, Tried, limits, next_step
from plimsoll.analysis.capacity.verdict import assess, carrier
from plimsoll.analysis.statistics.percentile import Cells
from simulate.queues import Server, cells
from simulate.rows import Row, Section

CLIENTS = 64
LATE_SECONDS = 2.0
OVERHEAD = 1.5
MINUTES = SIMULATED_SECONDS / 60
HELD, PROMISED = 0.90, 0.08
LONGER_MIN, LONGER_TOLD = 5, 0.5
SERVERS = {
    "M/M/1 1 ms": Server(1, 0.001),
    "M/M/1 5 ms": Server(1, 0.005),
    "M/M/1 10 ms": Server(1, 0.010),
    "M/M/1 20 ms": Server(1, 0.020),
    "M/M/4 20 ms": Server(4, 0.020),
    "M/M/8 20 ms": Server(8, 0.020),
    "pauses 50 ms": Server(1, 0.001, 0.050, 0.2),
    "pauses 200 ms": Server(1, 0.002, 0.200, 0.05),
}
STOLEN = Server(1, 0.001, 0.020, 8.0)  # of "M/M/1 1 ms", with 16 % of its time taken
STOLEN_SHARE = 0.2
TABLE = (
    ("M/M/1 1 ms", "p99 <= 20ms"),
    ("M/M/1 5 ms", "p99 <= 100ms"),
    ("M/M/1 10 ms", "p99 <= 200ms"),
    ("M/M/1 10 ms", "p99 <= 500ms"),
    ("M/M/1 20 ms", "p99 <= 1s"),
    ("M/M/4 20 ms", "p99 <= 200ms"),
    ("M/M/4 20 ms", "p99 <= 500ms"),
    ("M/M/8 20 ms", "p99 <= 200ms"),
    ("M/M/8 20 ms", "p99 <= 500ms"),
    ("pauses 50 ms", "p99 <= 100ms"),
    ("pauses 200 ms", "p99 <= 200ms"),
)


def truth(server: Server, objective: Objective) -> float:
    """The line that the search looks for, per second."""
    return min(server.line(one.share, one.limit_ns / 1e9) for one in objective.percentiles)


def reading(number: int, step: Step, server: Server, random: np.random.Generator) -> Reading:
    """A trial as its record would give it: what is late is skipped, the beginning is not judged."""
    seconds, nothing = step.seconds, np.zeros(step.seconds)
    if step.rate is None:
        done = int(random.poisson(server.most * seconds))
        none = Cells(np.zeros(0, int), np.zeros(0), np.zeros(0), np.zeros(0), nothing)
        return _reading(number, step, none, nothing, {"done": done, "skipped": 0})
    arrivals, sojourns = server.run(step.rate, seconds, random)
    late = sojourns > LATE_SECONDS
    second = np.minimum(arrivals[late].astype(int), seconds - 1)
    skipped = np.bincount(second, minlength=seconds).astype(float)
    found, settle = cells(arrivals[~late], sojourns[~late], seconds), settle_seconds(seconds)
    ends = arrivals[~late] + sojourns[~late]
    inside = ends < seconds
    under_way = np.bincount(ends[inside].astype(int), sojourns[~late][inside], seconds) + skipped * LATE_SECONDS
    kept = found.second >= settle
    cut = Cells(found.second[kept] - settle, found.low[kept], found.high[kept], found.count[kept], skipped[settle:])
    return _reading(number, step, cut, under_way[settle:], {"done": int((~late).sum()), "skipped": int(late.sum())})


def _reading(number: int, step: Step, found: Cells, under_way: np.ndarray, counts: dict[str, int]) -> Reading:
    nothing = np.zeros(len(under_way))
    return Reading(
        number=number,
        role=step.role,
        rate=step.rate,
        seconds=step.seconds,
        clients=CLIENTS,
        threads=1,
        cells=found,
        failed=None,
        outstanding=under_way,
        busy=nothing,
        lag=nothing,
        lag_cells=None,
        identity={"failed": 0, "lost": 0, **counts},
        throughput=counts["done"] / step.seconds,
        load_busy_share=0.2,
        host_busy_share=0.8,
    )


def searched(
    server: Server, objective: Objective, seed: int, minutes: float = MINUTES, stolen: float = 0.0
) -> tuple[Line, list[Tried]]:
    """A whole search: its line and its trials. `stolen`: in such a share of them a hypervisor takes STOLEN."""
    random, spent = np.random.default_rng([seed, server.count]), 0.0
    within = limits(60 * minutes, 1 - max(one.share for one in objective.percentiles), seed)
    readings: list[Reading] = []
    tried: list[Tried] = []
    while (step := next_step(tried, within, spent, OVERHEAD)) is not None:
        is_stolen = step.rate is not None and random.random() < stolen
        made = reading(len(readings) + 1, step, STOLEN if is_stolen else server, random)
        readings.append(replace(made, steal_share=STOLEN.pauses * STOLEN.pause if is_stolen else 0.0))
        tried = assess(readings, objective, tried)
        spent += step.seconds + OVERHEAD
    return load_line(tried, carrier(readings, tried, objective)), tried


def _case(name: str, text: str, minutes: float, stolen: float, seed: int, runs: int) -> list[Row]:
    server, objective = SERVERS[name], parse(text)
    true = truth(server, objective)
    lines = [searched(server, objective, 1_000_003 * seed + run, minutes, stolen)[0] for run in range(runs)]
    case = f"{name}, {objective}, {minutes:g} min{', stolen from' if stolen else ''}"
    lows = [one.low for one in lines if one.low is not None]
    found = [(one.low, one.high) for one in lines if one.status == "found" and one.low and one.high]
    rows = [Row("a line is found", case, len(found) / runs, 0.0, False, runs)]
    if found:
        held = sum(low <= true <= high for low, high in found) / len(found)
        rows.append(Row("the line's interval holds", case, held, HELD, False, len(found)))
    if lows:
        promised = sum(low > true for low in lows) / len(lows)
        rows.append(Row("more promised than carried", case, promised, PROMISED, True, len(lows)))
    wanted = [one.more for one in lines if one.status == "cannot tell" and one.more is not None][: max(5, runs // 10)]
    if len(wanted) >= LONGER_MIN:
        again = [
            searched(server, objective, 1_000_003 * seed + runs + run, minutes * more, stolen)[0].status
            for run, more in enumerate(wanted)
        ]
        share = sum(status != "cannot tell" for status in again) / len(again)
        rows.append(Row("told in the minutes it asked for", case, share, LONGER_TOLD, False, len(again)))
    return rows


def sections() -> list[Section]:
    """What this file can show."""
    cases = [(f"{name}, {text}", partial(_case, name, text, MINUTES, 0.0)) for name, text in TABLE]
    cases.append(("stolen from", partial(_case, *TABLE[0], MINUTES, STOLEN_SHARE)))
    return [Section("loadline", tuple(cases), 200)]
