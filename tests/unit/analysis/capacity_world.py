"""Known worlds for the load line: queues whose percentiles are known, and records of searches made from them.

Loaded by runpy, since tests are imported one by one. Everything is seeded; times are in seconds unless the name says.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from plimsoll.analysis.statistics.percentile import Cells

_DECADES, _STEPS = 16, 128  # more than there are of nanoseconds, and of cells in one


def queue(
    rate: float, service: float, servers: int, seconds: float, random: np.random.Generator, cut_in: float = 1.0
) -> Any:
    """M/M/c in its steady state: (arrivals, sojourns) over `seconds`, after a burn-in of as many relaxation times."""
    load = rate * service / servers
    relaxation = service / max(1e-3, (1 - math.sqrt(min(load, 0.999))) ** 2)
    burn = cut_in * min(200.0, 8 * relaxation) if load < 1 else 0.0
    count = int(rate * (seconds + burn) * 1.05 + 6 * math.sqrt(rate * (seconds + burn)) + 50)
    arrivals = np.cumsum(random.exponential(1 / rate, count))
    arrivals = arrivals[arrivals < seconds + burn]
    times = random.exponential(service, len(arrivals))
    waits = _waits_one(arrivals, times) if servers == 1 else _waits_many(arrivals, times, servers)
    kept = arrivals >= burn
    return arrivals[kept] - burn, (waits + times)[kept]


def _waits_one(arrivals: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Lindley's recursion, without a loop."""
    steps = np.concatenate([[0.0], times[:-1] - np.diff(arrivals)])
    sums = np.cumsum(steps)
    return sums - np.minimum.accumulate(np.minimum(sums, 0.0))


def _waits_many(arrivals: np.ndarray, times: np.ndarray, servers: int) -> np.ndarray:
    free = [0.0] * servers
    waits = np.empty(len(arrivals))
    for place, (arrival, time) in enumerate(zip(arrivals.tolist(), times.tolist(), strict=True)):
        first = min(free)
        begin = max(first, arrival)
        free[free.index(first)] = begin + time
        waits[place] = begin - arrival
    return waits


def beyond(value: float, rate: float, service: float, servers: int) -> float:
    """P(sojourn > value) of M/M/c in its steady state."""
    offered = rate * service
    terms = [offered**n / math.factorial(n) for n in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    waiting = last / (sum(terms) + last)
    spare = servers - 1 - offered
    mu = 1 / service
    if abs(spare) < 1e-9:
        return math.exp(-mu * value) * (1 + waiting * mu * value)
    alone = math.exp(-mu * value)
    return alone + waiting * (alone - math.exp(-mu * value * (1 + spare))) / spare


def true_percentile(level: float, rate: float, service: float, servers: int) -> float:
    """The latency that a share `level` does not exceed, in seconds."""
    top = 200 * service / (1 - rate * service / servers)
    return float(optimize.brentq(lambda value: beyond(value, rate, service, servers) - (1 - level), 0.0, top))


def true_line(level: float, limit: float, service: float, servers: int) -> float:
    """The highest rate at which the percentile is within the limit, per second."""
    most = servers / service

    def over(rate: float) -> float:
        return true_percentile(level, rate, service, servers) - limit

    return float(optimize.brentq(over, 1e-3 * most, 0.9999 * most))


def cells(arrivals: np.ndarray, sojourns: np.ndarray, seconds: int) -> Cells:
    """Histograms by second of end, as coarse as the agent's; what ends later belongs to the last second."""
    second = np.minimum((arrivals + sojourns).astype(np.int64), seconds - 1)
    ns = sojourns * 1e9
    decade = np.floor(np.log10(np.maximum(ns, 1.0)))
    step = np.floor(ns / 10.0 ** (decade - 1))  # 10 to 99: a cell is two digits wide
    # One number a cell, counted: to sort them as rows took four fifths of a search.
    counts = np.bincount((second * _DECADES + decade.astype(np.int64)) * _STEPS + step.astype(np.int64))
    filled = np.flatnonzero(counts)
    width = 10.0 ** (filled // _STEPS % _DECADES - 1.0)
    low = filled % _STEPS * width
    return Cells(filled // (_STEPS * _DECADES), low, low + width, counts[filled].astype(float), np.zeros(seconds))


def outstanding(arrivals: np.ndarray, sojourns: np.ndarray, seconds: int) -> np.ndarray:
    """Little's law by second of end, as the reading of a record makes it: without what ended after the last second."""
    inside = arrivals + sojourns < seconds
    found = cells(arrivals[inside], sojourns[inside], seconds)
    return found.by_second(found.middle * found.count) / 1e9


# --- a record -----------------------------------------------------------------------------------------------------


def write_trial(folder: Path, number: int, place: dict[str, Any], made: Any, clients: int, **more: Any) -> None:
    """One finished trial of a capacity run: trial.json and the measured segment. `made`: (arrivals, sojourns)."""
    arrivals, sojourns = made
    seconds = int(place["seconds"])
    measure = folder / "trials" / f"{number:04d}" / "measure"
    measure.mkdir(parents=True)
    found = cells(arrivals, sojourns, seconds)
    latency = np.zeros(
        len(found.count), [("second", "<u4"), ("kind", "u1"), ("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")]
    )
    latency["second"], latency["low_ns"], latency["high_ns"] = found.second, found.low, found.high
    latency["count"] = found.count
    np.save(measure / "latency_seconds.npy", latency)
    lag = np.zeros(seconds, [("second", "<u4"), ("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")])
    lag["second"], lag["low_ns"], lag["high_ns"] = (
        np.arange(seconds),
        more.get("lag_ns", 1000),
        more.get("lag_ns", 1000) + 10,
    )
    lag["count"] = max(1, len(arrivals) // seconds)
    np.save(measure / "lag_seconds.npy", lag)
    start = 10**12 * number
    identity = {"planned": len(arrivals), "done": len(arrivals), "failed": 0, "skipped": 0, "lost": 0} | more.get(
        "identity", {}
    )
    health = {
        "threads": 1,
        "cpu_user_ns": 10**8,
        "cpu_system_ns": 10**8,
        "load_cpu_user_ns": 10**8,
        "load_cpu_system_ns": 10**8,
    }
    summary = {
        "format": 1, "workload": "bank", "kinds": ["select_only"],
        "started_ns": start, "ended_ns": start + seconds * 10**9,
        "identity": identity, "health": health | more.get("health", {}), "ended_by": "seconds",
        "schedule": {"kind": "poisson", "rate": place["rate"], "late_limit_ms": 2000},
        "rows": {"recorded": 0, "all_below_index": 0, "sample_one_in": 1000},
        "verification": {"checked": len(arrivals), "wrong": more.get("wrong", 0), "examples": []},
    }  # fmt: skip
    (measure / "summary.json").write_text(json.dumps(summary))
    columns = [
        ("t_ns", "<i8"),
        *((name, "<i8") for name in ("cpu_user", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_steal")),
    ]
    host = np.zeros(seconds, columns)
    host["t_ns"] = start + np.arange(seconds) * 10**9
    steal = more.get("steal", 0)
    host["cpu_user"], host["cpu_steal"] = np.arange(seconds) * 100, np.arange(seconds) * steal
    host["cpu_idle"] = np.arange(seconds) * (100 - steal)
    np.save(measure / "host.npy", host)
    trial = {
        "number": number, "block": 1, "treatment": "closed loop" if place["rate"] is None else f"{place['rate']:g}/s",
        "duplicate": False, "status": "finished", "reason": None, "caveats": [],
        "capacity": {"clients": clients, **place},
        "server": {"version": "15", "settings": {"shared_buffers": "1GB"}, "durability": {"fsync": "on"}},
    }  # fmt: skip
    (folder / "trials" / f"{number:04d}" / "trial.json").write_text(json.dumps(trial))


def write_run(folder: Path, objective: dict[str, Any], started: int = 10**18, clients: int = 16) -> Path:
    """run.json, plan.json, experiment.json and fingerprint.json of a capacity run without trials."""
    folder.mkdir(parents=True)
    run = {
        "format": 1, "id": folder.name, "experiment": "capacity-bank", "title": "<script>alert(1)</script>",
        "status": "finished", "started_epoch_ns": started, "ended_epoch_ns": started + 10**12, "seed": 1,
        "command": ["plimsoll", "capacity", "bank"], "quick": False, "kind": "capacity",
        "plimsoll": {"version": "0", "commit": None, "agent_version": "0"},
        "capacity": {
            "subject": "bank select_only, scale 20, 16 connections", "objective": objective, "arrivals": "poisson",
            "clients": clients, "budget_seconds": 600.0, "late_limit_ms": 2000.0,
            "checks": [{"name": "history", "expected": "1", "found": "1", "ok": True}],
        },
    }  # fmt: skip
    for name, value in (("run", run), ("plan", {"trials": []}), ("experiment", {"name": "x"}), ("fingerprint", {})):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder
