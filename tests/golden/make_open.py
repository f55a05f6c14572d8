"""Makes a SYNTHETIC run folder of an open loop after schema/record.md: a queue simulated with a seed. For tests only.

Poisson arrivals, exponential service on some connections (M/M/c), two rates in three blocks; the faults that the
analysis has to notice can be asked for.

    python tests/golden/make_open.py OUT [--small] [--faults sampled,starved,overloaded,misplaced,failing,late]
"""

import argparse
import heapq
import json
import runpy
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_SYNTHETIC = runpy.run_path(str(Path(__file__).with_name("make_synthetic.py")))
save = _SYNTHETIC["save"]
NOTE = "SYNTHETIC: made by tests/golden/make_open.py, measured nowhere"
SECOND = 1_000_000_000
TRANSACTION = np.dtype([*_SYNTHETIC["TRANSACTION"].descr, ("retries", "u1")])
CELLS = [("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")]
LATENCY = np.dtype([("kind", "u1"), *CELLS])
LATENCY_SECONDS = np.dtype([("second", "<u4"), ("kind", "u1"), *CELLS])
LAG_SECONDS = np.dtype([("second", "<u4"), *CELLS])
PATH = "schedule.rate"


@dataclass(frozen=True)
class Shape:
    """How large the synthetic run is."""

    rates: tuple[float, ...] = (20.0, 60.0)
    blocks: int = 3
    seconds: int = 12
    clients: int = 4
    service_ms: float = 30.0
    seed: int = 20010619
    judged: str = "latency_ns_p99"
    faults: tuple[str, ...] = ()


def queue(shape: Shape, rate: float, random: np.random.Generator, start: int) -> np.ndarray:
    """Transactions in the order they were due, each begun when it is due and a connection is free."""
    due = np.cumsum(random.exponential(1 / rate, int(rate * shape.seconds * 2) + 20))
    due = due[due < shape.seconds]
    service = random.exponential(shape.service_ms / 1e3, len(due)) * (12 if "overloaded" in shape.faults else 1)
    own = random.exponential(0.05, len(due)) if "starved" in shape.faults else random.exponential(20e-6, len(due))
    free = [(0.0, connection) for connection in range(shape.clients)]
    rows = np.zeros(len(due), TRANSACTION)
    for place, at in enumerate(due):
        ready, connection = heapq.heappop(free)
        begun = max(at, ready) + own[place]
        ended = begun + service[place]
        heapq.heappush(free, (ended, connection))
        rows[place] = (0, *(start + np.array([at, begun, ended]) * 1e9).astype(np.int64), connection, 500 + connection,
                       0, 0, 5, 0, 0)  # fmt: skip
    rows["index"] = np.arange(len(rows))
    return rows


def cells(values: np.ndarray, digits: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each value's cell begins and ends: as wide as so many significant digits allow."""
    magnitude = np.floor(np.log2(np.maximum(values, 1))).astype(np.int64)
    width = np.int64(1) << np.maximum(magnitude - {2: 7, 3: 10}[digits], 0)
    low = values // width * width
    return low, low + width


def histogram(values: np.ndarray, digits: int, columns: np.dtype, **more: np.ndarray | int) -> np.ndarray:
    """Values counted by cell and by whatever else tells rows apart."""
    low, high = cells(values.astype(np.int64), digits)
    table = np.zeros(len(values), columns)
    table["low_ns"], table["high_ns"] = low, high
    for name, column in more.items():
        table[name] = column
    rows, counts = np.unique(table, return_counts=True)
    rows["count"] = counts
    return rows


def write_trial(folder: Path, shape: Shape, entry: dict[str, Any]) -> None:
    """One trial with its measured segment; the warm-up left no tables."""
    place = folder / "trials" / f"{entry['number']:04d}"
    measure = place / "measure"
    measure.mkdir(parents=True)
    start = entry["number"] * 60 * SECOND
    random = np.random.default_rng([shape.seed, entry["number"]])
    rate = float(entry["resolved"]["schedule"]["rate"])
    rows = queue(shape, rate, random, start)
    end = int(max(rows["end_ns"].max(), start + shape.seconds * SECOND))
    errors = []
    if "failing" in shape.faults:
        rows["outcome"][::20], rows["error"][::20] = 1, 1
        rows["retries"][::10] = 2
        count = int((rows["outcome"] == 1).sum())
        errors = [{"sqlstate": "40001", "message": "could not serialize access", "count": count}]
    if "late" in shape.faults:  # those that would have waited longest are skipped, as a late limit does
        lag = rows["start_ns"] - rows["planned_ns"]
        late = lag > np.quantile(lag, 0.97)
        rows["outcome"][late], rows["kind"][late] = 2, 255
    done = rows[rows["outcome"] == 0]
    latency, ended = done["end_ns"] - done["planned_ns"], (done["end_ns"] - start) // SECOND
    np.save(measure / "latency.npy", histogram(latency, 3, LATENCY, kind=0))
    np.save(measure / "latency_seconds.npy", histogram(latency, 2, LATENCY_SECONDS, second=ended, kind=0))
    begun = (rows["start_ns"] - start) // SECOND
    np.save(measure / "lag_seconds.npy", histogram(rows["start_ns"] - rows["planned_ns"], 2, LAG_SECONDS, second=begun))
    one_in = 1
    kept = rows
    if "sampled" in shape.faults:
        one_in = 5
        kept = rows[(rows["index"] < 50) | (rows["index"] % one_in == 0)]
    np.save(measure / "transactions.npy", kept)
    times = start + np.arange(shape.seconds + 1) * SECOND
    upto = np.searchsorted(np.sort(done["end_ns"]), times)
    save(measure / "server.npy", {"t_ns": times, "blks_hit": upto * 30 + 1000, "blks_read": 0 * upto})
    failed = int((rows["outcome"] == 1).sum())
    skipped = int((rows["outcome"] == 2).sum())
    identity = {"planned": len(rows), "done": len(done), "failed": failed, "skipped": skipped, "lost": 0}
    by_kind = {"done": len(done), "failed": failed, "skipped": 0, "lost": 0}
    lag = rows["start_ns"] - rows["planned_ns"]
    summary = {
        "format": 1, "synthetic": NOTE, "workload": "bank", "kinds": ["tpcb_like"], "first_index": 0,
        "next_index": len(rows), "started_ns": start, "ended_ns": end, "identity": identity, "errors": errors,
        "by_kind": {"tpcb_like": {**by_kind, "statements": 5 * len(rows), "retries": int(rows["retries"].sum())}},
        "rows": {"recorded": len(kept), "all_below_index": 50 if one_in > 1 else len(rows), "sample_one_in": one_in},
        "schedule": entry["resolved"]["schedule"], "planned_rate": rate, "mode": "prepared", "describe": False,
        "retries": int(rows["retries"].sum()), "reconnects": 0,
        "health": {
            "cpu_user_ns": 10**7, "cpu_system_ns": 2 * 10**7, "load_cpu_user_ns": 8 * 10**6,
            "load_cpu_system_ns": 15 * 10**6, "threads": 1, "records_dropped": 0, "cpus_allowed": [0, 1],
            "samples": 9, "sample_late_ns_max": 1000, "connections_lost": 0,
            "lag_ns": {"p50": int(np.median(lag)), "p99": int(np.quantile(lag, 0.99)), "max": int(lag.max())},
        },
        "ended_by": "seconds", "verification": {"checked": 0, "wrong": 0, "examples": []},
        "epoch_minus_monotonic_ns": 0, "totals": {},
        "backend_pids": [500 + connection for connection in range(shape.clients)], "devices": [],
    }  # fmt: skip
    (measure / "summary.json").write_text(json.dumps(summary, indent=1))
    misplaced = "misplaced" in shape.faults and entry["number"] == 2
    trial = {
        **{key: entry[key] for key in ("number", "block", "treatment", "duplicate")}, "synthetic": NOTE,
        "status": "finished", "reason": None,
        "stationary": {"reached": True, "seconds": 6, "test": "synthetic", "detail": {}},
        "checks": [{"name": "sum of balances", "expected": "0", "found": "0", "ok": True}],
        "cpus": {"target": "0" if misplaced else "0-1", "load": "0-1"}, "caveats": [],
    }  # fmt: skip
    (place / "trial.json").write_text(json.dumps(trial, indent=1))


def make(out: Path, shape: Shape | None = None) -> Path:
    """Write the run folder; an existing one is replaced."""
    shape = shape or Shape()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    labels = [f"{rate:g}" for rate in shape.rates]
    treatments = {
        f"t{place + 1}": {"label": f"rate {label}", "levels": {PATH: label}} for place, label in enumerate(labels)
    }
    trials = []
    for block in range(1, shape.blocks + 1):
        for position, (name, rate) in enumerate(zip(treatments, shape.rates, strict=True), start=1):
            schedule = {"kind": "poisson", "rate": rate, "seed": block}
            resolved = {"schedule": schedule, "workload": {"name": "bank", "clients": shape.clients}}
            trials.append(
                {"number": len(trials) + 1, "block": block, "position": position, "treatment": name}
                | {"levels": treatments[name]["levels"], "duplicate": False, "resolved": resolved}
            )
    levels = [{"label": label, "value": rate} for label, rate in zip(labels, shape.rates, strict=True)]
    factors = [{"path": PATH, "paths": [PATH], "label": "rate", "unit": None, "levels": levels}]
    plan = {"trials": trials, "treatments": treatments, "factors": factors, "judged": shape.judged}
    run = {"format": 1, "id": f"open-{shape.seed}", "experiment": "open", "title": "Which rate? (synthetic)"}
    run |= {"synthetic": NOTE, "status": "finished", "started_epoch_ns": 10**18, "ended_epoch_ns": 10**18 + 10**12}
    run |= {"seed": shape.seed, "command": ["plimsoll", "run", "open"], "quick": False, "a_a": None}
    experiment = {"name": "open", "source": "", "synthetic": NOTE, "workload": {"name": "bank", "scale": 1}}
    experiment |= {"schedule": {"kind": "poisson", "rate": shape.rates[0], "seed": 1}}
    experiment["design"] = {"kind": "full factorial", "blocks": shape.blocks, "relevant_ratio": 1.05}
    for name, document in (("run", run), ("plan", plan), ("experiment", experiment)):
        (out / f"{name}.json").write_text(json.dumps(document, indent=1))
    for entry in trials:
        write_trial(out, shape, entry)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--small", action="store_true", help="a few transactions, for the golden folder")
    parser.add_argument("--faults", default="", help="of sampled,starved,overloaded,misplaced,failing,late")
    asked = parser.parse_args()
    faults = tuple(fault for fault in asked.faults.split(",") if fault)
    small = Shape(seconds=8, judged="latency_ns_p90", faults=faults)
    print(make(asked.out, small if asked.small else Shape(faults=faults)))


if __name__ == "__main__":
    main()
