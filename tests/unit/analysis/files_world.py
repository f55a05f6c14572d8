"""Runs on files by hand, after schema/record.md: every byte and every second is given, nothing is measured. Loaded by
runpy, since tests are imported one by one.

A phase that moves B bytes takes B / RATE seconds; at t2 twice as long. Its devices move the share that DEVICE says, and
of two CPUs one half is busy.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
TRANSACTION = _MAKER["TRANSACTION"]
Json = dict[str, Any]
SECOND = 1_000_000_000
BYTES, RATE = 400_000_000, 100_000_000
SEEKS, SEEK_BYTES = 1000, 8192
WRITES = ("putc", "write", "rewrite", "random_write", "pwrite")
# Shares of the bytes that devices move: (read, written).
DEVICE = {"putc": (0.0, 0.5), "write": (0.0, 1.0), "read": (0.001, 0.0), "getc": (1.0, 0.0), "seeks": (1.5, 0.0)}
TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def make(folder: Path, workload: Json, phases: tuple[str, ...] = (), blocks: int = 3) -> Path:
    """Writes the run's folder; returns it. Without phases the run is a mix of reads and appends."""
    (folder / "trials").mkdir(parents=True)
    path, levels = "environment.memory", ("256 MiB", "4 GiB")
    treatments = {
        f"t{place}": {"label": f"memory {level}", "levels": {path: level}} for place, level in enumerate(levels, 1)
    }
    trials = [
        {"number": number, "block": block, "position": 1, "treatment": name, "duplicate": False}
        | {"levels": treatments[name]["levels"], "resolved": {"workload": workload}}
        for number, (block, name) in enumerate(((b, t) for b in range(1, blocks + 1) for t in treatments), 1)
    ]
    factor: Json = {"path": path, "paths": [path], "label": "memory", "unit": "bytes", "compare": True}
    factor["levels"] = [{"label": level, "value": place} for place, level in enumerate(levels)]
    judged = f"{phases[0]}_bytes_per_second" if phases else "bytes_per_second"
    plan = {"kind": "full factorial", "blocks": blocks, "relevant_ratio": 1.05, "judged": judged}
    plan |= {"factors": [factor], "treatments": treatments, "trials": trials}
    run = {"format": 1, "id": folder.name, "experiment": "x", "title": "A question", "status": "finished"}
    run |= {"seed": 1, "quick": False, "synthetic": "SYNTHETIC: made by a test, measured nowhere"}
    experiment = {"name": "x", "source": "", "study": "citi-2001", "workload": workload, "sections": []}
    experiment |= {"factors": [{"path": path, "levels": list(levels)}], "design": {"kind": "full factorial"}}
    for name, document in (("run", run), ("plan", plan), ("experiment", experiment)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    for trial in trials:
        _trial(folder / "trials" / f"{trial['number']:04d}", trial, phases)
    return folder


def _trial(place: Path, trial: Json, phases: tuple[str, ...]) -> None:
    document: Json = {key: trial[key] for key in ("number", "block", "treatment", "duplicate")}
    document |= {"status": "finished", "checks": [], "cpus": {"target": "0-1", "load": "0-1"}}
    start = trial["number"] * 1000 * SECOND
    slow = 2 if trial["treatment"] == "t2" else 1
    for phase in phases:
        seconds = slow * 4 + 0.01 * trial["block"]
        entry = {"pass": phase, "segment": phase, **_readings(phase, phase in WRITES)}
        document.setdefault("passes", []).append(entry)
        _segment(place / phase, phase, start, seconds)
        start += round((seconds + 1) * SECOND)
    if phases:
        document |= {"measured_segment": phases[0], "device_counters": document["passes"][0]["device_counters"]}
    else:
        document |= {"stationary": {"reached": True, "seconds": 1.0}, **_readings("read", False)}
        _mix(place / "measure", start, slow * 4 + 0.01 * trial["block"])
    (place / "trial.json").write_text(json.dumps(document))


def _payload(phase: str) -> int:
    return SEEKS * SEEK_BYTES if phase == "seeks" else BYTES


def _readings(phase: str, is_write: bool) -> Json:
    """Of /proc/diskstats before and after: what others did before is in both."""
    read, written = DEVICE.get(phase, (0.0, 1.0) if is_write else (1.0, 0.0))
    before = [5, 0, 1000, 1, 5, 0, 2000, 1]
    sectors = (round(read * _payload(phase) / 512), round(written * _payload(phase) / 512))
    after = [9, 0, 1000 + sectors[0], 2, 9, 0, 2000 + sectors[1], 2]
    return {"device_counters": {"before": {"vda": before}, "after": {"vda": after}}}


def _segment(place: Path, phase: str, start: int, seconds: float) -> None:
    place.mkdir(parents=True)
    done = SEEKS if phase == "seeks" else BYTES // 8192
    end = start + round(seconds * SECOND)
    is_write = phase in WRITES
    totals = {"bytes_read": 0 if is_write else _payload(phase), "bytes_written": _payload(phase) if is_write else 0}
    facts = {"bytes_planned": 2 * _payload(phase), "min_transfer_bytes": _payload(phase) // 2}
    _summary(place, [phase], done, (start, end), totals, facts)
    np.save(place / "host.npy", _host(start, end))


def _summary(place: Path, kinds: list[str], done: int, ends: tuple[int, int], totals: Json, facts: Json) -> None:
    start, end = ends
    whole = {"planned": done, "done": done, "failed": 0, "skipped": 0, "lost": 0}
    # One thread: three quarters of one CPU, twice as much system as user.
    used = round((end - start) * 0.25)
    health = {"cpu_user_ns": used, "cpu_system_ns": 2 * used, "load_cpu_user_ns": used, "load_cpu_system_ns": 2 * used}
    health |= {"threads": 1, "cpus_allowed": "0-1", "lag_ns": {"p50": 1, "p99": 1, "max": 1}, "records_dropped": 0}
    each = done // len(kinds)
    summary = {"format": 1, "workload": "x", "kinds": kinds, "first_index": 0, "next_index": done, "identity": whole}
    summary |= {"started_ns": start, "ended_ns": end, "ended_by": "transactions", "errors": [], "health": health}
    summary |= {"by_kind": {kind: {"done": each, "failed": 0} for kind in kinds}, "totals": totals, "facts": facts}
    summary |= {"verification": {"checked": done, "wrong": 0}, "backend_pids": [], "devices": []}
    (place / "summary.json").write_text(json.dumps(summary))


def _host(start: int, end: int) -> np.ndarray:
    """Two CPUs, half of their time busy: the series' ends are those of the segment."""
    table = np.zeros(3, [("t_ns", "<i8"), *((f"cpu_{name}", "<i8") for name in TICKS)])
    seconds = np.linspace(0, (end - start) / SECOND, 3)
    table["t_ns"] = start + np.round(seconds * SECOND)
    table["cpu_user"], table["cpu_system"] = np.round(40 * seconds), np.round(60 * seconds)
    table["cpu_idle"], table["cpu_iowait"] = np.round(80 * seconds), np.round(20 * seconds)
    return table


def _mix(place: Path, start: int, seconds: float) -> None:
    """2000 operations: reads take 1 ms, appends 3 ms."""
    place.mkdir(parents=True)
    end, count = start + round(seconds * SECOND), 2000
    rows = np.zeros(count, TRANSACTION)
    rows["index"] = np.arange(count)
    rows["planned_ns"] = start + np.arange(count) * ((end - start - 10_000_000) // count)
    rows["start_ns"] = rows["planned_ns"]
    rows["kind"] = np.arange(count) % 2
    latency = np.where(rows["kind"] == 0, 1_000_000, 3_000_000)
    rows["end_ns"] = rows["planned_ns"] + latency
    np.save(place / "transactions.npy", rows)
    cells = [("kind", "<u1"), ("low_ns", "<i8"), ("high_ns", "<i8"), ("count", "<i8")]
    table = np.array([(0, 1_000_000, 1_000_001, 1000), (1, 3_000_000, 3_000_001, 1000)], cells)
    np.save(place / "latency.npy", table)
    np.save(place / "host.npy", _host(start, end))
    totals = {"bytes_read": BYTES, "bytes_written": 0, "system_calls": 3 * count}
    _summary(place, ["read", "append"], count, (start, end), totals, {})
