"""Records for traces: a few transactions by hand, and many of them by arithmetic. Loaded by runpy."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.record import writer

WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "breakdown_world.py"))
START, EPOCH = 10**12, 1_700_000_000 * 10**9
HOST = [("t_ns", "<i8"), ("dirty_kib", "<i8"), ("writeback_kib", "<i8")]
DEVICE = [("t_ns", "<i8"), ("device", "<i8"), ("weighted_io_ms", "<i8")]


def run_of(folder: Path, rows: Any, asked: Any, waited: Any, seconds: int = 3, **probe: Any) -> Path:
    """A run with one finished trial of these tables, and a host and a device that are read each second."""
    plan = {"trials": [{"number": 1, "block": 1, "treatment": "t1"}], "treatments": {"t1": {"label": "level; one"}}}
    writer.create_run(folder, {"id": "r", "status": "finished", "command": []}, plan)
    writer.write_trial(folder, {"number": 1, "block": 1, "treatment": "t1", "status": "finished"})
    place = writer.trial_folder(folder, 1) / "measure"
    report = WORLD["report"](len(asked), **probe)
    ends = {"started_ns": START, "ended_ns": START + seconds * 10**9, "epoch_minus_monotonic_ns": EPOCH}
    WORLD["write_segment"](place, rows, asked, waited, devices=["vda"], probes={"breakdown": report}, **ends)
    times = [START + second * 10**9 for second in range(seconds + 1)]
    np.save(place / "host.npy", np.array([(at, 100 + n, 7) for n, at in enumerate(times)], HOST))
    np.save(place / "device.npy", np.array([(at, 0, 2000 * n * n) for n, at in enumerate(times)], DEVICE))
    return folder


def busy(folder: Path, count: int, seconds: int, backends: int = 50, kinds: int = 3) -> Path:
    """So many transactions evenly over the time, each of one row with a sync, a lock and a wait for another's sync.

    Of more than three kinds of wait the others are reads, each by a name of its own.
    """
    each = seconds * 10**9 * backends // count
    number = np.arange(count)
    start = START + number // backends * each + number % backends * 1000
    rows = np.zeros(count, WORLD["SENT"])
    rows["index"], rows["backend_pid"], rows["requests"] = number, 5000 + number % backends, 1
    rows["planned_ns"] = rows["start_ns"] = start
    rows["end_ns"] = start + each * 9 // 10
    asked = np.zeros(count, WORLD["ROW"])
    asked["backend_pid"], asked["requests"], asked["one_in"] = rows["backend_pid"], 1, 1
    asked["arrived_ns"], asked["ended_ns"] = start + 1000, start + each * 8 // 10
    asked["cpu_ns"], asked["run_queue_ns"] = each // 10, each // 20
    asked["request"] = number  # they end in the order in which they begin
    named = [("wal_sync", "WAL_SYNC", 0), ("lock", "TRANSACTION_LOCK", 0), ("wal_wait", "WAL_WRITE_LOCK", 1)]
    named += [("data_read", "DATA_READ", 0)] * (kinds - len(named))
    waited = np.zeros(kinds * count, WORLD["WAIT"])
    for place, (bucket, wait, woken) in enumerate(named[:kinds]):
        mine = waited[place::kinds]
        mine["request"], mine["wait"], mine["bucket"] = (
            number,
            WORLD[wait] + 100 * max(0, place - 3),
            WORLD["BUCKETS"].index(bucket),
        )
        mine["count"], mine["ns"] = 1, each * 3 // 10 // kinds
        mine["waker_pid"] = woken * (5000 + (number + 1) % backends)
    return run_of(folder, rows, asked, waited, seconds)


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "trials/0001/measure/summary.json").read_text())
    return found
