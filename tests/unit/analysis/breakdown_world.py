"""Records of a breakdown written by hand: tables from rows, and a breakdown added to a synthetic run.

Loaded by runpy, since tests are imported one by one. All times are nanoseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

BUCKETS = [
    *("cpu_user", "cpu_kernel", "run_queue", "lock", "wal_sync", "wal_wait", "wal_write", "data_read", "data_write"),
    *("data_sync", "temp_io", "swap_in", "throttle", "network_send", "client", "other_wait", "unattributed"),
]
QUEUED, UNKNOWN, CUT, ABORTED, NO_REPLY = 1, 2, 4, 8, 16
TRANSACTION = np.dtype(
    [
        *(("index", "<u8"), ("planned_ns", "<i8"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("connection", "<u4")),
        *(("backend_pid", "<u4"), ("kind", "u1"), ("outcome", "u1"), ("statements", "u1"), ("error", "<u2")),
    ]
)
REQUEST = np.dtype(
    [
        *(("request", "<u8"), ("backend_pid", "<u4"), ("flags", "<u2"), ("arrived_ns", "<i8"), ("ended_ns", "<i8")),
        *(("cpu_ns", "<i8"), ("run_queue_ns", "<i8"), ("user_ns", "<u4"), ("system_ns", "<u4"), ("after_ns", "<u4")),
    ]
)
# What later records have besides.
SENT = np.dtype([*TRANSACTION.descr, ("requests", "<u2")])
ROW = np.dtype([*REQUEST.descr, ("requests", "<u4"), ("one_in", "<u4")])
WAIT = np.dtype(
    [
        *(("request", "<u8"), ("wait", "<u4"), ("waker_pid", "<u4"), ("bucket", "u1"), ("cause", "u1")),
        *(("count", "<u4"), ("ns", "<i8")),
    ]
)
WAL_SYNC, WAL_WRITE_LOCK, TRANSACTION_LOCK, DATA_READ, UNNAMED = 11, 12, 13, 14, 0
NAMES = {"11": "IO:WALSync", "12": "LWLock:WALWrite", "13": "Lock:transactionid", "14": "IO:DataFileRead"}


def table(dtype: np.dtype[Any], rows: list[dict[str, Any]]) -> np.ndarray:
    """Rows of named values; what is not given is 0."""
    found = np.zeros(len(rows), dtype)
    for place, row in enumerate(rows):
        for name, value in row.items():
            found[place][name] = value
    return found


def transactions(*rows: dict[str, Any], dtype: np.dtype[Any] = TRANSACTION) -> np.ndarray:
    return table(dtype, [{"index": place, **row} for place, row in enumerate(rows)])


def requests(*rows: dict[str, Any], dtype: np.dtype[Any] = REQUEST) -> np.ndarray:
    """Numbered as the record has them: by the time they ended."""
    ordered = sorted(rows, key=lambda row: row["ended_ns"])
    return table(dtype, [{"request": place, **row} for place, row in enumerate(ordered)])


def sent(*rows: dict[str, Any]) -> np.ndarray:
    """Transactions with the number of requests that were sent for them."""
    return transactions(*rows, dtype=SENT)


def server_rows(*rows: dict[str, Any]) -> np.ndarray:
    """Rows of the server's transactions, each of one request while all the time was watched unless told otherwise."""
    return requests(*({"requests": 1, "one_in": 1, **row} for row in rows), dtype=ROW)


def waits(*rows: tuple[int, int, str, int] | tuple[int, int, str, int, int]) -> np.ndarray:
    """(request, wait, bucket, ns) and, where it is known, the waker."""
    named = [
        {"request": row[0], "wait": row[1], "bucket": BUCKETS.index(row[2]), "ns": row[3], "count": 1}
        | ({"waker_pid": row[4]} if len(row) > 4 else {})
        for row in rows
    ]
    return table(WAIT, named)


def report(count: int = 0, **more: Any) -> dict[str, Any]:
    """What the probe says of itself."""
    return {
        "status": "on", "reason": None, "remedy": None, "programs": "tp_btf", "lost": {"rows": 0},
        "cost": {"run_ns": 1_000_000, "segment_ns": 10**10, "accounted_ns": 2 * 10**9, "programs": []},
        "checks": [{"name": "pg_sleep", "expected": "1", "found": "1", "ok": True}],
        "buckets": BUCKETS, "wait_names": NAMES,
        "boundaries": {"begin": "sched_switch", "end": "sock_send_length"},
        "request_counts": {"seen": count, "queued": 0, "recorded": count, "open_at_end": 0, "unknown_waits": 0},
        "processes": [], **more,
    }  # fmt: skip


def write_segment(folder: Path, rows: np.ndarray, asked: np.ndarray, waited: np.ndarray, **summary: Any) -> None:
    """A measured segment with its three tables."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "transactions.npy", rows)
    np.save(folder / "breakdown.npy", asked)
    np.save(folder / "breakdown_waits.npy", waited)
    document = {
        "format": 1, "kinds": ["pay", "look"], "started_ns": 0, "ended_ns": 10**10, "requests_sent": len(asked),
        "identity": {"planned": len(rows), "done": len(rows), "failed": 0, "skipped": 0, "lost": 0},
        "health": {"cpus_allowed": "0-1"}, "probes": {"breakdown": report(len(asked))}, **summary,
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(document))


def add_to_run(folder: Path, extra: dict[str, tuple[str, int, float]] | None = None, per: int = 2) -> None:
    """A breakdown for every trial of a synthetic run: `per` requests a transaction with hardly any gap between them.

    `extra` {treatment: (bucket, wait, share)}: the share of each request that is spent waiting there; the rest is CPU
    (70 %), run queue (10 %), syncing the log (15 %) and nothing (the closure error: 1 per mille).
    """
    plan = json.loads((folder / "plan.json").read_text())
    for trial in plan["trials"]:
        place = folder / f"trials/{trial['number']:04d}/measure"
        if not (place / "transactions.npy").exists():
            continue
        rows = np.load(place / "transactions.npy")
        bucket, wait, share = (extra or {}).get(trial["treatment"], ("lock", TRANSACTION_LOCK, 0.0))
        asked, waited = _requests_of(rows, per, bucket, wait, share)
        np.save(place / "breakdown.npy", asked)
        np.save(place / "breakdown_waits.npy", waited)
        summary = json.loads((place / "summary.json").read_text())
        walwriter = {"pid": 77, "what": "walwriter", "cpu_ns": 3_000_000, "run_queue_ns": 1_000_000}
        walwriter["waits"] = {
            "IO:WALSync": {"count": 5, "ns": 2_000_000},
            "Activity:WalWriterMain": {"count": 9, "ns": 9},
        }
        summary["probes"] = (summary.get("probes") or {}) | {
            "breakdown": report(len(asked), processes=[walwriter], cost=_cost(len(asked)))
        }
        (place / "summary.json").write_text(json.dumps(summary | {"requests_sent": len(asked)}))


def _cost(count: int) -> dict[str, Any]:
    return {"run_ns": count * 900, "segment_ns": 9 * 10**9, "accounted_ns": 2 * 10**9, "programs": []}


def _requests_of(rows: np.ndarray, per: int, bucket: str, wait: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    length = (rows["end_ns"] - rows["start_ns"]) // (per + 1)
    parts = []
    for number in range(per):
        part = np.zeros(len(rows), REQUEST)
        part["backend_pid"] = rows["backend_pid"]
        part["arrived_ns"] = rows["start_ns"] + length // 4 + number * (length + 2_000)
        part["ended_ns"] = part["arrived_ns"] + length
        parts.append(part)
    asked = np.concatenate(parts)
    asked = asked[np.argsort(asked["ended_ns"], kind="stable")]
    asked["request"] = np.arange(len(asked))
    elapsed = asked["ended_ns"] - asked["arrived_ns"]
    own = elapsed * (1 - share)
    asked["cpu_ns"], asked["run_queue_ns"] = own * 0.7, own * 0.1
    ticks = np.arange(len(asked)) % 3
    asked["user_ns"], asked["system_ns"] = (ticks == 0) * 4_000_000, (ticks == 1) * 2_000_000
    sync, group, other = np.zeros(len(asked), WAIT), np.zeros(len(asked), WAIT), np.zeros(len(asked), WAIT)
    for which, event, name, spent, waker in (
        (sync, WAL_SYNC, "wal_sync", own * 0.15, 0),
        (group, WAL_WRITE_LOCK, "wal_wait", own * 0.049, 77),
        (other, wait, bucket, elapsed * share, 40_001),
    ):
        which["request"], which["wait"], which["bucket"] = asked["request"], event, BUCKETS.index(name)
        which["ns"], which["waker_pid"], which["count"] = spent, waker, 1
    return asked, np.concatenate([sync, group, other] if share else [sync, group])
