"""Runs of decision support by hand, after schema/record.md: every time is given, nothing is measured. Loaded by runpy,
since tests are imported one by one.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
TRANSACTION = np.dtype([*_MAKER["TRANSACTION"].descr, ("requests", "<u2")])
Json = dict[str, Any]
SECOND = 1_000_000_000
QUERIES = [f"Q{number}" for number in range(1, 23)]
KINDS = [*QUERIES, "RF1", "RF2"]
PATH = "target.settings.work_mem"
HOST = [
    *("mem_free_kib", "buffers_kib", "cached_kib", "s_reclaimable_kib", "pgpgin", "pgpgout"),
    *("cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"),
]


def ten_seconds(treatment: str, block: int, test: str, stream: int, name: str) -> float:
    """The same for all."""
    del treatment, block, test, stream, name
    return 10.0


@dataclass(frozen=True)
class World:
    """What a run is of. `failing`: ((trial, segment, stream, name), status); a refresh stream is number streams + 1."""

    levels: tuple[str, ...] = ("16 MiB", "1 MiB")
    blocks: int = 3
    scale_factor: float = 1.0
    streams: int = 2
    tests: tuple[str, ...] = ("load", "power", "throughput")
    refresh: bool = True
    repeats: int = 1
    explain: bool = False
    seconds: Callable[[str, int, str, int, str], float] = ten_seconds
    failing: tuple[tuple[tuple[int, str, int, str], str], ...] = ()


def workload(world: World) -> Json:
    """The table of the experiment file, every default written out."""
    return {
        "name": "decision_support",
        "scale_factor": world.scale_factor,
        "seed": 1,
        "ranges": "specified",
        "tests": list(world.tests),
        "streams": world.streams,
        "refresh": world.refresh,
        "query_timeout_seconds": None,
        "ratio_rule": False,
        "explain": world.explain,
        "repeats": world.repeats,
    }


def make(folder: Path, world: World) -> Path:
    """Writes the run's folder; returns it."""
    (folder / "trials").mkdir(parents=True)
    treatments = {
        f"t{place}": {"label": f"work_mem {level}", "levels": {PATH: level}}
        for place, level in enumerate(world.levels, start=1)
    }
    trials = [
        {"number": number, "block": block, "position": 1, "treatment": name, "duplicate": False}
        | {"levels": treatments[name]["levels"], "resolved": {"workload": workload(world)}}
        for number, (block, name) in enumerate(
            ((block, name) for block in range(1, world.blocks + 1) for name in treatments), start=1
        )
    ]
    factor = {"path": PATH, "paths": [PATH], "label": "work_mem", "unit": "bytes", "compare": True}
    factor |= {"levels": [{"label": level, "value": place} for place, level in enumerate(world.levels)]}
    both = {"power", "throughput"} <= set(world.tests)
    judged = "composite_queries_per_hour" if both else f"{world.tests[-1]}_queries_per_hour"
    plan = {"kind": "full factorial", "blocks": world.blocks, "relevant_ratio": 1.05, "judged": judged}
    plan |= {"factors": [factor], "treatments": treatments, "trials": trials}
    run = {
        "format": 1,
        "id": folder.name,
        "experiment": "decision-support",
        "title": "A question",
        "status": "finished",
    }
    run |= {"seed": 1, "quick": False, "synthetic": "SYNTHETIC: made by a test, measured nowhere"}
    experiment = {"name": "decision-support", "source": "Study S3 (OSDL, 2003)", "workload": workload(world)}
    experiment |= {"factors": [{"path": PATH, "levels": list(world.levels)}], "design": {"kind": "full factorial"}}
    for name, document in (("run", run), ("plan", plan), ("experiment", experiment)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    for trial in trials:
        _trial(folder / "trials" / f"{trial['number']:04d}", trial, world)
    return folder


def _trial(place: Path, trial: Json, world: World) -> None:
    passes = [("power", "power")] if "power" in world.tests else []
    if "throughput" in world.tests:
        passes += [("throughput", f"throughput-{number}") for number in range(1, world.repeats + 1)]
    if world.explain:
        passes.append(("plans", "plans"))
    counters = {when: {"blks_hit": 900 * at, "blks_read": 100 * at} for at, when in enumerate(("before", "after"), 1)}
    entries = [{"test": test, "segment": name, "counters": counters} for test, name in passes]
    document = {**{key: trial[key] for key in ("number", "block", "treatment", "duplicate")}, "status": "finished"}
    document |= {"tests": entries, "measured_segment": passes[0][1], "counters": counters, "checks": []}
    if "load" in world.tests:
        document["load_test"] = load_test(80.0 + trial["block"])
    start = trial["number"] * 100_000 * SECOND
    for test, name in passes:
        start = _segment(place / name, trial, test, start, world) + SECOND
    (place / "trial.json").write_text(json.dumps(document))


def load_test(seconds: float) -> Json:
    """As the agent's `populate` tells it."""
    phases = [("tables", 0.0, 1.0), ("rows", 1.0, 41.0), ("vacuum", 41.0, 50.0), ("indexes", 50.0, seconds)]
    work = {
        "phase": "rows",
        "table": "lineitem",
        "rows": 6_001_215,
        "bytes": 900_000_000,
        "began_s": 1.0,
        "ended_s": 41.0,
    }
    return {
        "tables": {"lineitem": 6_001_215},
        "bytes": 2_234_000_000,
        "seconds": seconds,
        "phases": [{"phase": name, "began_s": began, "ended_s": ended} for name, began, ended in phases],
        "work": [work, {"phase": "indexes", "table": "lineitem", "began_s": 50.0, "ended_s": seconds}],
    }


def _sessions(test: str, world: World) -> list[tuple[int, list[str]]]:
    """Who does what in which order; the refresh stream last."""
    if test != "throughput":
        refreshed = world.refresh and test == "power"
        return [(0, ["RF1", *QUERIES, "RF2"] if refreshed else QUERIES)]
    found = [(stream, QUERIES[stream:] + QUERIES[:stream]) for stream in range(1, world.streams + 1)]
    return [*found, (world.streams + 1, ["RF1", "RF2"] * world.streams)] if world.refresh else found


def _segment(place: Path, trial: Json, test: str, start: int, world: World) -> int:
    place.mkdir(parents=True)
    failing = dict(world.failing)
    rows, queries, end = [], [], start
    for connection, (stream, names) in enumerate(_sessions(test, world)):
        at = start
        for number, name in enumerate(names):
            status = failing.get((trial["number"], place.name, stream, name), "done")
            lasted = 0 if status == "skipped" else world.seconds(trial["treatment"], trial["block"], test, stream, name)
            until = at + round(lasted * SECOND)
            is_refresh = name.startswith("RF")
            queries.append(
                {
                    "index": len(rows),
                    "stream": None if is_refresh and test == "throughput" else stream,
                    "connection": connection,
                    "place": number,
                    "name": name,
                    "title": f"title of {name}",
                    "parameters": {},
                    "began_ns": None if status == "skipped" else at,
                    "ended_ns": None if status == "skipped" else until,
                    "rows": 1 if status == "done" else None,
                    "bytes": None,
                    "status": status,
                    "error": None if status == "done" else "canceling statement",
                    "set": 1 if is_refresh else None,
                    "plan": f"plans/0-{name}.json" if test == "plans" else None,
                }
            )
            outcome = {"done": 0, "skipped": 2, "lost": 3}.get(status, 1)
            rows.append((len(rows), at, at, until, connection, 700 + connection, KINDS.index(name), outcome, 1, 0, 1))
            at, end = until, max(end, until)
    if test == "plans":
        _plans(place, trial)
    np.save(place / "transactions.npy", np.array(rows, TRANSACTION))
    np.save(place / "host.npy", host(start, end))
    document = {"format": 1, "test": test, "began_ns": start, "ended_ns": end, "queries": queries}
    (place / "queries.json").write_text(json.dumps(document))
    counts = {
        name: sum(row[7] == code for row in rows) for code, name in enumerate(("done", "failed", "skipped", "lost"))
    }
    summary = {"format": 1, "workload": "decision_support", "kinds": KINDS, "first_index": 0, "next_index": len(rows)}
    summary |= {"started_ns": start, "ended_ns": end, "identity": {"planned": len(rows), **counts}}
    (place / "summary.json").write_text(json.dumps(summary))
    return end


def _plans(place: Path, trial: Json) -> None:
    """Q1 is sorted in all treatments but the first, where it is hashed."""
    (place / "plans").mkdir()
    for name in QUERIES:
        strategy = "Hashed" if name == "Q1" and trial["treatment"] == "t1" else "Sorted"
        scan = {"Node Type": "Seq Scan", "Relation Name": "lineitem", "Total Cost": 7.5 * trial["number"]}
        plan = {"Node Type": "Aggregate", "Strategy": strategy, "Actual Rows": trial["number"], "Plans": [scan]}
        (place / "plans" / f"0-{name}.json").write_text(json.dumps([{"Plan": plan}]))


def host(start: int, end: int) -> np.ndarray:
    """A sample a second: 2 CPUs of 100 ticks, a quarter each user, system, idle and waiting; 10 KiB a second read."""
    count = max(3, (end - start) // SECOND + 1)
    table = np.zeros(count, [("t_ns", "<i8"), *((name, "<i8") for name in HOST)])
    seconds = np.arange(count)
    table["t_ns"] = start + seconds * SECOND
    table["mem_free_kib"], table["buffers_kib"] = 4096, 1024
    table["cached_kib"], table["s_reclaimable_kib"] = 8192, 2048
    table["pgpgin"], table["pgpgout"] = 10 * seconds, 20 * seconds
    table["cpu_user"], table["cpu_nice"] = 40 * seconds, 10 * seconds
    table["cpu_system"], table["cpu_softirq"] = 45 * seconds, 5 * seconds
    table["cpu_idle"], table["cpu_iowait"] = 50 * seconds, 50 * seconds
    return table
